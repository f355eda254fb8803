package callback

import (
	"fmt"
	"strings"
	"testing"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

const pushURL = "https://push.org/work"

// aim gives a queue a target.
func (x *site) aim(tenant string, t wire.Target) {
	x.t.Helper()
	done := false
	x.engine.Configure(&shardactor.Change{
		Queue: record.QueueKey{Command: "push", Tenant: tenant},
		What: shard.SettingsChange{Settings: &wire.QueueSettings{
			Target: t, LeaseSeconds: 20, MaxAttempts: 3, Backoff: wire.Backoff{Policy: wire.BackoffFixed, BaseSeconds: 3},
		}},
		Done: func(_ record.Settings, refusal *wire.Error) {
			if done = true; refusal != nil {
				x.t.Errorf("set: %v", refusal)
			}
		},
	})
	if x.settle(); !done {
		x.t.Fatal("not set")
	}
}

// post makes a task of the queue with a target.
func (x *site) post(tenant string) wire.TaskID {
	x.t.Helper()
	id, shardNo := x.engine.Route(tenant, "push", "")
	x.tell(shardNo, &shard.Enqueue{ID: id, Tenant: tenant, EnqueueRequest: wire.EnqueueRequest{Command: "push", Payload: []byte(`{"n":1}`)}})
	return id
}

func (x *site) pushes(tenant string) *wire.QueueFigures {
	x.t.Helper()
	f, err := x.store.ReadQueue(record.QueueKey{Command: "push", Tenant: tenant})
	if err != nil {
		x.t.Fatal(err)
	}
	return f
}

func (x *site) read(id wire.TaskID) *wire.Task {
	x.t.Helper()
	task, err := x.store.ReadTask("acme", id)
	if err != nil {
		x.t.Fatal(err)
	}
	return task
}

// token is that of the delivery which a call has posted.
func (s *sent) token(t *testing.T) wire.Token {
	t.Helper()
	claimed, token, err := wire.ParseClaimed(s.Body)
	if err != nil || claimed.ID.String() != s.ID {
		t.Fatalf("posted %s: %v", s.Body, err)
	}
	return token
}

// What becomes of a task at each answer of its target.
func TestAnswersOfATarget(t *testing.T) {
	for _, c := range []struct {
		answer   Answer
		status   wire.Status
		attempts int
		waitsMs  int64
		says     string
	}{
		{Answer{Status: 200, Body: []byte(` {"width":64} `)}, wire.StatusCompleted, 0, 0, `{"width":64}`},
		{Answer{Status: 204}, wire.StatusCompleted, 0, 0, "{}"},
		{Answer{Status: 200, Body: []byte("OK")}, wire.StatusCompleted, 0, 0, "{}"},
		{Answer{Status: 200, Body: []byte(" null\n")}, wire.StatusCompleted, 0, 0, "{}"}, // a handler that returns nothing
		{Answer{Status: 200, Body: []byte("{\"a\":\"\xff\"}")}, wire.StatusCompleted, 0, 0, "{}"},
		{Answer{Status: 200, Body: []byte(`{},"status":"FAILED","error":"x"`)}, wire.StatusCompleted, 0, 0, "{}"},
		{Answer{Status: 200, Body: []byte(`{"a`), Cut: true}, wire.StatusFailed, 0, 0, "the target answered 200, and its result cannot be kept: it has more than 1048576 bytes"},
		{Answer{Status: 202}, wire.StatusInProgress, 0, 0, ""},
		{Answer{Status: 422, Body: []byte(`{"error":"no such file"}`)}, wire.StatusFailed, 0, 0, "the target answered 422: no such file"},
		{Answer{Status: 429, RetryAfter: 7e9}, wire.StatusPending, 0, 7000, ""},
		{Answer{Status: 503}, wire.StatusPending, 0, 5000, ""},
		{Answer{Status: 503, RetryAfter: 7200e9}, wire.StatusPending, 0, 3_600_000, ""},
		{Answer{Status: 500, Body: []byte(`{"error":"broken"}`)}, wire.StatusPending, 1, 3000, "the target answered 500: broken"},
		{Answer{Status: 302}, wire.StatusPending, 1, 3000, "the target answered 302, and redirects are not followed"},
		{Answer{Status: 410}, wire.StatusPending, 1, 3000, "the target answered 410"},
		{Answer{Problem: "no answer"}, wire.StatusPending, 1, 3000, "no answer"},
		{Answer{Problem: "not allowed", Refused: true}, wire.StatusPending, 0, 30_000, ""},
		{Answer{Stopped: true}, wire.StatusInProgress, 0, 0, ""}, // given back, and posted again
	} {
		t.Run(fmt.Sprint(c.answer.Status, " ", c.says), func(t *testing.T) {
			x := openSite(t)
			x.aim("acme", wire.Target{URL: pushURL})
			id := x.post("acme")
			calls := x.take(pushURL)
			if len(calls) != 1 || calls[0].Attempt != 1 || calls[0].Within != 18e9 || len(calls[0].Secrets) != 0 {
				t.Fatalf("%+v", calls)
			}
			calls[0].done(c.answer)
			x.settle()
			task := x.read(id)
			if task.Status != c.status || task.Attempts != c.attempts {
				t.Fatalf("%s after %d attempts: %+v", task.Status, task.Attempts, task)
			}
			if c.waitsMs != 0 && task.VisibleAtMs != x.nowMs+c.waitsMs {
				t.Errorf("waits for %d ms", task.VisibleAtMs-x.nowMs)
			}
			if task.Status == wire.StatusCompleted {
				_, r, err := x.store.ReadResult("acme", id)
				if err != nil || string(r.Result) != c.says {
					t.Errorf("result %s, %v", r.Result, err)
				}
			} else if task.Error != c.says {
				t.Errorf("error %q", task.Error)
			}
		})
	}
}

// A target that answers 202 has a place for the next task, and whoever has the token ends the
// first one, as any subject of the tenant.
func TestATokenFinishesWhatATargetAccepted(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL, Window: 1})
	one, two := x.post("acme"), x.post("acme")
	calls := x.take(pushURL)
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	token := calls[0].token(t)
	x.answer(calls, 202)
	if next := x.take(pushURL); len(next) != 1 || next[0].ID != two.String() {
		t.Fatalf("%+v", next)
	}
	holder := func(tenant string, token wire.Token) shard.Holder {
		return shard.Holder{Owner: shard.Owner{Tenant: tenant, Subject: "anybody"}, TaskRef: wire.TaskRef{TaskID: one, Token: token}}
	}
	for _, wrong := range []shard.Holder{holder("acme", wire.Token{}), holder("beta", token), holder("acme", wire.Token{1})} {
		x.tell(x.engine.ShardOf(one), &shard.Result{Holder: wrong, ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted}})
	}
	x.advance(15_000)
	x.tell(x.engine.ShardOf(one), &shard.Extend{Holder: holder("acme", token), ExtendForMs: 20_000})
	x.advance(15_000)
	if task := x.read(one); task.Status != wire.StatusInProgress {
		t.Fatalf("%+v", task)
	}
	x.tell(x.engine.ShardOf(one), &shard.Result{Holder: holder("acme", token), ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted}})
	if task := x.read(one); task.Status != wire.StatusCompleted {
		t.Fatalf("%+v", task)
	}
}

