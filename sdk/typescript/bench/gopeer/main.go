// Command gopeer is the Go side of bench.mjs: a producer or a worker of the Go SDK that does what
// those of the TypeScript SDK do there.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"codeq/client"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: gopeer producer|worker COMMAND TASKS WINDOW")
	}
	command := os.Args[2]
	tasks, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	window, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(os.Getenv("CODEQ_URL"))
	if err != nil {
		log.Fatal(err)
	}
	do := produce
	if os.Args[1] == "worker" {
		do = work
	}
	if err := do(c, command, tasks, window); err != nil {
		log.Fatal(err)
	}
}

type payload struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// produce posts tasks over one session, with at most so many without an answer.
func produce(c *client.Client, command string, tasks, inFlight int) error {
	session, err := c.Dial(context.Background(), client.SessionOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	fmt.Println("began")
	text := strings.Repeat("x", 80)
	results := make(chan error, inFlight)
	var next atomic.Int64
	for range inFlight {
		go func() {
			for {
				n := int(next.Add(1))
				if n > tasks {
					results <- nil
					return
				}
				if _, err := session.Enqueue(context.Background(), command, payload{N: n, Text: text}); err != nil {
					results <- err
					return
				}
			}
		}()
	}
	for range inFlight {
		if err := <-results; err != nil {
			return err
		}
	}
	fmt.Println("posted")
	return nil
}

// work does tasks until so many are settled.
func work(c *client.Client, command string, tasks, window int) error {
	ctx, stop := context.WithCancel(context.Background())
	var settled atomic.Int64
	echo := func(_ context.Context, p payload) (map[string]int, error) { return map[string]int{"n": p.N}, nil }
	return client.Work(ctx, c, command, echo, client.Window(window), client.Ended(func(client.Ending) {
		if settled.Add(1) == int64(tasks) {
			fmt.Println("done")
			stop()
		}
	}))
}
