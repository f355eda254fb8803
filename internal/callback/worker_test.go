package callback

import (
	"fmt"
	"slices"
	"testing"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

const hook = "https://x.org/done"

// A callback that fails comes again after each step of the ladder with the same bytes under the
// same id, and is a dead letter after the last.
func TestACallbackClimbsTheLadder(t *testing.T) {
	x := openSite(t)
	x.end("acme", hook)
	var first *Call
	for i := range wire.CallbackAttempts {
		calls := x.take(hook)
		if len(calls) != 1 || calls[0].Attempt != i+1 {
			t.Fatalf("attempt %d: %d calls %+v", i+1, len(calls), calls)
		}
		if first == nil {
			first = calls[0].Call
		}
		if c := calls[0]; c.ID != first.ID || string(c.Body) != string(first.Body) {
			t.Errorf("attempt %d posts %s %s, the first %s %s", i+1, c.ID, c.Body, first.ID, first.Body)
		}
		x.answer(calls, 500)
		if i == len(ladder) {
			break
		}
		x.advance(ladder[i].Milliseconds() - 1000)
		if early := x.take(hook); len(early) != 0 {
			t.Fatalf("attempt %d comes a second early", i+2)
		}
		x.advance(1000)
	}
	if f := x.figures("acme"); f.Dead != 1 || f.DeadBy[wire.DeadExhausted] != 1 {
		t.Errorf("%+v", f)
	}
}

// Five failures make an endpoint sick: then one callback goes out each half minute, the others
// wait and count no attempt, and all go once one has arrived. Other endpoints and other tenants
// are not delayed.
func TestASickEndpointGetsOneProbe(t *testing.T) {
	x := openSite(t)
	for i := range 20 {
		x.end("acme", fmt.Sprint(hook, "?n=", i))
	}
	at := func() (calls []*sent) {
		for i := range 20 {
			calls = append(calls, x.take(fmt.Sprint(hook, "?n=", i))...)
		}
		return calls
	}
	calls := at()
	if len(calls) != perEndpoint {
		t.Fatalf("%d calls at once, want %d", len(calls), perEndpoint)
	}
	x.answer(calls, 0)
	more := at() // those for which the first four made room
	x.answer(more, 0)
	failed := len(calls) + len(more)
	f := x.figures("acme")
	if f.Delayed != 20 || len(x.sent) != 0 {
		t.Fatalf("%+v, %d sent", f, len(x.sent))
	}
	x.end("acme", hook+"?n=0")
	if early := at(); len(early) != 0 {
		t.Fatalf("%d callbacks are sent to a sick endpoint before its next probe", len(early))
	}
	x.end("acme", "https://other.org/")
	x.end("beta", hook)
	for _, url := range []string{"https://other.org/", hook} {
		well := x.take(url)
		if len(well) != 1 {
			t.Fatalf("%d calls of %s", len(well), url)
		}
		x.answer(well, 200)
	}
	probes := 0
	for range 10 { // five minutes with a probe each half minute
		x.advance(probeEveryMs)
		calls := at()
		if len(calls) > 1 {
			t.Fatalf("%d probes at once", len(calls))
		}
		probes += len(calls)
		failed += len(calls)
		x.answer(calls, 503)
	}
	if probes < 5 {
		t.Errorf("%d probes in five minutes", probes)
	}
	for range 3 {
		for range 40 {
			x.advance(probeEveryMs)
			x.answer(at(), 200)
		}
	}
	if f := x.figures("acme"); f.Delayed+f.Ready+f.InProgress+f.Dead != 0 {
		t.Errorf("left: %+v", f)
	}
	if waited, counted := x.count(record.CauseRelease), x.count(record.CauseNack); waited == 0 || counted != failed {
		t.Errorf("%d callbacks waited, and %d attempts count of %d that failed", waited, counted, failed)
	}
}

// A dead endpoint of one tenant takes nothing from another tenant: no call of it waits.
func TestADeadEndpointDelaysNoOtherTenant(t *testing.T) {
	x := openSite(t)
	for i := range 200 {
		x.end("acme", fmt.Sprintf("https://dead%d.org/", i%20))
	}
	for range 100 {
		x.end("beta", hook)
		calls := x.take(hook)
		if len(calls) != 1 {
			t.Fatalf("%d calls", len(calls))
		}
		x.answer(calls, 200)
	}
	if n := len(x.sent); n == 0 || n > window {
		t.Errorf("%d calls of the other tenant are in flight", n)
	}
}

// Callbacks beyond the places of an endpoint are held, and go as places become free.
func TestAFullEndpointHoldsAndDrains(t *testing.T) {
	x := openSite(t)
	for range 150 {
		x.end("acme", hook)
	}
	done := 0
	for range 200 {
		calls := x.take(hook)
		if len(calls) > perEndpoint {
			t.Fatalf("%d in flight", len(calls))
		}
		done += len(calls)
		x.answer(calls, 204)
	}
	if f := x.figures("acme"); done != 150 || f.Ended != 150 {
		t.Errorf("%d posted, %+v", done, f)
	}
	if len(x.worker.tenants["acme"].endpoints) != 0 {
		t.Error("an endpoint without a callback is kept")
	}
	// A slow one puts them off, so that the window is free for others.
	for range 80 {
		x.end("acme", hook)
	}
	slow := x.take(hook)
	x.nowMs += holdForMs
	x.answer(slow, 204)
	if f := x.figures("acme"); f.Delayed == 0 {
		t.Errorf("none was put off: %+v", f)
	}
}

// What becomes of a callback at each answer.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		failed int
		want   verdict
	}{
		{Answer{Status: 200}, 0, verdict{done: true, afterSeconds: 5, reason: "the endpoint answered 200"}},
		{Answer{Status: 410}, 0, verdict{dead: true, afterSeconds: 5, reason: "the endpoint answered 410"}},
		{Answer{Status: 404}, 1, verdict{afterSeconds: 30, reason: "the endpoint answered 404"}},
		{Answer{Status: 404}, 2, verdict{dead: true, afterSeconds: 120, reason: "the endpoint answered 404"}},
		{Answer{Status: 409}, 5, verdict{afterSeconds: 10_800, reason: "the endpoint answered 409"}},
		{Answer{Status: 429, RetryAfter: 7e9}, 0, verdict{afterSeconds: 7, reason: "the endpoint answered 429"}},
		{Answer{Status: 503, RetryAfter: 7200e9}, 0, verdict{afterSeconds: 3600, reason: "the endpoint answered 503"}},
		{Answer{Status: 500, RetryAfter: 7e9}, 8, verdict{afterSeconds: 86_400, reason: "the endpoint answered 500"}},
		{Answer{Problem: "no"}, 40, verdict{afterSeconds: 86_400, reason: "no"}},
		{Answer{Problem: "no", Refused: true}, 0, verdict{dead: true, afterSeconds: 5, reason: "no"}},
	} {
		if got := judge(c.answer, c.failed, 0.5); got != c.want {
			t.Errorf("%+v after %d: %+v, want %+v", c.answer, c.failed, got, c.want)
		}
	}
	if least, most := judge(Answer{}, 4, 0).afterSeconds, judge(Answer{}, 4, 0.9999).afterSeconds; least != 2880 || most != 4320 {
		t.Errorf("an hour is %d to %d seconds", least, most)
	}
}

