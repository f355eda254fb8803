package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"

	"codeq/client"
)

func square(_ context.Context, n int) (map[string]int, error) {
	return map[string]int{"square": n * n}, nil // an error has the task tried again later
}

func main() {
	c, err := client.New(cmp.Or(os.Getenv("CODEQ_URL"), "http://127.0.0.1:8080"), client.WithToken(os.Getenv("CODEQ_TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := client.Work(ctx, c, "square", square, client.Window(8), client.WorkerID("go")); err != nil {
		log.Fatal(err)
	}
}