// A target that accepts a task and never finishes it gets it again when the lease is over.
func TestAnAcceptedTaskComesAgainAfterItsLease(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL})
	id := x.post("acme")
	x.answer(x.take(pushURL), 202)
	x.advance(20_000)
	again := x.take(pushURL)
	if len(again) != 1 || again[0].ID != id.String() || again[0].Attempt != 2 {
		t.Fatalf("%+v", again)
	}
}

// A target has as many tasks at once as its window, and one that does not answer is tried with one
// task each half minute; the others stay where they are and count nothing.
func TestASilentTargetIsTriedWithOneTask(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL, Window: 6})
	for range 40 {
		x.post("acme")
	}
	calls := x.take(pushURL)
	if len(calls) != 6 {
		t.Fatalf("%d at once", len(calls))
	}
	calls[0].done(Answer{Status: 500})
	for shardNo := range x.engine.Shards() {
		x.engine.Run(shardNo) // the grant in its place is not on disk yet
	}
	for _, c := range calls[1:] {
		c.done(Answer{Problem: "no answer"})
	}
	x.settle()
	if problem, at := x.worker.TargetHealth("acme", "push"); problem != "no answer" || at != x.nowMs+probeEveryMs {
		t.Fatalf("%q at %d", problem, at)
	}
	if len(x.sent) != 0 {
		t.Fatalf("%d sent to a silent target", len(x.sent))
	}
	for range 3 {
		x.advance(probeEveryMs - 1000)
		if len(x.sent) != 0 {
			t.Fatalf("%d sent before the next probe", len(x.sent))
		}
		x.advance(1000)
		probe := x.take(pushURL)
		if len(probe) != 1 {
			t.Fatalf("%d probes", len(probe))
		}
		x.answer(probe, 0)
	}
	if x.grants != 6+1+3 {
		t.Errorf("%d grants for 6 calls, 1 on its way and 3 probes", x.grants)
	}
	x.advance(probeEveryMs)
	x.answer(x.take(pushURL), 500) // the task is at fault, not the target
	if problem, _ := x.worker.TargetHealth("acme", "push"); problem != "" || len(x.sent) != 6 {
		t.Fatalf("%q, %d sent", problem, len(x.sent))
	}
	for range 20 {
		x.answer(x.take(pushURL), 200)
		x.advance(1000)
	}
	if f := x.pushes("acme"); f.Ready+f.Delayed+f.InProgress+f.Dead != 0 || f.Ended != 40 {
		t.Errorf("%+v", f)
	}
	if all, sick := x.worker.Targets(); all != 1 || sick != 0 {
		t.Errorf("%d targets, %d sick", all, sick)
	}
}

