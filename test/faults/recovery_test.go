package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// The server is killed at random while tasks are taken, finished and lost. After
// each start every task in progress has a deadline, and when nobody works any
// more nothing stays in progress; what is counted is what is there.
func TestA17NothingInProgressWithoutDeadline(t *testing.T) {
	x := newSite(t)
	l := newLedger(x)
	var stops []func()
	for i := range 3 {
		stops = append(stops, x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("hand ", i), window: 5,
			lease: 1, takes: 5 * time.Millisecond}).run))
	}
	// One of them takes longer than its lease.
	stops = append(stops, x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: "slow", window: 5, lease: 1,
		takes: 1500 * time.Millisecond}).run))
	chance := rand.New(rand.NewPCG(1, 7))
	var ids []wire.TaskID
	for range scale(5, 200) {
		ids = append(ids, x.post(command, 60, 0)...)
		pause(x.ctx, time.Duration(chance.IntN(150))*time.Millisecond)
		x.server.Kill()
		x.server.Start()
		for _, id := range ids[max(0, len(ids)-100):] {
			if task := x.read(id); task.Status == wire.StatusInProgress && task.LeaseUntilMs == 0 {
				t.Errorf("task %v is in progress without a deadline", id)
			}
		}
	}
	for _, stop := range stops {
		stop()
	}
	x.eventually(resumeGrace+slack, "nothing is in progress", func() bool { return x.figures(command).InProgress == 0 })
	var counted wire.QueueFigures
	for _, id := range ids {
		switch task := x.read(id); task.Location {
		case wire.LocationPending:
			counted.Ready++
		case wire.LocationDelayed:
			counted.Delayed++
		case wire.LocationDead:
			counted.Dead++
		case wire.LocationInProgress:
			t.Errorf("task %v is in progress: %+v", id, task)
		}
	}
	if q := x.figures(command); q.Ready+q.Delayed != counted.Ready+counted.Delayed || q.Dead != counted.Dead {
		t.Errorf("the queue says %+v, its tasks %+v", q, counted)
	}
}

// Workers on several queues and the server are killed in turn. What was
// acknowledged is completed, dead or still there, exactly.
func TestA18HandOverSurvivesKills(t *testing.T) {
	commands := []string{"a", "b", "c", "d", "e"}
	x := newSite(t)
	l := newLedger(x)
	var team []*hand
	for i := range 3 {
		h := &hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("hand ", i), commands: commands, window: 5, lease: 2,
			takes: 100 * time.Millisecond} // so slow that every kill falls into the work
		team = append(team, h)
		x.inBackground(h.run)
	}
	var ids []wire.TaskID
	for n := range scale(6, 200) {
		for _, c := range commands {
			ids = append(ids, x.post(c, scale(10, 25), 0)...)
		}
		pause(x.ctx, 300*time.Millisecond)
		if n%2 == 0 {
			team[n%len(team)].kill()
			continue
		}
		x.server.Kill()
		x.server.Start()
	}
	for _, id := range ids {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Errorf("task %v is %+v", id, record)
		}
	}
	for _, c := range commands {
		if q := x.figures(c); q.Ready+q.Delayed+q.InProgress+q.Dead != 0 {
			t.Errorf("at the end there is %+v", q)
		}
	}
}

// Very many leases end at once. All tasks are there again soon, and producers
// do not notice.
func TestA19MassExpiry(t *testing.T) {
	tasks, workers := scale(4000, 200_000), scale(4, 20)
	x := newSite(t)
	ids := x.post(command, tasks, 0)
	var team []*blackbox.Peer
	for i := range workers {
		team = append(team, x.worker(x.server.Addr, fmt.Sprint("doomed ", i), tasks/workers, 3600)) // it ends with the grace
	}
	x.inProgress(tasks, scale(patience, 5*time.Minute))
	for _, p := range team {
		p.Close()
	}
	var took []time.Duration
	began := time.Now()
	x.eventually(resumeGrace+patience, "all are ready again", func() bool {
		asked := time.Now()
		x.post("other", 1, 0)
		took = append(took, time.Since(asked))
		return x.figures(command).Ready == int64(tasks)
	})
	slices.Sort(took)
	late := took[len(took)*99/100]
	t.Logf("%d tasks were ready again after %v; %d tasks were posted meanwhile, the slowest in %v", tasks, time.Since(began),
		len(took), took[len(took)-1])
	// Somebody who waits for all the leases would wait for much longer.
	if late > scale(10*time.Second, 2*time.Second) {
		t.Errorf("while leases ended, the slowest enqueues took %v", late)
	}
	l := newLedger(x)
	x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: "next", window: 1000, lease: 60}).run)
	x.eventually(scale(patience, 10*time.Minute), "all are done", func() bool {
		completed, _ := l.counts()
		return completed == len(ids)
	})
	if l.most > 1 {
		t.Errorf("a task has %d attempts", l.most)
	}
}

