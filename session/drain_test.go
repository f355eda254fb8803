package session

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// finishSlowly keeps the one task of a client alive by heartbeats, six leases
// long, and then completes it.
func finishSlowly(t *testing.T, c *client, task *wire.TaskFrame) {
	t.Helper()
	for n := range 12 {
		time.Sleep(5 * time.Second) // time of the bubble that this runs in
		c.say(fmt.Sprintf(`{"type":"heartbeat","ref":%d}`, 100+n))
		if ok := next[*wire.OK](c); ok.LeaseUntilMs != time.Now().Add(10*time.Second).UnixMilli() || len(ok.Lost) > 0 {
			t.Fatalf("heartbeat %d says %+v, want 10 s from now", n, ok)
		}
	}
	c.send(&wire.Result{
		Ref: ref(200), TaskRef: wire.TaskRef{TaskID: task.Task.ID, Token: task.Token},
		ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
	})
	if ok := next[*wire.OK](c); ok.TaskID != task.Task.ID {
		t.Errorf("ok names %v, want %v", ok.TaskID, task.Task.ID)
	}
}

func TestLeasesAreRenewedWhileAClientDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, _ := b.open(`{"type":"hello"}`)
		c.say(`[{"type":"subscribe","commands":["a"],"window":1,"leaseSeconds":10},{"type":"enqueue","command":"a","payload":1}]`)
		task := next[*wire.TaskFrame](c)
		c.say(`[{"type":"drain","ref":1},{"type":"enqueue","command":"a","payload":2}]`)
		next[*wire.OK](c)
		finishSlowly(t, c, task)
		c.silent() // the second one is for another worker
		other, _ := b.open(`{"type":"hello"}`)
		other.say(`{"type":"subscribe","commands":["a"]}`)
		if got := next[*wire.TaskFrame](other); string(got.Task.Payload) != "2" || got.Task.Deliveries != 1 {
			t.Errorf("the other worker got %s, delivery %d", got.Task.Payload, got.Task.Deliveries)
		}
	})
}

func TestLeasesAreRenewedWhileTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, _ := b.open(`{"type":"hello"}`)
		c.say(`[{"type":"subscribe","commands":["a"],"window":2,"leaseSeconds":10},{"type":"enqueue","command":"a","payload":1}]`)
		task := next[*wire.TaskFrame](c)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.registry.Shutdown(ctx) }()
		if got := next[*wire.Draining](c); got.GraceSeconds != 120 {
			t.Errorf("grace is %d seconds, want 120", got.GraceSeconds)
		}
		finishSlowly(t, c, task)
		if code := c.closeCode(); code != CloseRestart {
			t.Errorf("closed with %d, want %d", code, CloseRestart)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
