package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"codeq/wire"
)

// changes are all requests that change something and are sent once, with what to
// do when their answer is lost.
var changes = map[string]struct {
	do     func(context.Context, *Client) error
	remedy string
}{
	"enqueue": {func(ctx context.Context, c *Client) error { _, err := c.Enqueue(ctx, "c", 1); return err },
		`look with "codeq tasks" whether the task is there before it is posted again`},
	"cancel": {func(ctx context.Context, c *Client) error { _, err := c.Cancel(ctx, taskID('a')); return err }, repeatable},
	"replay": {func(ctx context.Context, c *Client) error { _, err := c.Replay(ctx, taskID('a')); return err },
		`look with "codeq task ` + taskID('a').String() + `" before it is done again`},
	"pause":  {func(ctx context.Context, c *Client) error { _, err := c.PauseQueue(ctx, "c"); return err }, repeatable},
	"resume": {func(ctx context.Context, c *Client) error { _, err := c.ResumeQueue(ctx, "c"); return err }, repeatable},
	"queue set": {func(ctx context.Context, c *Client) error {
		_, err := c.SetQueue(ctx, "c", &wire.QueueSettings{})
		return err
	}, repeatable},
	"replay all": {func(ctx context.Context, c *Client) error {
		_, err := c.ReplayTasks(ctx, BulkQuery{Command: "c"})
		return err
	}, "it can be done again, and then concerns those that are left"},
	"purge": {func(ctx context.Context, c *Client) error {
		_, err := c.PurgeTasks(ctx, BulkQuery{Command: "c"})
		return err
	}, "it can be done again, and then concerns those that are left"},
	"complete": {settling(Complete([]byte(`{}`))), repeatable},
	"fail":     {settling(Fail("no")), repeatable},
	"nack":     {settling(Nack("no")), repeatable},
	"release":  {settling(Release()), repeatable},
	"abandon": {func(ctx context.Context, c *Client) error {
		_, err := c.Claimed(ref('a')).Abandon(ctx)
		return err
	}, repeatable},
	"heartbeat": {func(ctx context.Context, c *Client) error {
		_, err := c.Claimed(ref('a')).Heartbeat(ctx, 0)
		return err
	}, repeatable},
}

func settling(out Outcome) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		_, err := c.Claimed(ref('a')).End(ctx, out)
		return err
	}
}

// However the answer to a change is lost, the error says that it may be done, why
// nobody knows, and what to do.
func TestF01EveryChangeWithoutAnAnswerIsInDoubt(t *testing.T) {
	for name, change := range changes {
		for how, lost := range map[string]struct{ said, want string }{
			"no byte":      {ends, "the connection to http://queue.test ended before the answer came"},
			"10 bytes":     {"HTTP/1.1 2", "http://queue.test did not answer in HTTP"},
			"a status":     {"HTTP/1.1 200 OK\r\nContent-Le", "the answer of http://queue.test broke off"},
			"half a body":  {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "the answer of http://queue.test broke off"},
			"a proxy":      {plain(504, "<html>no answer</html>"), "http://queue.test answered 504 Gateway Timeout"},
			"another page": {plain(200, "<html>sign in</html>"), "read "},
		} {
			synctest.Test(t, func(t *testing.T) {
				c, _ := scripted(t, lost.said)
				err := change.do(context.Background(), c)
				inDoubtWith(t, name+", "+how, err, lost.want, change.remedy)
			})
		}
	}
}

func TestF01AnInterruptOfASentChangeIsInDoubt(t *testing.T) {
	for name, change := range changes {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			c, err := New("queue.test", WithDial(func(context.Context, string, string) (net.Conn, error) { return near, nil }))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithCancelCause(context.Background())
			go func() {
				defer func() { _ = far.Close() }() // the client has gone
				request, err := http.ReadRequest(bufio.NewReader(far))
				if err == nil {
					_, _ = io.Copy(io.Discard, request.Body) // as far as it came
				}
				cancel(errTest)
			}()
			err = change.do(ctx, c)
			inDoubtWith(t, name, err, "ask http://queue.test: "+errTest.Error(), change.remedy)
			if !errors.Is(err, errTest) {
				t.Errorf("%s: error %v does not wrap the cause", name, err)
			}
		})
	}
}

func inDoubtWith(t *testing.T, name string, err error, why, remedy string) {
	t.Helper()
	if !errors.Is(err, ErrOutcomeUnknown) || !strings.HasPrefix(err.Error(), ErrOutcomeUnknown.Error()+": "+why) ||
		!strings.Contains(err.Error(), "; "+remedy) {
		t.Errorf("%s: error %v, want a doubt because %q and the remedy %q", name, err, why, remedy)
	}
}
