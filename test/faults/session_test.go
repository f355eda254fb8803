package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// A worker that is killed again and again and comes back under the same name
// leaves no session behind that tasks are sent to.
func TestA05DeadSubscriptionsAreRemoved(t *testing.T) {
	killed, vanished := scale(25, 90), scale(5, 10)
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	for range killed {
		p := x.worker(x.server.Addr, "same", 1, 3600)
		x.post(command, 1, 0)
		x.take(p, patience)
		p.Close()
	}
	for range vanished {
		p := x.worker(proxy.Addr, "same", 1, 3600)
		x.post(command, 1, 0)
		x.take(p, patience)
	}
	proxy.HalfOpen()
	x.eventually(noticeWithin, "no session is live", func() bool { return x.live() == 0 })
	real := x.worker(x.server.Addr, "same", 10, 60)
	x.post(command, 1, 0)
	for range killed + vanished + 1 {
		x.complete(real, x.take(real, resumeGrace+patience), `{}`)
	}
	if sessions := x.sessions(); len(sessions) != 1 || sessions[0].Held != 0 {
		t.Errorf("at the end there are %+v", sessions)
	}
}

// A short loss of the connection in the middle of a task takes nothing from a
// worker that lives.
func TestA08ShortDropStealsNothing(t *testing.T) {
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	began, cut := make(chan struct{}), scale(2*time.Second, 5*time.Second)
	x.inBackground(func(ctx context.Context) {
		_ = client.Work(ctx, x.sdk(proxy.Addr), command, func(ctx context.Context, _ struct{}) (struct{}, error) {
			// Only what the server knows to have arrived is kept over a lost
			// connection, and the word of that is on its way.
			pause(ctx, aWhile)
			close(began)
			pause(ctx, cut+3*time.Second)
			return struct{}{}, context.Cause(ctx)
		}, client.Lease(30*time.Second)) // it ends with the test
	})
	id := x.post(command, 1, 0)[0]
	<-began
	rival := x.worker(x.server.Addr, "rival", 1, 60)
	proxy.Refuse()
	proxy.Cut()
	x.nothing(rival, cut)
	proxy.Heal()
	if record := x.outcome(id); record.Status != wire.StatusCompleted {
		t.Errorf("the task is %+v", record)
	}
	if task := x.read(id); task.Deliveries != 1 || task.Attempts != 0 {
		t.Errorf("a dropped connection cost %+v", task)
	}
}

// A worker that is away for longer than its grace has lost its task, and is told
// so when it comes back.
func TestA08LongDropLosesTheTask(t *testing.T) {
	x := newSite(t)
	w := x.worker(x.server.Addr, "away", 1, 3600)
	x.post(command, 1, 0)
	f := x.take(w, patience)
	if err := w.Say(&wire.Received{Through: f.Seq}); err != nil {
		t.Fatal(err)
	}
	key := w.Welcome.Resume
	x.post(command, 1, 0) // answered behind the confirmation
	w.Close()
	rival := x.worker(x.server.Addr, "rival", 2, 60)
	x.take(rival, patience) // the one that waited
	again := x.take(rival, resumeGrace+slack)
	if again.Task.ID != f.Task.ID || again.Task.Attempts != 1 {
		t.Errorf("the rival has %+v", again.Task)
	}
	back, err := blackbox.Dial(x.ctx, x.server.Addr, &wire.Hello{WorkerID: "away", Resume: key})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if len(back.Welcome.Held) != 0 {
		t.Errorf("it still holds %v", back.Welcome.Held)
	}
	x.refused(back.Complete(x.ctx, blackbox.RefOf(f), `{}`), wire.CodeLeaseLost)
	x.complete(rival, again, `{}`)
}

