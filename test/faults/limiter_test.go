package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// handlers counts how many run at once, and how many have ended.
type handlers struct{ now, most, ended atomic.Int64 }

func (h *handlers) run(ctx context.Context, lasts time.Duration) {
	now := h.now.Add(1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	pause(ctx, lasts)
	h.now.Add(-1)
	h.ended.Add(1)
}

// A limit of seven is never eight, over shards, sessions, a kill and a change while it is in
// use; and it is never fewer while there is work.
func TestP01LimitInProgressHolds(t *testing.T) {
	const limit, tasks = 7, 200
	x := newSite(t, "--shards", "4")
	c := x.sdk(x.server.Addr)
	set := func(n int) {
		if _, err := c.SetQueue(x.ctx, command, &wire.QueueSettings{Spread: true, MaxInProgress: n, LeaseSeconds: 120}); err != nil {
			t.Fatal(err)
		}
	}
	set(limit)
	var at handlers
	for n := range 3 {
		x.inBackground(func(ctx context.Context) {
			// It ends with the test.
			_ = client.Work(ctx, x.sdk(x.server.Addr), command, func(ctx context.Context, _ struct{ N int }) (any, error) {
				at.run(ctx, 30*time.Millisecond)
				return nil, nil
			}, client.Window(20), client.WorkerID(fmt.Sprint("worker", n)))
		})
	}
	x.post(command, tasks, 0)
	x.eventually(patience, "half is done", func() bool { return at.ended.Load() > tasks/2 })
	x.server.Kill()
	x.server.Start()
	x.eventually(patience, "all is done", func() bool { return at.ended.Load() >= tasks && x.figures(command).InProgress == 0 })
	if most := at.most.Load(); most != limit {
		t.Errorf("%d were in progress at once, want %d", most, limit)
	}

	at.most.Store(0)
	set(2)
	x.post(command, 40, 0)
	x.eventually(patience, "the rest is done", func() bool { return at.ended.Load() >= tasks+40 })
	if most := at.most.Load(); most != 2 {
		t.Errorf("%d were in progress at once, want 2", most)
	}
}

// A task that a limit holds back says which.
func TestP02AReasonNamesTheLimit(t *testing.T) {
	x := newSite(t)
	c := x.sdk(x.server.Addr)
	if _, err := c.SetQueue(x.ctx, command, &wire.QueueSettings{MaxInProgress: 1}); err != nil {
		t.Fatal(err)
	}
	ids := x.post(command, 3, 0)
	p := x.worker(x.server.Addr, "w", 10, 60)
	first := x.take(p, patience)
	want := wire.Waiting{Reason: wire.WaitingLimit, Limit: wire.LimitInProgress, Used: 1, Of: 1, Behind: 1, BehindKnown: true}
	x.eventually(patience, "the last one says why it waits", func() bool {
		w := x.read(ids[2]).Waiting
		return w != nil && *w == want
	})
	x.complete(p, first, `{}`)
	if second := x.take(p, patience); second.Task.ID != ids[1] {
		t.Errorf("%v came, want %v", second.Task.ID, ids[1])
	}
}

// No second has more deliveries than the queue may start, and a backlog gets nearly as many.
func TestP03StartsOfASecondHold(t *testing.T) {
	const perSecond, tasks = 20, 60
	x := newSite(t, "--shards", "4")
	c := x.sdk(x.server.Addr)
	if _, err := c.SetQueue(x.ctx, command, &wire.QueueSettings{Spread: true, StartsPerSecond: perSecond}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := 0
	for n := range 2 {
		x.inBackground(func(ctx context.Context) {
			// It ends with the test.
			_ = client.Work(ctx, x.sdk(x.server.Addr), command, func(context.Context, struct{ N int }) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				seen++
				return nil, nil
			}, client.Window(50), client.WorkerID(fmt.Sprint("worker", n)))
		})
	}
	began := time.Now()
	x.post(command, tasks, 0)
	x.eventually(patience, "all are done", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen == tasks
	})
	// The first second begins without a start to spare, so they need three in all, less the
	// time between a start and its arrival.
	if took := time.Since(began); took < (tasks-perSecond)*time.Second/perSecond {
		t.Errorf("%d tasks took %v at %d starts in a second", tasks, took, perSecond)
	}
}
