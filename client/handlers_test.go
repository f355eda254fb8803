package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"codeq/wire"
)

// A worker of several commands runs the handler of each task inside everything that was put around.
func TestHandlersRunTheOneOfTheCommand(t *testing.T) {
	var h Handlers
	var said []string
	Handle(&h, "add", func(_ context.Context, n []int) (map[string]int, error) {
		return map[string]int{"sum": n[0] + n[1]}, nil
	})
	Handle(&h, "fail", func(context.Context, string) (struct{}, error) { return struct{}{}, errors.New("no") })
	for _, name := range []string{"outer", "inner"} {
		h.Use(func(next Handler) Handler {
			return func(ctx context.Context, d Delivery) Outcome {
				said = append(said, name)
				return next(ctx, d)
			}
		})
	}
	run := func(command, payload string) Outcome {
		return h.Handler()(t.Context(), Delivery{Task: &wire.Task{Command: command, Payload: []byte(payload)}})
	}
	if out := run("add", "[1,2]"); out.Kind != Completed || string(out.Result) != `{"sum":3}` {
		t.Errorf("add: %+v", out)
	}
	if out := run("fail", `"x"`); out.Kind != Nacked || out.Reason != "no" {
		t.Errorf("fail: %+v", out)
	}
	if out := run("add", `"x"`); out.Kind != Nacked || !strings.Contains(out.Reason, "does not fit") {
		t.Errorf("a payload that does not fit: %+v", out)
	}
	if out := run("other", "1"); out.Kind != Released || !out.why.NotStarted {
		t.Errorf("a command without a handler: %+v", out)
	}
	Handle(&h, wire.AllCommands, func(context.Context, int) (map[string]int, error) { return nil, nil })
	if out := run("other", "1"); out.Kind != Completed {
		t.Errorf("a command with the handler of all: %+v", out)
	}
	if want := slices.Repeat([]string{"outer", "inner"}, 5); !slices.Equal(said, want) {
		t.Errorf("around the handlers ran %q", said)
	}
	if got := h.Commands(); !slices.Equal(got, []string{"*", "add", "fail"}) {
		t.Errorf("the commands are %q", got)
	}
}

func TestHandlersThatDoNotFitAreAnErrorOfWorkAll(t *testing.T) {
	c, err := New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	var h Handlers
	Handle(&h, "a", func(context.Context, int) (int, error) { return 0, nil })
	Handle(&h, "b", func(context.Context, int) (map[string]int, error) { return nil, nil })
	Handle(&h, "b", func(context.Context, int) (map[string]int, error) { return nil, nil })
	err = c.WorkAll(t.Context(), &h)
	for _, want := range []string{"a result is a JSON object", "the command b has two handlers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if err := c.WorkAll(t.Context(), &Handlers{}); err == nil {
		t.Error("a worker without a handler starts")
	}
}

// A task that a handler posts belongs to the trace of the handler's task, if it names no other.
func TestATaskOfAHandlerHasItsTrace(t *testing.T) {
	const parent, other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := context.WithValue(t.Context(), taskKey{}, &wire.Task{TraceParent: parent, TraceState: "x=1"})
	r, err := newRequest(ctx, "a", 1, nil)
	if err != nil || r.TraceParent != parent || r.TraceState != "x=1" {
		t.Errorf("the request is %+v, error %v", r, err)
	}
	r, err = newRequest(ctx, "a", 1, []EnqueueOption{Trace(other, "")})
	if err != nil || r.TraceParent != other || r.TraceState != "" {
		t.Errorf("the request is %+v, error %v", r, err)
	}
}
