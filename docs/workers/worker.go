package main

import (
	"cmp"
	"codeq/client"
	"context"
	"log"
	"os"
	"os/signal"
	"strconv"
)

func main() {
	c, err := client.New(cmp.Or(os.Getenv("CODEQ_URL"), "http://127.0.0.1:8080"), client.WithToken(os.Getenv("CODEQ_TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	square := func(_ context.Context, d client.Delivery) client.Outcome {
		if n, err := strconv.Atoi(string(d.Task.Payload)); err == nil {
			return client.Complete([]byte(`{"square":` + strconv.Itoa(n*n) + `}`))
		}
		return client.Nack("the payload must be an integer") // tried again later; client.Fail is for good
	}
	worker, err := c.NewWorker(client.WorkerOptions{Commands: []string{"square"}, Window: 8, WorkerID: "go", Handler: square})
	if err != nil {
		log.Fatal(err)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	log.Print(worker.Run(ctx))
}