// A process that ends between a call and what it came to leaves the callback to its lease: it
// is posted again under its id by the next process, and those that nobody had at once.
func TestCallbacksOutliveTheProcess(t *testing.T) {
	x := openSite(t)
	for range 70 {
		x.end("acme", hook)
	}
	calls := x.take(hook)
	x.answer(calls[:2], 200)
	var open []string
	for _, c := range calls[2:] {
		open = append(open, c.ID)
	}
	x.close()
	x.open()
	got := map[string]int{}
	for range 200 {
		for _, c := range x.take(hook) {
			got[c.ID]++
			c.done(Answer{Status: 200})
		}
		x.advance(1000)
	}
	if len(got) != 68 {
		t.Errorf("%d callbacks came, want 68", len(got))
	}
	for _, id := range open {
		if got[id] != 1 {
			t.Errorf("%s came %d times", id, got[id])
		}
	}
}

// A worker that stops gives back what it holds, without a failed attempt.
func TestStopGivesBackWhatIsHeld(t *testing.T) {
	x := openSite(t)
	for range 30 {
		x.end("acme", hook)
	}
	x.worker.Stop()
	calls := x.take(hook)
	x.settle()
	if f := x.figures("acme"); f.InProgress != perEndpoint || f.Ready != 30-perEndpoint {
		t.Errorf("%+v", f)
	}
	calls[0].done(Answer{Stopped: true})
	x.answer(calls[1:], 200)
	if f := x.figures("acme"); f.InProgress != 0 || f.Ready != 30-perEndpoint+1 || f.Ended != perEndpoint-1 {
		t.Errorf("%+v", f)
	}
	if i := slices.IndexFunc(x.moves, func(e shard.Event) bool { return e.Attempts > 0 }); i >= 0 {
		t.Errorf("an attempt counts: %+v", x.moves[i])
	}
}

