package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"codeq/client"
	"codeq/wire"
)

// photo is the payload of the examples, thumbnail their result.
type photo struct {
	File  string `json:"file"`
	Width int    `json:"width"`
}

type thumbnail struct {
	File string `json:"file"`
}

var errNoImage = errors.New("no image")

// resize stands for the work of a worker.
func resize(_ context.Context, in photo) (thumbnail, error) {
	if in.File == "" {
		return thumbnail{}, client.Permanent(errNoImage) // another try would not help
	}
	return thumbnail{File: "small-" + in.File}, nil
}

// One task and its result.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	task, err := c.Enqueue(ctx, "resize", photo{File: "owl.png", Width: 300}, client.Key("owl-300"))
	if err != nil {
		log.Fatal(err)
	}
	done, err := client.ResultOf[thumbnail](ctx, c, task.TaskID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.File)
}

// A worker that runs eight tasks at a time, and on Ctrl-C lets them end.
func ExampleWork() {
	c, err := client.New("127.0.0.1:8080", client.WithNotices(func(sentence string) { log.Print(sentence) }))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := client.Work(ctx, c, "resize", resize, client.Window(8)); err != nil {
		log.Print(err)
	}
}

// A task for tomorrow, ahead of others, that gives up after two failures.
func ExampleClient_Enqueue() {
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	task, err := c.Enqueue(context.Background(), "resize", photo{File: "owl.png", Width: 300},
		client.Delay(24*time.Hour), client.Priority(7), client.MaxAttempts(2))
	if errors.Is(err, client.ErrOutcomeUnknown) {
		log.Fatal("it may be there or not; a client.Key would have told: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.TaskID)
}

// A request that breaks a rule is refused before it travels.
func ExampleClient_Enqueue_refused() {
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Enqueue(context.Background(), "resize", photo{File: "owl.png"}, client.Priority(10))
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code)
	}
	// Output: invalid_priority
}

// The marks of Permanent and RetryIn leave an error what it was.
func ExamplePermanent() {
	_, err := resize(context.Background(), photo{})
	fmt.Println(err, errors.Is(err, errNoImage))
	// Output: no image true
}

// A handler that waits longer after each failure.
func ExampleRetryIn() {
	fetch := func(ctx context.Context, url string) (map[string]int, error) {
		response, err := http.Get(url)
		if err != nil {
			tries := client.TaskFrom(ctx).Attempts + 1
			return nil, client.RetryIn(time.Duration(tries)*time.Minute, err)
		}
		return map[string]int{"status": response.StatusCode}, response.Body.Close()
	}
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	log.Print(client.Work(context.Background(), c, "fetch", fetch))
}

// What a waiter sees of a task that failed.
func ExampleTaskError() {
	show := func(err error) {
		var failed *client.TaskError
		if errors.As(err, &failed) {
			fmt.Println(failed.Result.Status, failed.Result.Error)
		}
	}
	// As client.ResultOf returns it:
	show(&client.TaskError{Result: &wire.ResultRecord{Status: wire.StatusFailed, Error: "no image"}})
	// Output: FAILED no image
}

// The result of a record that somebody has read already.
func ExampleResultAnswer_Decode() {
	// As Client.Result returns it:
	answer := &client.ResultAnswer{Result: &wire.ResultRecord{Result: []byte(`{"file":"small-owl.png"}`)}}
	var done thumbnail
	if err := answer.Decode(&done); err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.File)
	// Output: small-owl.png
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
		err := session.EnqueueAsync(ctx, request, func(_ *client.Enqueued, err error) { answered <- err })
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

// Second thoughts, over the session that posted the task.
func ExampleSession_Cancel() {
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
	task, err := session.Enqueue(ctx, "resize", photo{File: "owl.png", Width: 300})
	if err != nil {
		log.Fatal(err)
	}
	var refusal *wire.Error
	switch err := session.Cancel(ctx, task.TaskID); {
	case err == nil:
		fmt.Println("nobody will do it, and whoever had begun was told")
	case errors.As(err, &refusal) && refusal.Code == wire.CodeAlreadyTerminal:
		fmt.Println("too late, it is", refusal.Status)
	default:
		log.Fatal(err)
	}
}

// What happens to the tasks of some queues, over restarts of the server.
func ExampleClient_Watch() {
	c, err := client.New("127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for news, err := range c.Watch(context.Background(), client.EventWatch{Commands: []string{"billing.*"}}) {
		switch {
		case err != nil:
			log.Fatal(err)
		case news.Gap != nil:
			fmt.Println("missed", news.Gap.Missed, "events:", news.Gap.Reason)
		case news.Event != nil:
			fmt.Println(news.Event.Task, news.Event.Cause, news.Event.To)
		}
	}
}

// A worker in the protocol's own terms, for an hour.
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
