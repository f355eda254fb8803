package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// A key with a limit of one has one task in progress, over sessions, a kill and changes while
// it is in use, the tasks of a key go in their order, and every one is done.
func TestP04LimitOfAKeyHolds(t *testing.T) {
	const keys, each = 6, 20
	x := newSite(t, "--shards", "4")
	c := x.sdk(x.server.Addr)
	set := func(n int) {
		if _, err := c.SetQueue(x.ctx, command, &wire.QueueSettings{PerKey: wire.PerKey{InProgress: n}, LeaseSeconds: 120}); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	var running [keys]handlers
	var mu sync.Mutex
	var began [keys][]int
	for n := range 3 {
		x.inBackground(func(ctx context.Context) {
			// It ends with the test.
			_ = client.Work(ctx, x.sdk(x.server.Addr), command, func(ctx context.Context, job struct{ Key, N int }) (any, error) {
				mu.Lock()
				began[job.Key] = append(began[job.Key], job.N)
				mu.Unlock()
				running[job.Key].run(ctx, 10*time.Millisecond)
				return nil, nil
			}, client.Window(20), client.WorkerID(fmt.Sprint("worker", n)))
		})
	}
	post := func() {
		for n := range each {
			for key := range keys {
				if _, err := c.Enqueue(x.ctx, command, map[string]int{"Key": key, "N": n}, client.ConcurrencyKey(fmt.Sprint("customer ", key))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	ended := func() (n int64) {
		for key := range keys {
			n += running[key].ended.Load()
		}
		return n
	}
	post()
	x.eventually(patience, "some are done", func() bool { return ended() > keys*each/4 })
	mu.Lock()
	for key := range keys {
		if !slices.IsSorted(began[key]) {
			t.Errorf("key %d began %v, want them in order", key, began[key])
		}
	}
	mu.Unlock()
	x.server.Kill()
	x.server.Start()
	x.eventually(patience, "all are done", func() bool { return ended() >= keys*each && x.figures(command).InProgress == 0 })
	for key := range keys {
		if most := running[key].most.Load(); most != 1 {
			t.Errorf("key %d had %d in progress at once, want 1", key, most)
		}
	}

	set(2)
	post()
	x.eventually(patience, "the rest is done", func() bool { return ended() >= 2*keys*each && x.figures(command).InProgress == 0 })
	for key := range keys {
		if most := running[key].most.Load(); most > 2 {
			t.Errorf("key %d had %d in progress at once, want at most 2", key, most)
		}
	}
	if f := x.figures(command); f.Ready+f.Limited != 0 {
		t.Errorf("%d tasks are left ready, %d limited", f.Ready, f.Limited)
	}
}

// A task that its key holds back says so, and so does the queue; bulk requests take it for a
// ready one.
func TestP05AReasonNamesTheKey(t *testing.T) {
	x := newSite(t)
	x.cli("queue", "set", command, "--per-key-in-progress", "1", "--create")
	var ids []wire.TaskID
	for range 3 {
		task, err := x.sdk(x.server.Addr).Enqueue(x.ctx, command, 1, client.ConcurrencyKey("acme"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.TaskID)
	}
	p := x.worker(x.server.Addr, "w", 10, 60)
	x.take(p, patience)
	want := wire.Waiting{Reason: wire.WaitingLimit, Limit: wire.LimitKeyInProgress, Key: "acme", Used: 1, Of: 1}
	x.eventually(patience, "the last one says why it waits", func() bool {
		seen := x.read(ids[2])
		return seen.Waiting != nil && *seen.Waiting == want && seen.Location == wire.LocationLimited && seen.ConcurrencyKey == "acme"
	})
	if f := x.figures(command); f.Limited != 2 || f.Ready != 0 || f.InProgress != 1 {
		t.Errorf("the queue says %+v", f)
	}
	x.printed(fmt.Sprintf("2 tasks of %s are cancelled", command), "task", "cancel", command, "--state", "ready", "--all")
	if f := x.figures(command); f.Limited != 0 || f.InProgress != 1 {
		t.Errorf("after the cancel the queue says %+v", f)
	}
}
