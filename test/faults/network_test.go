package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// A delivery that is lost on the way does not lock its task for the lease: it
// goes to somebody else as soon as the server knows that the connection is dead,
// and costs no attempt.
func TestA01DeliveryLostOnTheWire(t *testing.T) {
	for name, known := range map[string]struct {
		cut    bool
		within time.Duration
	}{"the connection is cut": {true, slack}, "nobody says anything": {false, noticeWithin}} {
		t.Run(name, func(t *testing.T) {
			x := newWatchfulSite(t)
			const tasks = 20
			proxy := blackbox.NewProxy(t, x.server.Addr)
			x.worker(proxy.Addr, "deaf", tasks, 3600)
			proxy.Silence(blackbox.Down)
			x.post(command, tasks, 10)
			x.inProgress(tasks, patience)
			other := x.worker(x.server.Addr, "other", tasks, 3600)
			if known.cut {
				proxy.Cut()
			}
			for _, f := range x.takeAll(other, tasks, known.within) {
				if f.Task.Attempts != 0 || f.Task.Deliveries != 2 {
					t.Errorf("task %v has %d attempts and %d deliveries", f.Task.ID, f.Task.Attempts, f.Task.Deliveries)
				}
			}
		})
	}
}

// A worker of the SDK whose connection is open and carries nothing notices, and
// connects again; the server closes its side in the same time.
func TestA06StreamOpenedThenSilence(t *testing.T) {
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	connected := make(chan struct{}, 10)
	w, err := x.sdk(proxy.Addr).NewWorker(client.WorkerOptions{
		Commands: []string{command}, Window: 1,
		Handler:   func(context.Context, client.Delivery) client.Outcome { return client.Complete([]byte(`{}`)) },
		Connected: func(*wire.Welcome) { connected <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	x.inBackground(func(ctx context.Context) { _ = w.Run(ctx) }) // ends with the test
	<-connected
	proxy.Silence(blackbox.Up, blackbox.Down)
	proxy.Heal() // for whoever connects again
	select {
	case <-connected:
	case <-time.After(noticeWithin):
		t.Fatal("the worker did not connect again")
	}
	x.eventually(noticeWithin, "the server has closed its side of the silent one", func() bool { return x.live() == 1 })
	if record := x.outcome(x.post(command, 1, 0)[0]); record.Status != wire.StatusCompleted {
		t.Errorf("the task is %+v", record)
	}
}

// A worker that hears nothing is not given tasks because it can still be heard:
// what is on its way to it goes to others, however many heartbeats come.
func TestA07ZombieWorker(t *testing.T) {
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	zombie := x.worker(proxy.Addr, "zombie", 3, 3600)
	proxy.Silence(blackbox.Down)
	x.inBackground(func(ctx context.Context) {
		for ctx.Err() == nil && zombie.Say(&wire.Heartbeat{}) == nil {
			pause(ctx, 100*time.Millisecond)
		}
	})
	x.post(command, 5, 0)
	other := x.worker(x.server.Addr, "other", 10, 3600)
	for _, f := range x.takeAll(other, 5, noticeWithin) {
		if f.Task.Attempts != 0 {
			t.Errorf("task %v has lost an attempt to a worker that never heard of it", f.Task.ID)
		}
	}
	x.eventually(noticeWithin, "the zombie's session is gone", func() bool { return x.live() == 1 })
}

// Proxies on the way cut what is quiet. A session is never quiet for longer than
// a ping, and that is short enough for the usual ones without any setting.
func TestA11IdleConnectionsAreCut(t *testing.T) {
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.CutIdle(2*pingFor + aWhile)
	w := x.worker(proxy.Addr, "quiet", 1, 60)
	select {
	case <-w.Gone():
		t.Fatal("the session was cut for being quiet")
	case <-time.After(scale(3*(2*pingFor+aWhile)/2, 5*time.Minute)):
	}
	began := time.Now()
	x.post(command, 1, 0)
	x.take(w, slack)
	t.Logf("posted and delivered in %v after the quiet", time.Since(began))
	if proxy.Taken() != 1 {
		t.Errorf("the worker connected %d times", proxy.Taken())
	}
	usual := blackbox.Serve(t)
	p, err := blackbox.Dial(x.ctx, usual.Addr, &wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Welcome.PingSeconds > 30 {
		t.Errorf("without a setting the pings come every %d s", p.Welcome.PingSeconds)
	}
}

// A peer that vanished without a word is noticed by its pings. It never holds
// more than its window, and what it holds comes back.
func TestA12HalfOpenConnection(t *testing.T) {
	const window, tasks = 3, 10
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	vanished := x.worker(proxy.Addr, "vanished", window, 3600)
	x.post(command, tasks, 0)
	x.takeAll(vanished, window, patience)
	proxy.HalfOpen()
	if held := x.figures(command).InProgress; held != window {
		t.Errorf("%d tasks are with a worker that has room for %d", held, window)
	}
	x.eventually(noticeWithin, "the session is gone", func() bool { return x.live() == 0 })
	other := x.worker(x.server.Addr, "other", tasks, 3600)
	x.takeAll(other, tasks-window, slack)
	x.takeAll(other, window, resumeGrace+slack)
	if figures := x.figures(command); figures.InProgress != tasks || figures.Ready != 0 {
		t.Errorf("the queue is %+v", figures)
	}
}

// A server that is reached over a slow and stuttering network does the same as
// over a good one.
func TestSlowNetworkChangesNothing(t *testing.T) {
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.Delay(50*time.Millisecond, blackbox.Up, blackbox.Down)
	var done atomic.Int64
	w, err := x.sdk(proxy.Addr).NewWorker(client.WorkerOptions{
		Commands: []string{command}, Window: 10,
		Handler: func(context.Context, client.Delivery) client.Outcome {
			done.Add(1)
			return client.Complete([]byte(`{}`))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	x.inBackground(func(ctx context.Context) { _ = w.Run(ctx) }) // ends with the test
	for _, id := range x.post(command, 50, 1000) {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Errorf("task %v is %+v", id, record)
		}
	}
	if done.Load() != 50 {
		t.Errorf("50 tasks were done %d times", done.Load())
	}
}
