package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// desk answers requests for one result inside a bubble. Each answer of the
// list is given to one request; "wait" keeps it for the seconds it asked for
// and says not yet, "break" cuts the connection.
type desk struct {
	t       *testing.T
	answers []string
	asked   []string
	bodies  []string
}

func (d *desk) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go d.serve(far)
	return near, nil
}

func (d *desk) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			d.t.Error(err)
		}
		d.bodies = append(d.bodies, string(body))
		waitSeconds := request.URL.Query().Get("waitSeconds")
		d.asked = append(d.asked, waitSeconds)
		if len(d.answers) == 0 {
			d.t.Error("asked once more than there are answers")
			return
		}
		answer := d.answers[0]
		d.answers = d.answers[1:]
		if answer == "break" {
			return
		}
		status := 200
		if answer == "wait" {
			span, err := time.ParseDuration(waitSeconds + "s")
			if err != nil {
				d.t.Error(err)
			}
			time.Sleep(span) // of the bubble
			answer, status = `{"error":"no result yet","code":"result_not_found","status":"PENDING","retryable":true}`, 404
		}
		if strings.HasPrefix(answer, `{"error"`) {
			status = 404
		}
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(answer), answer); err != nil {
			return
		}
	}
}

func resultBody() string {
	body := append([]byte(`{"task":`), taskBody('a')...)
	record := &wire.ResultRecord{TaskID: taskID('a'), Status: wire.StatusCompleted, Result: []byte(`{"sha":"1"}`), CompletedAtMs: 5}
	return string(append(wire.AppendResultRecord(append(body, `,"result":`...), record), '}'))
}

// openDesk is a desk with these answers and a client of it.
func openDesk(t *testing.T, answers ...string) (*Client, *desk) {
	t.Helper()
	d := &desk{t: t, answers: answers}
	c, err := New("queue.test", WithDial(d.dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, d
}

// asking waits for a result at a desk with these answers.
func asking(t *testing.T, waitFor time.Duration, answers ...string) (*ResultAnswer, *desk, time.Duration, error) {
	t.Helper()
	c, d := openDesk(t, answers...)
	began := time.Now()
	got, err := c.ResultWithin(context.Background(), taskID('a'), waitFor)
	return got, d, time.Since(began), err
}

func TestResultWaitsInPiecesUntilItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, d, took, err := asking(t, 150*time.Second, "wait", "wait", resultBody())
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Result.Result) != `{"sha":"1"}` || got.Task.ID != taskID('a') {
			t.Errorf("got %+v", got)
		}
		if asked := strings.Join(d.asked, " "); asked != "60 60 30" || took != 2*time.Minute {
			t.Errorf("asked for %s s and took %s, want 60 60 30 and 2 minutes", asked, took)
		}
	})
}

func TestResultSaysNotYetWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, took, err := asking(t, 2500*time.Millisecond, "wait", "wait", "wait", "wait", "wait", "wait", "wait", "wait")
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeResultNotFound || refusal.Status != wire.StatusPending {
			t.Errorf("error %v, want result_not_found with the status", err)
		}
		if took != 2500*time.Millisecond {
			t.Errorf("it took %s, want 2.5 s", took)
		}
	})
}

// A context that ends with a cause of its own says why nobody waits any more. That
// is not a server that does not answer, nor worth another try.
func TestWhoGivesUpIsToldWhy(t *testing.T) {
	enough := errors.New("enough")
	type dial func(ctx context.Context, network, address string) (net.Conn, error)
	mute := func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }() // it ends with the client's side
		return near, nil
	}
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}
	result := func(ctx context.Context, c *Client) error {
		_, err := c.ResultWithin(ctx, taskID('a'), time.Minute)
		return err
	}
	for name, test := range map[string]struct {
		dial   dial
		asking func(context.Context, *Client) error
	}{
		"an answer":    {mute, result},
		"a connection": {never, result},
		"one for a claim": {never, func(ctx context.Context, c *Client) error {
			_, err := c.Claim(ctx, ClaimOptions{Commands: []string{"a"}})
			return err
		}},
		"one for a session": {never, func(ctx context.Context, c *Client) error {
			_, err := c.connect(ctx, sessionDialect, &wire.Hello{})
			return err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New("queue.test", WithDial(test.dial))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(3*time.Second, func() { cancel(enough) })
			began := time.Now()
			err = test.asking(ctx, c)
			var nobody *UnreachableError
			if !errors.Is(err, enough) || errors.As(err, &nobody) || time.Since(began) != 3*time.Second {
				t.Errorf("who waits for %s hears %v after %s", name, err, time.Since(began))
			}
		})
	}
}

func TestResultWithoutWaitingAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, took, err := asking(t, 0, "wait")
		if err == nil || took != 0 || len(d.asked) != 1 {
			t.Errorf("error %v after %s and %d requests, want not yet at once", err, took, len(d.asked))
		}
	})
}

func TestResultOutlivesAServerThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, d, _, err := asking(t, 3*time.Minute, "wait", "break", "break", resultBody()); err != nil {
			t.Errorf("error %v after %d requests", err, len(d.asked))
		}
	})
}

func TestResultDoesNotWaitForATaskThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, took, err := asking(t, time.Minute, `{"error":"no such task","code":"task_not_found","retryable":false}`)
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeTaskNotFound || took != 0 {
			t.Errorf("error %v after %s, want task_not_found at once", err, took)
		}
	})
}

func TestResultDoesNotHammerAServerThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notYet := `{"error":"no result yet","code":"result_not_found","retryable":true}`
		answers := make([]string, 100)
		for i := range answers {
			answers[i] = notYet
		}
		_, d, _, err := asking(t, 10*time.Second, answers...)
		if err == nil || len(d.asked) > 20 {
			t.Errorf("error %v after %d requests in 10 s, want few", err, len(d.asked))
		}
	})
}
