package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"codeq/wire"
)

// clocksApart is what the clocks of two processes on one machine may differ by.
const clocksApart = 200 * time.Millisecond

// delayed posts tasks at once, each with its own delay; the payload is its number.
func (x *site) delayed(first, n int, delaySeconds func(i int) int64) []wire.TaskID {
	x.t.Helper()
	var batch []wire.EnqueueRequest
	for i := first; i < first+n; i++ {
		batch = append(batch, wire.EnqueueRequest{
			Command: command, Payload: fmt.Append(nil, i), MaxAttempts: 100, DelaySeconds: delaySeconds(i),
		})
	}
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, batch)))
	if err != nil {
		x.t.Fatalf("post %d delayed tasks: %v", n, err)
	}
	return idsIn(x.t, answer.Body)
}

// Tasks with all kinds of delays, while workers are cut off and the server is
// killed. None is delivered before its time, and each is delivered once, but for
// deliveries that were lost, each of which left its line of history.
func TestA30DelayedTasksNeverRunEarlyOrAgain(t *testing.T) {
	x := newSite(t)
	l := newLedger(x)
	chance := rand.New(rand.NewPCG(3, 0))
	var mu sync.Mutex
	due := map[string]time.Time{}
	l.seen = func(f *wire.TaskFrame) {
		mu.Lock()
		defer mu.Unlock()
		if early := time.Until(due[string(f.Task.Payload)]); early > clocksApart {
			t.Errorf("task %s came %v before its time", f.Task.Payload, early)
		}
	}
	hands := make([]*hand, scale(4, 20))
	for i := range hands {
		hands[i] = &hand{ledger: l, addr: x.server.Addr, name: fmt.Sprint("hand ", i), window: 5, lease: 30, takes: 10 * time.Millisecond}
		x.inBackground(hands[i].run)
	}
	var ids []wire.TaskID
	const each = 20
	rounds := scale(5, 500)
	for round := range rounds {
		delays := make([]int64, each)
		mu.Lock()
		for i := range delays {
			delays[i] = 1 + chance.Int64N(scale[int64](3, 30))
			due[fmt.Sprint(round*each+i)] = time.Now().Add(time.Duration(delays[i]) * time.Second)
		}
		mu.Unlock()
		ids = append(ids, x.delayed(round*each, each, func(i int) int64 { return delays[i-round*each] })...)
		pause(x.ctx, scale(400*time.Millisecond, 60*time.Millisecond))
		hands[chance.IntN(len(hands))].kill()
		if round%(rounds/2) == 1 {
			x.server.Kill()
			x.server.Start()
		}
	}
	// Not all completions that counted were answered.
	x.eventually(30*time.Second+resumeGrace+patience, "all are completed", func() bool {
		q := x.figures(command)
		return q.Ready+q.Delayed+q.InProgress == 0
	})
	lost := []string{"session_gone", "lease_expired", "undelivered"}
	for _, id := range ids {
		task := x.read(id)
		if task.Status != wire.StatusCompleted {
			t.Errorf("task %v is %s", id, task.Status)
		}
		if len(task.History) != min(task.Deliveries-1, 10) {
			t.Errorf("task %v was delivered %d times and says %+v of it", id, task.Deliveries, task.History)
		}
		for _, line := range task.History {
			if !slices.Contains(lost, line.Cause) {
				t.Errorf("a delivery of task %v ended by %s", id, line.Cause)
			}
		}
	}
}

// A server on which nothing happens, and a delayed task: no other traffic is
// needed for it to be handed out.
func TestA31DelayedTaskNeedsNoOtherTraffic(t *testing.T) {
	x := newSite(t, "--shards", "1")
	w := x.worker(x.server.Addr, "idle", 5, 60)
	delay := scale[int64](2, 600)
	x.delayed(0, 1, func(int) int64 { return delay })
	f := x.take(w, time.Duration(delay)*time.Second+patience)
	x.complete(w, f, `{}`)

	// One that is added later and is due earlier does not wait for the other.
	x.delayed(1, 1, func(int) int64 { return 3600 })
	x.delayed(2, 1, func(int) int64 { return 1 })
	if f := x.take(w, patience); string(f.Task.Payload) != "2" {
		t.Errorf("task %s came first", f.Task.Payload)
	}
	w.Close()

	// A worker that comes behind the time of a task is given it at once.
	x.delayed(3, 1, func(int) int64 { return 1 })
	x.eventually(patience, "the task is ready, and nobody is there", func() bool { return x.figures(command).Ready > 0 })
	late := x.worker(x.server.Addr, "late", 5, 60)
	if f := x.take(late, patience); string(f.Task.Payload) != "3" && string(f.Task.Payload) != "2" {
		t.Errorf("task %s came to the worker that came late", f.Task.Payload)
	}
}

// Thousands of tasks are due at one moment, and many more later: a bound on what
// is done at once is no bound on what is done.
func TestA32WhatIsDueTogetherComesTogether(t *testing.T) {
	x := newSite(t, "--shards", "1")
	together, later := scale(6_000, 100_000), scale(2_000, 1_000_000)
	w := x.worker(x.server.Addr, "wide", wire.MaxWindow, 300)
	x.burst(later, func(i int) int64 { return time.Now().Add(time.Hour + time.Duration(i%3600)*time.Second).UnixMilli() })
	due := time.Now().Add(scale(6*time.Second, 2*time.Minute))
	x.burst(together, func(int) int64 { return due.UnixMilli() })
	pause(x.ctx, time.Until(due))
	// Many answer at once: one after the other would measure the disk.
	taken := make(chan *wire.TaskFrame, together)
	var answering sync.WaitGroup
	for range scale(0, 100) {
		answering.Go(func() {
			for f := range taken {
				x.complete(w, f, `{}`)
			}
		})
	}
	began := time.Now()
	var latest time.Duration
	for came := 0; came < together; came++ {
		f := x.take(w, patience)
		latest = max(latest, time.Since(due))
		if early := time.Until(due); early > clocksApart {
			t.Fatalf("task %v came %v before its time", f.Task.ID, early)
		}
		taken <- f
	}
	t.Logf("%d tasks that were due together came within %v, the last %v late", together, time.Since(began), latest)
	close(taken)
	answering.Wait()
	if late := time.Since(began); late > patience {
		t.Errorf("they took %v, as if they had come in portions", late)
	}
	if q := x.figures(command); q.Delayed != int64(later) || q.Ready != 0 {
		t.Errorf("left are %+v, want %d delayed", q, later)
	}
}

// burst posts tasks with the time at which each is due, in Unix milliseconds.
func (x *site) burst(n int, runAtMs func(i int) int64) {
	x.t.Helper()
	const each = 1000
	for first := 0; first < n; first += each {
		var batch []wire.EnqueueRequest
		for i := first; i < min(n, first+each); i++ {
			batch = append(batch, wire.EnqueueRequest{Command: command, Payload: []byte("1"), MaxAttempts: 5, RunAtMs: runAtMs(i)})
		}
		if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, batch))); err != nil {
			x.t.Fatalf("post %d tasks: %v", len(batch), err)
		}
	}
}
