package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"codeq/client"
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
