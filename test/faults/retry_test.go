package faults

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

const (
	// keptBytes is what the directory of a server may have beside its live data:
	// logs, memtables and levels that are not compacted yet.
	keptBytes = 256 << 20
	// memoryBytes is what a server aims at when nobody says. docs/config.md allows
	// it besideBytes more, for the program itself and what the collector is late with.
	memoryBytes, besideBytes = 512 << 20, 64 << 20
)

// inOrder kills the server and has its directory examined.
func (x *site) inOrder() {
	x.t.Helper()
	x.server.Kill()
	program, err := blackbox.Program()
	if err != nil {
		x.t.Fatal(err)
	}
	if said, err := exec.CommandContext(x.ctx, program, "doctor", x.server.Dir).CombinedOutput(); err != nil {
		x.t.Errorf("doctor: %v\n%s", err, said)
	}
}

// A task whose every attempt fails is tried as often as it may be, never before
// its wait is over, and is one dead letter then.
func TestA25RetriesAreNotTakenForACircle(t *testing.T) {
	times := scale(6, 50)
	const leaseSeconds, waitMs = 600, 1000
	x := newSite(t)
	task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":%d}`, command, times))
	if err != nil {
		t.Fatal(err)
	}
	w := x.worker(x.server.Addr, "failing", 1, leaseSeconds)
	var granted int64
	for n := range times {
		f := x.take(w, patience)
		if f.Task.ID != task.ID || f.Task.Attempts != n || f.Task.Deliveries != n+1 {
			t.Fatalf("delivery %d is %+v", n+1, f.Task)
		}
		at := f.LeaseUntilMs - leaseSeconds*1000
		if n > 0 && at < granted+waitMs {
			t.Errorf("delivery %d came %d ms after the one before, want %d", n+1, at-granted, waitMs)
		}
		granted = at
		if _, err := w.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
			return &wire.Nack{Ref: ref, TaskRef: blackbox.RefOf(f), NackRequest: wire.NackRequest{DelaySeconds: waitMs / 1000, Reason: "no"}}
		}); err != nil {
			t.Fatal(err)
		}
	}
	x.nothing(w, lookAgain)
	dead := x.read(task.ID)
	if dead.Location != wire.LocationDead || dead.Attempts != times || dead.Deliveries != times || dead.Error != "no" {
		t.Errorf("at the end the task is %+v", dead)
	}
	if q := x.figures(command); q.Dead != 1 || q.Ready+q.Delayed+q.InProgress != 0 {
		t.Errorf("the queue is %+v", q)
	}
	x.inOrder()
}

// hopeless is a worker that fails whatever it gets. It counts how often each
// task came.
type hopeless struct {
	x    *site
	mu   sync.Mutex
	came map[wire.TaskID]int
}

func (h *hopeless) run(ctx context.Context, p *blackbox.Peer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Gone():
			h.x.t.Errorf("the session ended with %d", p.CloseCode())
			return
		case f := <-p.Tasks:
			h.mu.Lock()
			h.came[f.Task.ID]++
			if came := h.came[f.Task.ID]; f.Task.Deliveries != came || f.Task.Attempts != 0 {
				h.x.t.Errorf("task %v came %d times and is %+v", f.Task.ID, came, f.Task)
			}
			h.mu.Unlock()
			if p.Say(&wire.Nack{TaskRef: blackbox.RefOf(f), NackRequest: wire.NackRequest{DelaySeconds: 0, Reason: "never"}}) != nil {
				return // told of by the end of the session
			}
		}
	}
}

// replayDead replays everything that is dead by now, a part in each request, and
// returns how many that were. The bound in time is the server's: what dies again
// meanwhile is not replayed again (N23).
func (x *site) replayDead() (all int) {
	x.t.Helper()
	var part struct {
		Replayed int
		Cursor   string
	}
	for more := true; more; more = part.Cursor != "" {
		body := `{"limit":100}`
		if part.Cursor != "" {
			body = fmt.Sprintf(`{"limit":100,"cursor":%q}`, part.Cursor)
		}
		part.Cursor = ""
		decode(x.t, x.ask(http.MethodPost, "/admin/queues/"+command+"/dlq/replay", body).Body, &part)
		all += part.Replayed
	}
	return all
}

// Very many dead letters are replayed into the hands of a worker that fails them
// again, and once more. Each comes back to the dead letters once each time, none
// is lost, and producers, memory and disk do not suffer.
func TestA25ReplayIntoFailureGoesRoundOnce(t *testing.T) {
	tasks := scale(1000, 100_000)
	const replays = 2
	x := newSite(t)
	var ids []wire.TaskID
	for len(ids) < tasks {
		ids = append(ids, x.postOnce(min(tasks-len(ids), 1000))...)
	}
	h := &hopeless{x: x, came: make(map[wire.TaskID]int)}
	p := x.worker(x.server.Addr, "hopeless", 1000, 600)
	stop := x.inBackground(func(ctx context.Context) { h.run(ctx, p) })
	for round := range replays + 1 {
		if round > 0 {
			if n := x.replayDead(); n != tasks {
				t.Errorf("round %d: %d dead letters were replayed, want %d", round, n, tasks)
			}
		}
		var took []time.Duration
		x.eventually(scale(patience, 15*time.Minute), fmt.Sprintf("all are dead after %d replays", round), func() bool {
			began := time.Now()
			x.post("other", 1, 0)
			took = append(took, time.Since(began))
			q := x.figures(command)
			return q.Dead == int64(tasks) && q.Ready+q.Delayed+q.InProgress == 0
		})
		slices.Sort(took)
		late := took[len(took)*99/100]
		t.Logf("round %d: %d enqueues beside it, the slowest but one in a hundred in %v; %d MiB on the disk, %d MiB of memory",
			round, len(took), late, x.server.DirBytes()>>20, x.server.ResidentBytes()>>20)
		if *heavyFlag && late > 2*time.Second {
			t.Errorf("beside a replay enqueues took %v", late)
		}
	}
	stop()
	x.judgeDead(h, ids, replays+1)
	if n := x.server.ResidentBytes(); n > memoryBytes+besideBytes {
		t.Errorf("%d MiB of memory", n>>20)
	}
	if n := x.server.DirBytes(); n > keptBytes+int64(tasks)*4096 {
		t.Errorf("%d MiB on the disk", n>>20)
	}
	x.inOrder()
}

// postOnce makes tasks of one attempt each.
func (x *site) postOnce(n int) []wire.TaskID {
	x.t.Helper()
	batch := make([]wire.EnqueueRequest, n)
	for i := range batch {
		batch[i] = wire.EnqueueRequest{Command: command, Payload: []byte("1"), MaxAttempts: 1}
	}
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, batch)))
	if err != nil {
		x.t.Fatalf("post %d tasks: %v", n, err)
	}
	return idsIn(x.t, answer.Body)
}

// judgeDead looks at how often each task came, and at some of them. Their histories have each
// delivery and each replay.
func (x *site) judgeDead(h *hopeless, ids []wire.TaskID, times int) {
	x.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, id := range ids {
		if h.came[id] != times {
			x.t.Errorf("task %v came %d times, want %d", id, h.came[id], times)
		}
		if i%max(1, len(ids)/200) > 0 {
			continue
		}
		if task := x.read(id); task.Location != wire.LocationDead || task.Deliveries != times || task.Attempts != 1 ||
			task.Error != "never" || len(task.History) != min(2*times-1, 10) {
			x.t.Errorf("after %d times dead: %+v", times, task)
		}
	}
}
