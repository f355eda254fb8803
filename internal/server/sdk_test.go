package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"codeq/client"
	"codeq/wire"
)

// number and square are a payload and its result.
type number struct{ N int }

type square struct {
	Square   int `json:"square"`
	Attempts int `json:"attempts"`
	Delivery int `json:"delivery"`
}

// squares fails for good at a negative number, asks for another try at the first
// attempt of 3, panics at that of 4, and else does what it is called.
func squares(ctx context.Context, in number) (square, error) {
	task := client.TaskFrom(ctx)
	switch {
	case in.N < 0:
		return square{}, client.Permanent(fmt.Errorf("%d is negative", in.N))
	case in.N == 3 && task.Attempts == 0:
		return square{}, client.RetryIn(0, errors.New("not at the first attempt"))
	case in.N == 4 && task.Attempts == 0:
		panic("not at the first attempt")
	}
	return square{in.N * in.N, task.Attempts, task.Delivery}, nil
}

func TestTheSDKTakesATaskThereAndItsResultBack(t *testing.T) {
	x := openSite(t, t.TempDir())
	c, err := client.New(x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	working, leave := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Work(working, c, "square", squares, client.Window(4)) }()
	for in, want := range map[int]square{2: {4, 0, 1}, 3: {9, 1, 2}, 4: {16, 1, 2}} {
		task, err := c.Enqueue(ctx, "square", number{in}, client.Key(fmt.Sprint(in)), client.Priority(in))
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Enqueue(ctx, "square", number{in}, client.Key(fmt.Sprint(in)), client.Priority(in))
		if err != nil || again.TaskID != task.TaskID || !again.Replayed {
			t.Errorf("the same key again: %+v, error %v", again, err)
		}
		if got, err := client.ResultOf[square](ctx, c, task.TaskID); err != nil || got != want {
			t.Errorf("%d: got %+v, error %v, want %+v", in, got, err, want)
		}
	}
	task, err := c.Enqueue(ctx, "square", number{-1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Result(ctx, task.TaskID)
	var failed *client.TaskError
	if !errors.As(err, &failed) || !strings.Contains(failed.Result.Error, "-1 is negative") || failed.Task.Attempts > 1 {
		t.Errorf("error %v, want a TaskError with the reason after one attempt", err)
	}
	leave()
	if err := <-ended; err != nil {
		t.Errorf("Work returned %v, want nil", err)
	}
}

// A producer's session ends what it has posted: what waits, what runs, whose
// handler learns of it, and nothing that has ended otherwise.
func TestTheSDKCancelsOverAProducersSession(t *testing.T) {
	x := openSite(t, t.TempDir())
	c, err := client.New(x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := c.Dial(ctx, client.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	enqueue := func(command string) wire.TaskID {
		task, err := session.Enqueue(ctx, command, number{1})
		if err != nil {
			t.Fatal(err)
		}
		return task.TaskID
	}
	running, told := make(chan struct{}), make(chan error, 1)
	working, leave := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- client.Work(working, c, "long", func(ctx context.Context, _ number) (square, error) {
			close(running)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return square{}, context.Cause(ctx)
		})
	}()
	waits, runs := enqueue("nobody"), enqueue("long")
	select {
	case <-running:
	case <-ctx.Done():
		t.Fatal("no worker has begun")
	}
	for _, id := range []wire.TaskID{waits, runs, waits} { // the last one is cancelled again
		if err := session.Cancel(ctx, id); err != nil {
			t.Errorf("cancel %v: %v", id, err)
		}
		if got, err := c.Task(ctx, id); err != nil || got.Status != wire.StatusCancelled {
			t.Errorf("the task is %+v (%v)", got, err)
		}
	}
	if err := <-told; !errors.Is(err, client.ErrLeaseLost) {
		t.Errorf("the handler was told %v", err)
	}
	leave()
	if err := <-ended; err != nil {
		t.Errorf("Work returned %v, want nil", err)
	}
	quick := enqueue("square")
	working, leave = context.WithCancel(ctx)
	go func() { ended <- client.Work(working, c, "square", squares) }()
	if _, err := c.Result(ctx, quick); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := <-ended; err != nil {
		t.Errorf("Work returned %v, want nil", err)
	}
	mustRefuseACancel(ctx, t, session, quick, wire.CodeAlreadyTerminal)
	mustRefuseACancel(ctx, t, session, wire.TaskID{1}, wire.CodeTaskNotFound)
}

func mustRefuseACancel(ctx context.Context, t *testing.T, session *client.Session, id wire.TaskID, code wire.Code) {
	t.Helper()
	var refusal *wire.Error
	if err := session.Cancel(ctx, id); !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("cancel %v: %v, want %s", id, err, code)
	}
}
