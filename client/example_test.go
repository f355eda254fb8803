package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"codeq/client"
	"codeq/wire"
)

// One task over HTTP, and its result.
func Example() {
	ctx := context.Background()
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	task, err := c.Enqueue(ctx, "sha256", map[string]string{"file": "a.iso"})
	if err != nil {
		log.Fatal(err)
	}
	done, err := c.Result(ctx, task.TaskID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", done.Result.Status, done.Result.Result)
}

// Many tasks over one session. The keys make it harmless to run again, and let
// the session repeat what was under way when a connection broke.
func ExampleSession() {
	ctx := context.Background()
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	session, err := c.Dial(ctx, client.SessionOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	answered := make(chan error, 1000)
	for i := range 1000 {
		request := &wire.EnqueueRequest{
			Command:        "square",
			Payload:        fmt.Appendf(nil, "%d", i),
			IdempotencyKey: fmt.Sprintf("squares:%d", i),
		}
		err := session.Post(ctx, request, func(_ *client.Enqueued, err error) { answered <- err })
		if err != nil {
			log.Fatal(err)
		}
	}
	for range 1000 {
		if err := <-answered; err != nil {
			log.Print(err)
		}
	}
}

// A worker that runs eight tasks at a time until it is told to stop.
func ExampleWorker() {
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	worker, err := c.NewWorker(client.WorkerOptions{
		Commands: []string{"square"},
		Window:   8,
		Handler: func(ctx context.Context, d client.Delivery) client.Outcome {
			var n int
			if _, err := fmt.Sscan(string(d.Task.Payload), &n); err != nil {
				return client.Fail(err.Error())
			}
			return client.Complete(fmt.Appendf(nil, `{"square":%d}`, n*n))
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(time.Hour, worker.Drain)
	if err := worker.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
