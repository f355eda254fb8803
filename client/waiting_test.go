package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// waiters are the calls that wait for a server which is not there yet, each with
// what the server says when it is. A link is good enough when it is refused.
var waiters = map[string]struct {
	call func(context.Context, *Client) error
	good string
}{
	"a task with a key": {func(ctx context.Context, c *Client) error {
		_, err := c.Enqueue(ctx, "c", 1, Key("k"))
		return err
	}, plain(202, taskBody('a'))},
	"a result": {func(ctx context.Context, c *Client) error {
		_, err := c.Result(ctx, taskID('a'))
		return err
	}, plain(200, resultBody())},
	"a claim": {func(ctx context.Context, c *Client) error {
		_, err := c.Claim(ctx, ClaimOptions{Wait: time.Hour})
		return err
	}, plain(200, claimedBody('a'))},
	"a session": {func(ctx context.Context, c *Client) error {
		_, err := c.Dial(ctx, SessionOptions{})
		return unlessForbidden(err)
	}, coded(403, wire.CodeForbidden)},
	"a worker": {func(ctx context.Context, c *Client) error {
		return unlessForbidden(Work(ctx, c, "c", func(context.Context, any) (any, error) { return nil, nil }))
	}, coded(403, wire.CodeForbidden)},
}

func unlessForbidden(err error) error {
	var refusal *wire.Error
	if errors.As(err, &refusal) && refusal.Code == wire.CodeForbidden {
		return nil
	}
	return err
}

// A caller that waits for a server is told so at once and each half a minute, and the pauses
// grow.
func TestU09CallsThatWaitAlsoWaitForAServerThatIsNotThere(t *testing.T) {
	for name, test := range waiters {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, append(slices.Repeat([]string{refuses}, 24), test.good)...)
				var told []time.Duration
				began := time.Now()
				c.notice = func(sentence string) {
					if !strings.HasPrefix(sentence, "no codeq server answers at http://queue.test") {
						t.Errorf("it says %q", sentence)
					}
					told = append(told, time.Since(began).Truncate(30*time.Second))
				}
				if err := test.call(context.Background(), c); err != nil || len(s.said) > 0 {
					t.Fatalf("error %v after %d tries", err, s.tries)
				}
				took := time.Since(began)
				if took < 45*time.Second || took > 3*time.Minute || len(told) != 1+int(took/(30*time.Second)) && len(told) != int(took/(30*time.Second)) {
					t.Errorf("25 tries in %s, told after %v", took, told)
				}
			})
		})
	}
}

func TestU09WhoWantsNoWaitingIsToldAtOnce(t *testing.T) {
	for name, test := range waiters {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, refuses)
				WithoutWaiting()(c)
				began := time.Now()
				var nobody *UnreachableError
				if err := test.call(context.Background(), c); !errors.As(err, &nobody) || s.tries != 1 || time.Since(began) != 0 {
					t.Errorf("error %v after %d tries in %s", err, s.tries, time.Since(began))
				}
			})
		})
	}
}

// A session that has its own patience has it from the first try on.
func TestU09ASessionGivesUpTheFirstTimeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.unreachable.Store(true)
		began := time.Now()
		_, err := s.client.Dial(context.Background(), SessionOptions{GiveUpAfter: time.Minute})
		var nobody *UnreachableError
		if !errors.As(err, &nobody) || !strings.HasPrefix(err.Error(), "the wait of 1m0s is over") || time.Since(began) != time.Minute {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
	})
}

// A worker that is told to end has nothing to wait for while it has no session,
// whether nobody is there, the server is silent, or has no room for it.
func TestU09DrainEndsAWorkerThatNeverHadASession(t *testing.T) {
	dials := map[string]func() (net.Conn, error){
		"nobody": func() (net.Conn, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} },
		"silent": func() (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }() // it ends with the client's side
			return near, nil
		},
		"full": func() (net.Conn, error) {
			s := &script{t: t, said: []string{coded(429, wire.CodeRateLimited)}}
			return s.dial(context.Background(), "", "")
		},
	}
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New("queue.test", WithDial(func(context.Context, string, string) (net.Conn, error) { return dial() }))
				if err != nil {
					t.Fatal(err)
				}
				w, err := c.NewWorker(WorkerOptions{Commands: []string{"a"}, Handler: panicking})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- w.Run(context.Background()) }()
				time.Sleep(2 * time.Second)
				began := time.Now()
				w.Drain()
				if err := <-ended; err != nil || time.Since(began) != 0 {
					t.Errorf("Run returned %v after %s", err, time.Since(began))
				}
			})
		})
	}
}

// Without an option the notices go to the log of the process.
func TestU09NoticesGoToTheDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(t, refuses, plain(202, taskBody('a')))
		if _, err := c.Enqueue(context.Background(), "c", 1, Key("k")); err != nil {
			t.Error(err)
		}
	})
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "no codeq server answers at http://queue.test") {
		t.Errorf("the log says %q", said)
	}
}

// A request for a session leaves here as it should be. When it is refused for its
// form, something on the way has changed it.
func TestX04AProxyThatBreaksTheUpgradeIsNamed(t *testing.T) {
	for _, said := range []string{
		plain(400, `{"error":"a session is a WebSocket: send Connection: Upgrade and Upgrade: websocket","code":"invalid_argument"}`),
		plain(426, "Upgrade Required"),
	} {
		c, _ := scripted(t, said)
		_, err := c.Dial(context.Background(), SessionOptions{})
		if err == nil || !strings.Contains(err.Error(), "a proxy on the way may have removed part of it") {
			t.Errorf("after %q: %v", said, err)
		}
	}
	c, _ := scripted(t, coded(403, wire.CodeForbidden))
	if _, err := c.Dial(context.Background(), SessionOptions{}); err == nil || strings.Contains(err.Error(), "proxy") {
		t.Errorf("a refusal that no proxy makes: %v", err)
	}
}