// The server is killed at the moment when very many leases end. Whatever of that
// was done, the rest happens after the start, without anybody asking.
func TestA59InterruptedRecoveryGoesOn(t *testing.T) {
	tasks := scale(1000, 10_000)
	const leaseSeconds = 2
	x := newSite(t)
	x.post(command, tasks, 0)
	w := x.worker(x.server.Addr, "doomed", tasks, leaseSeconds)
	frames := x.takeAll(w, tasks, scale(patience, 5*time.Minute))
	w.Close()
	end := time.UnixMilli(frames[len(frames)-1].LeaseUntilMs)
	for range scale(2, 5) {
		pause(x.ctx, time.Until(end))
		x.server.Kill()
		x.server.Start()
	}
	x.eventually(resumeGrace+patience, "all are ready again", func() bool {
		q := x.figures(command)
		return q.Ready == int64(tasks) && q.InProgress == 0
	})
}

// Two workers take different commands, and both lose their leases. Each task
// goes to whoever asked for its command, and what nobody asked for stays.
func TestA56UnknownCommandsAreLeftAlone(t *testing.T) {
	x := newSite(t)
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	names := []string{"a", "b"}
	peers := make(map[string]*blackbox.Peer)
	for _, name := range names {
		peers[name] = x.peer(x.server.Addr, name)
		if err := peers[name].Subscribe(ctx, name, 10, 1); err != nil {
			t.Fatal(err)
		}
		x.post(name, 3, 0)
	}
	x.post("nobody", 3, 0)
	for _, name := range names {
		for _, f := range x.takeAll(peers[name], 6, patience) { // each once more after its lease
			if f.Task.Command != name {
				t.Errorf("the worker of %s has a task of %s", name, f.Task.Command)
			}
		}
	}
	if q := x.figures("nobody"); q.Ready != 3 || q.InProgress != 0 {
		t.Errorf("tasks that nobody takes: %+v", q)
	}
}

// Servers and workers are restarted one after the other under load, in order.
// Nothing is lost, nothing is done twice, nothing fails, and no task waits.
func TestA54RollingRestart(t *testing.T) {
	const workers = 4
	x := newSite(t, "--shutdown-grace", "5s")
	var mu sync.Mutex
	began := make(map[wire.TaskID]int)
	finished := make(map[wire.TaskID]time.Time)
	grace := scale(time.Second, 10*time.Second)
	note := func(id wire.TaskID, done bool) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			began[id]++
			return
		}
		finished[id] = time.Now()
	}
	start := func(n int) (stop func()) { return x.inBackground(rollingWorker(x, fmt.Sprint("w", n), grace, note)) }
	var stops []func()
	for n := range workers {
		stops = append(stops, start(n))
	}
	posted := make(map[wire.TaskID]time.Time)
	var posting sync.WaitGroup
	over, end := context.WithCancel(x.ctx)
	posting.Go(func() { x.postSteadily(over, posted) })
	for n := range workers {
		pause(x.ctx, scale(time.Second, 10*time.Second))
		stops[n]()
		stops[n] = start(n)
		if n%2 == 1 {
			if took := x.server.Stop(); took > 5*time.Second+slack {
				t.Errorf("the server took %v to stop", took)
			}
			x.server.Start()
		}
	}
	pause(x.ctx, time.Second)
	end()
	posting.Wait()
	x.judgeRestart(posted, func() (map[wire.TaskID]int, map[wire.TaskID]time.Time) {
		mu.Lock()
		defer mu.Unlock()
		return began, finished
	})
}

// postSteadily posts tasks until ctx ends; what has no answer is asked again
// with the same key.
func (x *site) postSteadily(ctx context.Context, posted map[wire.TaskID]time.Time) {
	chance := rand.New(rand.NewPCG(5, 4))
	for n := 0; ctx.Err() == nil; n++ {
		millis := 20 + chance.IntN(100)
		if n%10 == 0 {
			millis = scale(2000, 30_000) // longer than the grace of a worker
		}
		body := fmt.Sprintf(`{"command":"c","payload":%d,"idempotencyKey":"n%d"}`, millis, n)
		asked := time.Now()
		for {
			task, err := x.api.Post(x.ctx, body)
			if err == nil {
				posted[task.ID] = asked
				break
			}
			var refusal *wire.Error
			if errors.As(err, &refusal) && !refusal.Code.Retryable() {
				x.t.Errorf("post: %v", err)
				return
			}
			pause(x.ctx, lookAgain)
		}
		pause(ctx, 15*time.Millisecond)
	}
}
