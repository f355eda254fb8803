package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"codeq/client"
)

type order struct {
	Number int `json:"number"`
}

type receipt struct {
	Text string `json:"text"`
}

func main() {
	c, err := client.New(cmp.Or(os.Getenv("CODEQ_URL"), "http://127.0.0.1:8080"), client.WithToken(os.Getenv("CODEQ_TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	// One task. The key makes a second run of this program find it, and not make it again.
	first, err := c.Enqueue(ctx, "invoice", order{1}, client.Key("order-1"), client.Label("customer", "acme"))
	if err != nil {
		log.Fatal(err)
	}
	// Several tasks in one request, each with an answer of its own.
	more, err := c.EnqueueBatch(ctx, []client.NewTask{
		{Command: "invoice", Payload: order{2}, Options: []client.EnqueueOption{client.Key("order-2")}},
		{Command: "mail", Payload: "ada@example.com", Options: []client.EnqueueOption{client.Key("mail-2")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	tasks := []*client.Enqueued{first}
	for _, answer := range more {
		if answer.Err != nil {
			log.Fatal(answer.Err)
		}
		tasks = append(tasks, answer.Enqueued)
	}
	for _, task := range tasks {
		done, err := client.ResultOf[receipt](ctx, c, task.TaskID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(done.Text)
	}
}