// While the disk syncs nothing, a lease may run out before its grant arrives. That delivery is
// over, and the callback goes out once, for the one after it.
func TestAGrantThatComesAfterItsLeaseIsNotPosted(t *testing.T) {
	x := openSite(t)
	x.end("acme", hook)
	x.answer(x.take(hook), 200) // there is a consumer now
	run := func() {
		for range 8 {
			for shardNo := range x.engine.Shards() {
				x.engine.Run(shardNo)
			}
		}
	}
	id, shardNo := x.engine.Route("acme", "c", "")
	messages := []shard.Message{
		&shard.Enqueue{ID: id, Tenant: "acme", EnqueueRequest: wire.EnqueueRequest{Command: "c", Payload: []byte("1"), Webhook: hook}},
		&shard.Manage{Do: shard.Cancel, Tenant: "acme", TaskID: id},
	}
	if v := x.engine.Post(shardNo, messages, 1, mailbox.ClassKeep); v != mailbox.Accepted {
		t.Fatalf("posted: %v", v)
	}
	run()
	x.nowMs += 31_000
	run()
	x.settle()
	calls := x.take(hook)
	if len(calls) != 1 || calls[0].Attempt != 2 {
		t.Fatalf("%d calls went out: %+v", len(calls), calls)
	}
	x.answer(calls, 200)
	if f := x.figures("acme"); f.Ended != 2 {
		t.Errorf("%+v", f)
	}
}

// What is in the queue and is no callback is a dead letter.
func TestAPayloadThatIsNoCallbackIsADeadLetter(t *testing.T) {
	x := openSite(t)
	id, shardNo := x.engine.Route("acme", wire.CallbackQueue, "")
	x.tell(wire.ShardOfQueue("acme", wire.CallbackQueue, 2),
		&shard.Enqueue{ID: id, Tenant: "acme", EnqueueRequest: wire.EnqueueRequest{Command: wire.CallbackQueue, Payload: []byte(`{"x":1}`)}})
	if f := x.figures("acme"); f.Dead != 1 || shardNo < 0 {
		t.Errorf("%+v", f)
	}
}

// Tenants that have nothing to do lose their consumer when there are too many; one that has
// callbacks again is served again, also after its time has come.
func TestTenantsThatAreQuietLoseTheirConsumer(t *testing.T) {
	x := openSite(t)
	x.end("waits", hook)
	x.answer(x.take(hook), 500)
	for i := range maxTenants + 10 {
		x.end(fmt.Sprint("t", i), hook)
		x.answer(x.take(hook), 200)
	}
	if n := len(x.worker.tenants); n > 20 {
		t.Errorf("%d tenants have a consumer", n)
	}
	x.advance(10_000)
	x.end("t1", hook)
	if calls := x.take(hook); len(calls) != 2 {
		t.Errorf("%d calls", len(calls))
	}
	for name, tenant := range x.worker.tenants {
		if want := name == "t1" || name == "waits"; (tenant.busy != 0) != want {
			t.Errorf("%s has %d busy callbacks", name, tenant.busy)
		}
	}
}
