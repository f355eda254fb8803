package client

import (
	"context"
	"io"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// mutes is a client of two nodes: the first takes requests and says nothing for so long, the second
// answers at once.
func mutes(t *testing.T, think time.Duration) *Client {
	t.Helper()
	answer := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(taskBody('a'))) + "\r\nConnection: close\r\n\r\n" + taskBody('a')
	c, err := New("http://mute.test,http://good.test", WithNotices(func(string) {}), WithDial(func(_ context.Context, _, address string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer func() { _ = far.Close() }() // the client sees it
			if _, err := far.Read(make([]byte, 1<<16)); err != nil {
				return
			}
			if address == "mute.test:80" {
				time.Sleep(think) // in a bubble
			}
			_, _ = io.WriteString(far, answer) // the client sees it
			_, _ = io.Copy(io.Discard, far)    // until the client closes it
		}()
		return near, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A node that takes a request and does not answer is left for the next one, if the request may be
// sent twice.
func TestANodeThatHangsIsLeft(t *testing.T) {
	for _, x := range []struct {
		name string
		ask  func(ctx context.Context, c *Client) error
		took time.Duration
		at   string
		err  bool
	}{
		{"a read", func(ctx context.Context, c *Client) error { _, err := c.Task(ctx, wire.TaskID{1}); return err }, answerSoon, "http://good.test", false},
		{"a task with a key", func(ctx context.Context, c *Client) error { _, err := c.Enqueue(ctx, "c", 1, Key("k")); return err }, answerSoon + time.Second, "http://good.test", false},
		{"a task without a key", func(ctx context.Context, c *Client) error { _, err := c.Enqueue(ctx, "c", 1); return err }, answerTimeout, "http://good.test", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mutes(t, time.Hour)
				defer time.Sleep(2 * time.Hour) // the nodes end
				defer c.Close()
				began := time.Now()
				err := x.ask(t.Context(), c)
				if took := time.Since(began); (err != nil) != x.err || took > x.took || c.URL() != x.at {
					t.Errorf("it took %v, ended with %v, and %s is next", took, err, c.URL())
				}
			})
		})
	}
}

// A node that is slow alone, while the other was lost, gets the whole time.
func TestTheLastNodeGetsTheWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mutes(t, answerTimeout-time.Second)
		defer time.Sleep(2 * time.Hour) // the nodes end
		defer c.Close()
		c.nodes.lostAt[1].Store(time.Now().UnixMilli())
		if _, err := c.Task(t.Context(), wire.TaskID{1}); err != nil || c.URL() != "http://mute.test" {
			t.Errorf("ended with %v, and %s is next", err, c.URL())
		}
	})
}

// A read that a node without a leader refuses goes to the next node.
func TestAReadLeavesANodeWithoutALeader(t *testing.T) {
	a, b := newNode(t), newNode(t)
	c := newClient(t, a.URL, b.URL)
	a.says(`{"error":"no leader","code":"not_leader","retryable":true}`)
	if !b.took(t, c) || a.asked.Load() != 1 {
		t.Error("the next node was not asked")
	}
}
