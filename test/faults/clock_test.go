package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/wire"
)

// A delay is no lease: workers are there, leases are much shorter, the server is
// killed and started in between, and each task still comes when its time has
// come and not before, once. Only a machine that stood still for a whole lease
// behind that may make it come again.
func TestA29LongDelayIsNoLease(t *testing.T) {
	lease, delay := scale(2, 5), scale[int64](5, 60)
	const tasks = 20
	x := newSite(t)
	ids := x.delayed(0, tasks, func(int) int64 { return delay })
	due := make(map[wire.TaskID]int64)
	for _, id := range ids {
		task := x.read(id)
		if due[id] = task.VisibleAtMs; task.VisibleAtMs != task.CreatedAtMs+delay*1000 {
			t.Errorf("a task of %d that waits for %d s is due at %d", task.CreatedAtMs, delay, task.VisibleAtMs)
		}
	}
	l := newLedger(x)
	var mu sync.Mutex
	var latest int64
	l.seen = func(f *wire.TaskFrame) {
		late := f.LeaseUntilMs - int64(lease)*1000 - due[f.Task.ID]
		if late < 0 {
			t.Errorf("delivery %d of task %v was made %d ms before its time", f.Task.Deliveries, f.Task.ID, -late)
		}
		mu.Lock()
		defer mu.Unlock()
		latest = max(latest, late)
	}
	for n := range 5 {
		x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("hand ", n), window: tasks, lease: lease}).run)
	}
	pause(x.ctx, time.Duration(delay)*time.Second/2)
	x.server.Kill()
	x.server.Start()
	// Every shard has something to do all the time, and so to look at what is due.
	x.inBackground(func(ctx context.Context) {
		for ctx.Err() == nil {
			if _, err := x.api.Post(ctx, `{"command":"others","payload":1}`); err != nil && ctx.Err() == nil {
				t.Errorf("post beside delayed tasks: %v", err)
				return
			}
			pause(ctx, 20*time.Millisecond)
		}
	})
	x.eventually(time.Duration(delay)*time.Second+resumeGrace+patience, "all are done", func() bool {
		q := x.figures(command)
		return q.Ready+q.Delayed+q.InProgress == 0
	})
	for _, id := range ids {
		task := x.read(id)
		// One that came late was accepted, too, if nobody had the task since.
		if lost := len(task.History); task.Status != wire.StatusCompleted || task.Deliveries > 1+lost && lost < 10 {
			t.Errorf("at the end a task is %+v", task)
		}
		for _, line := range task.History {
			if line.FromMs < due[id] {
				t.Errorf("a delivery of a task that was due at %d: %+v", due[id], line)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("the last of %d deliveries came %d ms after its time", tasks, latest)
	if *heavyFlag && latest > 1000 {
		t.Errorf("a delivery came %d ms after its time", latest)
	}
}

// askAt is a request of somebody whose clock goes wrong by that much.
func (x *site) askAt(off time.Duration, path, body string) *wire.Task {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.ctx, http.MethodPost, x.server.URL()+"/v1/codeq"+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := once.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it is read
	said, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		x.t.Fatalf("%s: %d %s (%v)", path, response.StatusCode, said, err)
	}
	task, err := wire.ParseTask(said)
	if err != nil {
		x.t.Fatal(err)
	}
	return task
}

// Clocks of producers and workers go wrong by minutes and hours. What they ask
// for by how long is as long by the clock of the server.
func TestA33ClocksOfOthersDecideNothing(t *testing.T) {
	const delayMs, leaseMs = 2000, 600_000
	x := newSite(t)
	for _, off := range []time.Duration{-time.Hour, -5 * time.Minute, 5 * time.Minute, time.Hour} {
		late := x.askAt(off, "/tasks", fmt.Sprintf(`{"command":%q,"payload":1,"delaySeconds":%d}`, command, delayMs/1000))
		if late.VisibleAtMs != late.CreatedAtMs+delayMs {
			t.Errorf("a producer that is %v off: made at %d, due at %d", off, late.CreatedAtMs, late.VisibleAtMs)
		}
		held := x.askAt(off, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"leaseSeconds":%d,"waitSeconds":30}`, command, leaseMs/1000))
		if granted := held.LeaseUntilMs - leaseMs; held.ID != late.ID || granted < late.VisibleAtMs || held.Deliveries != 1 {
			t.Errorf("a worker that is %v off has %+v, the task was due at %d", off, held, late.VisibleAtMs)
		}
		if after := x.now(); held.LeaseUntilMs > after+leaseMs {
			t.Errorf("a worker that is %v off has a lease until %d, and it is %d", off, held.LeaseUntilMs, after)
		}
	}
}

// now is the time by the clock of the server, Unix milliseconds.
func (x *site) now() int64 {
	x.t.Helper()
	task, err := x.api.Post(x.ctx, `{"command":"mark","payload":1}`)
	if err != nil {
		x.t.Fatal(err)
	}
	return task.CreatedAtMs
}
