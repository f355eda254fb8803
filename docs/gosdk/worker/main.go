package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"codeq/client"
)

type order struct {
	Number int `json:"number"`
}

type receipt struct {
	Text string `json:"text"`
}

func invoice(_ context.Context, o order) (receipt, error) {
	if o.Number <= 0 {
		return receipt{}, client.Permanent(errors.New("there is no such order")) // no other try would help
	}
	return receipt{fmt.Sprintf("invoice for order %d", o.Number)}, nil // any other error is tried again
}

func mail(_ context.Context, to string) (receipt, error) {
	return receipt{"mail to " + to}, nil
}

// logged goes around every handler.
func logged(next client.Handler) client.Handler {
	return func(ctx context.Context, d client.Delivery) client.Outcome {
		began := time.Now()
		outcome := next(ctx, d)
		slog.Info("task done", "task", d.Task.ID, "command", d.Task.Command, "outcome", outcome.Kind, "took", time.Since(began))
		return outcome
	}
}

func main() {
	c, err := client.New(cmp.Or(os.Getenv("CODEQ_URL"), "http://127.0.0.1:8080"), client.WithToken(os.Getenv("CODEQ_TOKEN")), client.WithLogger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var handlers client.Handlers
	client.Handle(&handlers, "invoice", invoice)
	client.Handle(&handlers, "mail", mail)
	handlers.Use(logged)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.WorkAll(ctx, &handlers, client.Window(8), client.WorkerID("office")); err != nil {
		log.Fatal(err)
	}
}
