package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// A system that is nearly full and loses a worker again and again does not fall
// into a circle of late answers and repeated deliveries: once workers stay, the
// backlog falls, no answer is stale any more, and nothing was done twice.
func TestA02PushUnderRestartsRecovers(t *testing.T) {
	const hands, window = 4, 5
	takes := scale(250*time.Millisecond, 100*time.Millisecond)
	x := newSite(t)
	l := newLedger(x)
	var team []*hand
	for i := range hands {
		h := &hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("hand ", i), window: window, lease: 30, takes: takes}
		team = append(team, h)
		x.inBackground(h.run)
	}
	// Nine tenths of what all four can do.
	perTick := 9 * hands * window / 10
	var ids []wire.TaskID
	every, rounds := scale(time.Second, 10*time.Second), scale(4, 12)
	for n := range rounds {
		for until := time.Now().Add(every); time.Now().Before(until); {
			ids = append(ids, x.post(command, perTick, 0)...)
			pause(x.ctx, takes)
		}
		team[n%hands].kill()
	}
	// What the killed ones had confirmed waits for them; then all is done.
	x.eventually(resumeGrace+patience, "the queue is empty", func() bool {
		q := x.figures(command)
		return q.Ready+q.Delayed+q.InProgress == 0
	})
	_, staleBefore := l.counts()
	calm := x.post(command, 50, 0)
	for _, id := range append(ids, calm...) {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Fatalf("task %v is %+v", id, record)
		}
	}
	if _, stale := l.counts(); stale != staleBefore {
		t.Errorf("%d answers were stale after the kills had stopped", stale-staleBefore)
	}
	t.Logf("%d tasks, %d kills, %d stale answers while they went on", len(ids), rounds, staleBefore)
}

// A worker that never answers is sent what it has room for and no more, whatever
// waits, and the server's memory does not grow with it.
func TestA03WorkerThatNeverAnswers(t *testing.T) {
	const window, bytes = 5, 64 << 10
	tasks := scale(200, 10_000)
	x := newSite(t)
	x.post(command, tasks, bytes)
	before := x.server.ResidentBytes()
	stuck := x.worker(x.server.Addr, "stuck", window, 3600)
	x.takeAll(stuck, window, patience)
	x.nothing(stuck, time.Second)
	if grown := x.server.ResidentBytes() - before; grown > window*bytes+32<<20 {
		t.Errorf("the server grew by %d KiB for %d tasks of 64 KiB", grown>>10, window)
	}
	x.drain("other", tasks-window)
}

// drain has one worker with a window of 100 complete so many tasks.
func (x *site) drain(name string, tasks int) {
	x.t.Helper()
	other := x.worker(x.server.Addr, name, 100, 60)
	late := time.Now().Add(scale(patience, 10*time.Minute))
	for range tasks {
		x.complete(other, x.take(other, time.Until(late)), `{}`)
	}
}

// A worker that stops reading its socket fills no memory and holds up nobody: it
// is cut, and what did not reach it goes to others at no cost.
func TestA03WorkerThatDoesNotRead(t *testing.T) {
	const bytes = 64 << 10
	tasks := scale(200, 10_000)
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	x.worker(proxy.Addr, "stuck", 10_000, 3600)
	proxy.Hold(blackbox.Down)
	x.post(command, tasks, bytes)
	before := x.server.ResidentBytes()
	late := time.Now().Add(scale(patience, 10*time.Minute))
	other := x.worker(x.server.Addr, "other", 100, 60)
	for range tasks {
		f := x.take(other, time.Until(late))
		if f.Task.Attempts != 0 {
			t.Errorf("task %v lost an attempt to a worker that did not read", f.Task.ID)
		}
		x.complete(other, f, `{}`)
	}
	if grown := x.server.ResidentBytes() - before; grown > 64<<20 {
		t.Errorf("the server grew by %d MiB over a worker that does not read", grown>>20)
	}
	x.eventually(patience, "only the other session is live", func() bool { return x.live() == 1 })
}

// A worker with a large window does not park what others could do: tasks go to
// whoever has least in hand, and what it hands back is done at once.
func TestA14PrefetchHoarding(t *testing.T) {
	const tasks, quick = 50, 4
	x := newSite(t)
	hoarder := x.worker(x.server.Addr, "hoarder", 100, 3600)
	l := newLedger(x)
	var team []*hand
	for i := range quick {
		h := &hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("quick ", i), window: 10, lease: 60,
			takes: 20 * time.Millisecond}
		team = append(team, h)
		x.inBackground(h.run)
	}
	x.eventually(patience, "all workers wait for tasks", func() bool {
		return !slices.ContainsFunc(team, func(h *hand) bool { return !h.seated.Load() })
	})
	ids := x.post(command, tasks, 0)
	x.eventually(patience, "the quick ones are done", func() bool {
		completed, _ := l.counts()
		return completed+len(hoarder.Tasks) == tasks
	})
	held := len(hoarder.Tasks)
	if held > 2*tasks/(quick+1) {
		t.Errorf("the first worker holds %d of %d tasks, four others are idle", held, tasks)
	}
	began := time.Now()
	// It begins none of what it has, as one that works on one thing at a time.
	x.releaseAll(hoarder, held)
	x.eventually(slack, "the others have done what was handed back", func() bool {
		completed, _ := l.counts()
		return completed == tasks
	})
	t.Logf("it held %d; handed back and done in %v", held, time.Since(began))
	for _, id := range ids {
		if task := x.read(id); task.Attempts != 0 {
			t.Errorf("task %v has %d attempts for being handed back", id, task.Attempts)
		}
	}
}

// releaseAll closes the window of a worker and hands back what it has.
func (x *site) releaseAll(p *blackbox.Peer, n int) {
	x.t.Helper()
	if err := p.Say(&wire.Window{Size: 0}); err != nil {
		x.t.Fatal(err)
	}
	for range n {
		f := x.take(p, slack)
		_, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
			return &wire.Release{Ref: ref, TaskRef: blackbox.RefOf(f)}
		})
		if err != nil {
			x.t.Errorf("release %v: %v", f.Task.ID, err)
		}
	}
}
