package faults

import (
	"context"
	"iter"
	"strings"
	"testing"

	"codeq/client"
	"codeq/wire"
)

// watching is a watch that a test reads step by step.
type watching struct {
	t    *testing.T
	next func() (client.News, error, bool)
}

func (x *site) watch(subscriptions ...client.Subscription) *watching {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	next, stop := iter.Pull2(x.sdk(x.server.Addr).Watch(ctx, subscriptions...))
	x.t.Cleanup(func() {
		stop()
		cancel()
	})
	return &watching{t: x.t, next: next}
}

// until reads news until one is as it should be.
func (w *watching) until(what string, holds func(*client.News) bool) {
	w.t.Helper()
	var last client.News
	for {
		news, err, more := w.next()
		if err != nil || !more {
			w.t.Fatalf("%s: the watch ends with %v after %+v", what, err, last)
		}
		if last = news; holds(&news) {
			return
		}
	}
}

// A page hears of a row that leaves its list, and how many tasks came; nothing moves by itself. Over
// a kill -9 it begins anew.
func TestE06APageHearsOfItsRows(t *testing.T) {
	x := newSite(t)
	ids := x.post(command, 3, 0)
	const ready, running = 0, 1
	w := x.watch(client.PageWatch{Command: command, State: wire.StateReady}, client.PageWatch{Command: command, State: wire.StateInProgress})
	rows := map[int]int{}
	above := map[int]int64{}
	heard := func(what string, wantReady, wantRunning int, wantAbove int64) {
		t.Helper()
		w.until(what, func(n *client.News) bool {
			rows[n.Of], above[n.Of] = len(n.Tasks), n.Above
			return rows[ready] == wantReady && rows[running] == wantRunning && above[ready] == wantAbove
		})
	}
	heard("three are ready", 3, 0, 0)
	x.post(command, 2, 0)
	heard("two came", 3, 0, 2)
	worker := x.worker(x.server.Addr, "ada", 1, 60)
	first := x.take(worker, patience)
	heard("one is taken", 2, 0, 2)
	if above[running] > 1 || first.Task.ID != ids[0] && first.Task.ID != ids[1] && first.Task.ID != ids[2] {
		t.Errorf("%v was taken, above are %v", first.Task.ID, above)
	}
	x.server.Kill()
	x.server.Start()
	heard("the pages after the kill", 4, 1, 0)
	worker = x.worker(x.server.Addr, "bob", 4, 60)
	for range 4 {
		x.complete(worker, x.take(worker, patience), `{}`)
	}
	heard("all that were ready are done", 0, 1, 0)
}

// A worker that comes is a row, one that loses its socket with a task is in its grace, and one
// that loses it without leaves.
func TestE07WorkersComeAndGo(t *testing.T) {
	x := newWatchfulSite(t)
	w := x.watch(client.SessionWatch{})
	states := map[string]wire.SessionFigures{}
	heard := func(what string, holds func() bool) {
		t.Helper()
		w.until(what, func(n *client.News) bool {
			clear(states)
			for _, s := range n.Sessions {
				states[s.WorkerID] = s
			}
			return holds()
		})
	}
	heard("nobody is there", func() bool { return len(states) == 0 })
	ada, bob := x.worker(x.server.Addr, "ada", 1, 60), x.peer(x.server.Addr, "bob")
	heard("both are there", func() bool { return states["ada"].Window == 1 && states["bob"].State == wire.SessionLive })
	x.post(command, 1, 0)
	x.take(ada, patience)
	heard("ada holds a task", func() bool { return states["ada"].Held == 1 })
	ada.Close()
	bob.Close()
	heard("ada is in its grace, bob is gone", func() bool {
		_, there := states["bob"]
		return states["ada"].State == wire.SessionGrace && states["ada"].GraceUntilMs > 0 && !there
	})
	x.server.Kill()
	x.server.Start()
	heard("nobody is there after the kill", func() bool { return len(states) == 0 })
}

// What needs a person is said while it does, and not longer.
func TestE08NeedsComeAndGo(t *testing.T) {
	x := newSite(t)
	w := x.watch(client.ServerWatch{})
	needs := func(what string, count int64) {
		t.Helper()
		w.until(what, func(n *client.News) bool {
			if n.Server.Subscribers != 1 || len(n.Server.Shards) == 0 {
				t.Errorf("the server says %+v", n.Server)
			}
			if count == 0 {
				return len(n.Needs) == 0
			}
			return len(n.Needs) == 1 && n.Needs[0].Reason == wire.NeedNoWorker && n.Needs[0].Command == command && n.Needs[0].Count == count
		})
	}
	needs("nothing at first", 0)
	x.post(command, 3, 0)
	needs("nobody takes the tasks", 3)
	worker := x.worker(x.server.Addr, "ada", 3, 60)
	for range 3 {
		x.complete(worker, x.take(worker, patience), `{}`)
	}
	needs("somebody has", 0)
}

// A stream of one task goes on after the last event that the client has, and begins anew behind a
// kill, after which the server has no events.
func TestE09AStreamOfATaskResumes(t *testing.T) {
	x := newSite(t)
	id := x.post(command, 1, 0)[0]
	kind := "task&taskId=" + id.String()
	f := x.stream(kind, "", "")
	if at := nextOf[*wire.WatchSnapshot](f); at.Task == nil || at.Task.Status != wire.StatusPending {
		t.Fatalf("the stream begins with %+v", at)
	}
	worker := x.worker(x.server.Addr, "ada", 1, 60)
	task := x.take(worker, patience)
	if e := nextOf[*wire.WatchEvent](f); e.Cause != "grant" {
		t.Errorf("the first event is %+v", e)
	}
	f.close()
	x.complete(worker, task, `{}`)
	f = x.stream(kind, f.lastID, "")
	nextOf[*wire.WatchWelcome](f)
	if e, ok := f.next().(*wire.WatchEvent); !ok || e.Cause != "result" {
		t.Errorf("after the welcome comes %+v", e)
	}
	f.close()
	creation, _, _ := strings.Cut(f.lastID, "/")
	x.server.Kill()
	x.server.Start()
	for _, after := range []string{creation + "/0,0,0,0", "elsewhere/0,0,0,0"} {
		f = x.stream(kind, after, "")
		nextOf[*wire.WatchWelcome](f)
		if at, ok := f.next().(*wire.WatchSnapshot); !ok || at.Task.Status != wire.StatusCompleted {
			t.Errorf("after %s comes %+v", after, at)
		}
		f.close()
	}
}
