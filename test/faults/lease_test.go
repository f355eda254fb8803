package faults

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// A worker that answers for a task somebody else has taken meanwhile is told so,
// and its answer counts for nothing.
func TestA15LateCompletionIsRefused(t *testing.T) {
	x := newSite(t)
	slow := x.worker(x.server.Addr, "slow", 1, 1)
	id := x.post(command, 1, 0)[0]
	first := x.take(slow, patience)
	quick := x.worker(x.server.Addr, "quick", 1, 60)
	second := x.take(quick, patience)
	if first.Token == second.Token || second.Task.Deliveries != 2 {
		t.Fatalf("the second delivery is %+v after %+v", second, first)
	}
	x.refused(slow.Complete(x.ctx, blackbox.RefOf(first), `{"by":1}`), wire.CodeLeaseLost)
	x.complete(quick, second, `{"by":2}`)
	x.refused(slow.Complete(x.ctx, blackbox.RefOf(first), `{"by":1}`), wire.CodeNotInProgress)
	if record := x.outcome(id); string(record.Result) != `{"by":2}` {
		t.Errorf("the result is %s", record.Result)
	}
	task := x.read(id)
	if task.Attempts != 1 || task.Deliveries != 2 || len(task.History) != 1 || task.History[0].WorkerID != "slow" {
		t.Errorf("the task does not tell what happened: %+v", task)
	}
}

// A handler that runs for much longer than its lease keeps its task as long as
// its worker lives, also when the server itself stands still for longer than the
// lease.
func TestA16LongHandlersAreNotRescued(t *testing.T) {
	// A machine that starves both sides for a whole lease proves nothing.
	lease := 4 * time.Second
	handlerFor := scale(5*lease, time.Minute)
	x := newSite(t)
	began, done := make(chan struct{}), make(chan struct{})
	x.inBackground(func(ctx context.Context) {
		_ = client.Work(ctx, x.sdk(x.server.Addr), command, func(ctx context.Context, _ struct{}) (struct{}, error) {
			close(began)
			defer close(done)
			select {
			case <-time.After(handlerFor):
			case <-ctx.Done():
				t.Errorf("the task was taken from its handler: %v", context.Cause(ctx))
			}
			return struct{}{}, nil
		}, client.Lease(lease)) // it ends with the test
	})
	id := x.post(command, 1, 0)[0]
	rival := x.worker(x.server.Addr, "rival", 1, 60)
	if err := rival.Say(&wire.Window{Size: 0}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-began:
	case f := <-rival.Tasks: // it may have been quicker than its own window
		if _, err := rival.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
			return &wire.Release{Ref: ref, TaskRef: blackbox.RefOf(f)}
		}); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	deliveries := x.read(id).Deliveries
	if err := rival.Say(&wire.Window{Size: 1}); err != nil {
		t.Fatal(err)
	}
	pause(x.ctx, 2*lease)
	x.server.Pause()
	pause(x.ctx, 2*lease)
	x.server.Continue()
	<-done
	if record := x.outcome(id); record.Status != wire.StatusCompleted {
		t.Errorf("the task is %+v", record)
	}
	if task := x.read(id); task.Deliveries != deliveries || task.Attempts != 0 {
		t.Errorf("a long task was delivered %d times and has %d attempts", task.Deliveries, task.Attempts)
	}
	x.nothing(rival, lookAgain)
}

// One delivery that overruns costs that delivery and nothing else: the session
// stays, and the other nine are finished.
func TestA24OneOverrunCostsOneDelivery(t *testing.T) {
	const tasks, lease = 10, 4 * time.Second
	x := newSite(t)
	w := x.worker(x.server.Addr, "busy", tasks, int(lease/time.Second))
	x.post(command, tasks, 0)
	frames := x.takeAll(w, tasks, patience)
	var kept []wire.TaskRef
	for _, f := range frames[1:] {
		kept = append(kept, blackbox.RefOf(f))
	}
	x.inBackground(func(ctx context.Context) {
		for ctx.Err() == nil && w.Say(&wire.Heartbeat{Tasks: kept}) == nil {
			pause(ctx, 200*time.Millisecond)
		}
	})
	other := x.worker(x.server.Addr, "other", tasks, 60)
	again := x.take(other, patience)
	if again.Task.ID != frames[0].Task.ID {
		t.Errorf("task %v was offered again, the one that overran is %v", again.Task.ID, frames[0].Task.ID)
	}
	select {
	case r := <-w.Revoked:
		if r.TaskRef != blackbox.RefOf(frames[0]) || r.Reason != wire.RevokedExpired {
			t.Errorf("the worker is told %+v", r)
		}
	case <-time.After(patience):
		t.Error("the worker is not told")
	}
	pause(x.ctx, lease+time.Second)
	for _, f := range frames[1:] {
		x.complete(w, f, `{}`)
	}
	x.nothing(other, lookAgain)
	x.complete(other, again, `{}`)
}

// Tasks that fail together are not tried again together.
func TestA26RetriesAreSpread(t *testing.T) {
	judgeWaits(t, newSite(t), wire.BackoffFullJitter, 0)
}

// With equal jitter they are not tried before half of the wait is over, either.
func TestA26EqualJitterIsAtLeastHalf(t *testing.T) {
	judgeWaits(t, newSite(t), wire.BackoffEqualJitter, longWait/2)
}

// longWait is the base of waits of which hardly any is over before it is looked at.
const longWait = 10 * time.Minute

// judgeWaits has many tasks fail for the first time and looks at their waits: each
// is from least to the base, and no tenth of that has more than a quarter of them.
func judgeWaits(t *testing.T, x *site, policy string, least time.Duration) {
	t.Helper()
	tasks := scale(300, 10_000)
	x.ask(http.MethodPut, "/admin/queues/"+command,
		fmt.Sprintf(`{"backoff":{"policy":%q,"baseSeconds":%d}}`, policy, int(longWait/time.Second)))
	waits := x.failOnce(tasks)
	const bins = 10
	binFor := (longWait - least) / bins
	var spread [bins]int
	for _, wait := range waits {
		if wait < least || wait > longWait {
			t.Errorf("a task waits for %v, want %v to %v", wait, least, longWait)
			continue
		}
		spread[min(bins-1, int((wait-least)/binFor))]++
	}
	for i, n := range spread {
		if n > len(waits)/4 {
			from := least + time.Duration(i)*binFor
			t.Errorf("%d of %d tasks wait between %v and %v: %v", n, len(waits), from, from+binFor, spread)
		}
	}
	if len(waits) < tasks/2 {
		t.Errorf("only %d of %d tasks wait at all", len(waits), tasks)
	}
}

// failOnce posts tasks, has each fail once, and returns for how long those wait
// whose time has not come yet.
func (x *site) failOnce(tasks int) (waits []time.Duration) {
	x.t.Helper()
	w := x.worker(x.server.Addr, "failing", 300, 600)
	ids := x.post(command, tasks, 0)
	for nacked := 0; nacked < tasks; {
		f := x.take(w, patience)
		if f.Task.Attempts > 0 {
			continue // its wait was short
		}
		nacked++
		if err := w.Say(&wire.Nack{TaskRef: blackbox.RefOf(f), NackRequest: wire.NackRequest{DelaySeconds: -1}}); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, id := range ids {
		task := x.read(id)
		if task.Attempts == 0 {
			x.eventually(patience, "the nack has arrived", func() bool { task = x.read(id); return task.Attempts > 0 })
		}
		if task.VisibleAtMs > 0 {
			waits = append(waits, time.Duration(task.VisibleAtMs-task.UpdatedAtMs)*time.Millisecond)
		}
	}
	return waits
}