// A target that hangs or fails takes nothing from another tenant, nor from callbacks.
func TestADeadTargetDelaysNobodyElse(t *testing.T) {
	x := openSite(t)
	for _, tenant := range []string{"acme", "beta"} {
		x.aim(tenant, wire.Target{URL: "https://" + tenant + ".org/"})
	}
	for range 300 {
		x.post("acme")
	}
	for range 50 {
		x.post("beta")
		x.answer(x.take("https://beta.org/"), 200)
		x.end("acme", hook)
		x.answer(x.take(hook), 200)
	}
	if f, c := x.pushes("beta"), x.figures("acme"); f.Ended != 50 || c.Ended != 50 {
		t.Errorf("%+v %+v", f, c)
	}
	if n := len(x.sent); n != wire.DefaultTargetWindow {
		t.Errorf("%d calls of the dead target are in flight", n)
	}
}

// A queue may get another target, and lose it: what is in flight ends as it was answered.
func TestATargetMayChange(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL, Window: 1})
	for range 3 {
		x.post("acme")
	}
	first := x.take(pushURL)
	x.aim("acme", wire.Target{URL: "https://new.org/", Window: 2})
	second := x.take("https://new.org/")
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("%d at the first, %d at the second", len(first), len(second))
	}
	x.aim("acme", wire.Target{})
	x.answer(first, 200)
	x.answer(second, 500)
	x.advance(60_000)
	if f := x.pushes("acme"); f.Ended != 1 || f.Ready != 2 || len(x.sent) != 0 {
		t.Errorf("%+v, sent %d", f, len(x.sent))
	}
	x.aim("acme", wire.Target{URL: pushURL})
	if again := x.take(pushURL); len(again) != 2 {
		t.Errorf("%d again", len(again))
	}
}

// A process that ends between a call and its answer leaves the task to its lease, and the next
// process has the targets.
func TestTasksOfATargetOutliveTheProcess(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL, Window: 3})
	for range 5 {
		x.post("acme")
	}
	if calls := x.take(pushURL); len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	x.close()
	x.open()
	got := map[string]int{}
	for range 60 {
		for _, c := range x.take(pushURL) {
			got[c.ID]++
			c.done(Answer{Status: 200})
		}
		x.advance(1000)
	}
	if f := x.pushes("acme"); len(got) != 5 || f.Ended != 5 {
		t.Errorf("%v, %+v", got, f)
	}
	x.worker.Stop()
	x.post("acme")
	if len(x.sent) != 0 {
		t.Errorf("%d sent after Stop", len(x.sent))
	}
}

// A run that has a limit begins when the task is posted, and no call lasts longer than that.
func TestACallOfATargetEndsWithTheRun(t *testing.T) {
	x := openSite(t)
	x.aim("acme", wire.Target{URL: pushURL})
	id, shardNo := x.engine.Route("acme", "push", "")
	x.tell(shardNo, &shard.Enqueue{ID: id, Tenant: "acme", EnqueueRequest: wire.EnqueueRequest{
		Command: "push", Payload: []byte(strings.Repeat(" ", 10) + "1"), TimeoutSeconds: 10,
	}})
	calls := x.take(pushURL)
	if len(calls) != 1 || calls[0].Within != 9e9 {
		t.Fatalf("%+v", calls)
	}
	x.answer(calls, 202)
	x.advance(10_000)
	if task := x.read(id); task.Attempts != 1 || task.Error != wire.ErrorTimeout {
		t.Errorf("%+v", task)
	}
}