// Whatever connections do, no delivery reaches a handler twice, and a worker
// that asks for what it has no more is told the same every time.
func TestA09NoDeliveryTwice(t *testing.T) {
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	type delivery struct {
		id     wire.TaskID
		number int
	}
	var mu sync.Mutex
	seen := make(map[delivery]int)
	for n := range 3 {
		w, err := x.sdk(proxy.Addr).NewWorker(client.WorkerOptions{
			Commands: []string{command}, Window: 5, Lease: 10 * time.Second, WorkerID: fmt.Sprint("w", n),
			Handler: func(ctx context.Context, d client.Delivery) client.Outcome {
				mu.Lock()
				seen[delivery{d.Task.ID, d.Task.Deliveries}]++
				mu.Unlock()
				pause(ctx, 50*time.Millisecond)
				return client.Complete([]byte(`{}`))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		x.inBackground(func(ctx context.Context) { _ = w.Run(ctx) }) // ends with the test
	}
	ids := x.post(command, scale(200, 5000), 0)
	chance := rand.New(rand.NewPCG(9, 9))
	for range scale(12, 100) {
		pause(x.ctx, time.Duration(100+chance.IntN(300))*time.Millisecond)
		proxy.Cut()
	}
	for _, id := range ids {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Fatalf("task %v is %+v", id, record)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for d, times := range seen {
		if times > 1 {
			t.Errorf("delivery %d of task %v was handled %d times", d.number, d.id, times)
		}
	}
	x.unknownTokens(ids[0])
}

// unknownTokens asks for deliveries that there are not.
func (x *site) unknownTokens(known wire.TaskID) {
	x.t.Helper()
	p := x.peer(x.server.Addr, "stranger")
	for _, id := range []wire.TaskID{known, {1, 2, 3}} {
		for range 3 {
			ok, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
				return &wire.Heartbeat{Ref: ref, Tasks: []wire.TaskRef{{TaskID: id, Token: wire.Token{7}}}}
			})
			if err != nil || len(ok.Lost) != 1 || ok.Lost[0].TaskID != id {
				x.t.Errorf("a heartbeat for an unknown delivery is answered with %+v (%v)", ok, err)
			}
		}
	}
}

// All workers are killed at once, as by a deploy that went wrong. Everything
// they had is delivered again, nothing dies of it, and nobody gets more than it
// has room for.
func TestA10AllWorkersKilledAtOnce(t *testing.T) {
	workers, window := scale(10, 50), 10
	x := newSite(t)
	var team []*blackbox.Peer
	for i := range workers {
		team = append(team, x.worker(x.server.Addr, fmt.Sprint("old ", i), window, 3600))
	}
	ids := x.post(command, workers*window, 0)
	x.inProgress(workers*window, patience)
	for _, p := range team {
		p.Close()
	}
	l := newLedger(x)
	for i := range workers {
		x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("new ", i), window: window, lease: 60,
			takes: 50 * time.Millisecond}).run)
	}
	x.eventually(resumeGrace+patience, "all tasks are done by the new ones", func() bool {
		if held := x.figures(command).InProgress; held > int64(workers*window) {
			t.Errorf("%d tasks are in progress, there is room for %d", held, workers*window)
		}
		completed, _ := l.counts()
		return completed == len(ids)
	})
	if q := x.figures(command); q.Dead != 0 || l.most > 1 {
		t.Errorf("the queue is %+v and a task has %d attempts", q, l.most)
	}
}

// An old and a new worker of one name overlap during a deploy. They are two, and
// a task is never left with one that is gone.
func TestA58SameNameOverlaps(t *testing.T) {
	x := newSite(t)
	chance := rand.New(rand.NewPCG(5, 8))
	for range scale(6, 100) {
		old := x.worker(x.server.Addr, "w1", 1, 2)
		id := x.post(command, 1, 0)[0]
		f := x.take(old, patience)
		fresh := x.worker(x.server.Addr, "w1", 1, 2)
		if err := old.Say(&wire.Drain{}); err != nil {
			t.Fatal(err)
		}
		x.eventually(patience, "two sessions of one name, one of them draining", func() bool { return x.pair() })
		pause(x.ctx, time.Duration(chance.IntN(50))*time.Millisecond)
		finishes := chance.IntN(2) == 0
		if finishes {
			err := old.Complete(x.ctx, blackbox.RefOf(f), `{"by":"old"}`)
			if err != nil {
				// The machine was so slow that the lease is over.
				x.refused(err, wire.CodeLeaseLost)
				finishes = false
			}
		}
		old.Close()
		if !finishes {
			x.complete(fresh, x.take(fresh, resumeGrace+slack), `{"by":"new"}`)
		}
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Errorf("the task is %+v", record)
		}
		fresh.Close()
	}
	x.eventually(patience, "no session is live", func() bool { return x.live() == 0 })
	if q := x.figures(command); q.InProgress != 0 {
		t.Errorf("the queue is %+v", q)
	}
}

// pair says whether there are two live sessions of one name, told apart.
func (x *site) pair() bool {
	x.t.Helper()
	states := make(map[string]int)
	ids := make(map[string]bool)
	for _, s := range x.sessions() {
		if s.State != wire.SessionGrace && s.WorkerID == "w1" {
			states[s.State]++
			ids[s.SessionID] = true
		}
	}
	return len(ids) == 2 && states[wire.SessionLive] == 1 && states[wire.SessionDraining] == 1
}
