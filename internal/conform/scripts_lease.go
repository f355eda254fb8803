package conform

import (
	"time"

	"codeq/client"
	"codeq/wire"
)

// leaseScripts are about heartbeats and lost deliveries.
var leaseScripts = []script{
	{"lease/heartbeat", "The worker renews the leases of all that it has at a third of the lease, by name and token.", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2, "leaseSeconds": 9})
		p := s.arrives(nil)
		if f := p.subscribed(); !same(f["leaseSeconds"], 9) || !same(f["window"], 2) {
			x.fail("the subscription is %v", f)
		}
		p.push(1)
		p.push(2)
		for last := time.Now(); ; {
			beat := p.hear("heartbeat", nil)
			p.ok(beat, members{"lost": []any{}, "leaseUntil": "2026-01-01T00:00:03.000Z"})
			if names(beat, 1) && names(beat, 2) {
				if took := time.Since(last); took > 6*time.Second+x.slack {
					x.fail("the heartbeat came after %v, want a third of the lease of 9s", took)
				}
				return
			}
		}
	}},
	{"lease/held-for-long", "The worker renews the leases of all that it has at a third of the lease, by name and token.", "", func(x *run) {
		x.open()
		id := x.begin()
		for range 4 {
			x.beats(id)
		}
		x.never("cancelled", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"lease/ends", "A lost delivery cancels its handler, with the cause.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.advance(4 * time.Second)
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		if task := x.task(id); task.Attempts != 1 {
			x.fail("the end of the lease counts %d attempts", task.Attempts)
		}
	}},
	{"lease/late-result-counts", "Every delivery gets an answer, also one that was revoked.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.advance(4 * time.Second)
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.answer("complete", 1, members{"result": members{"late": true}})
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
		x.hasResult(x.becomes(id, wire.StatusCompleted, 1, 1), `{"late":true}`)
		x.works(2)
	}},
	{"lease/goes-to-another", "Every delivery gets an answer, also one that was revoked.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.advance(4 * time.Second)
		x.want("cancelled", members{"delivery": 1})
		other := x.claim()
		x.answer("complete", 1, members{"result": members{"mine": true}})
		x.want("settled", members{"delivery": 1, "ok": false, "code": []string{"lease_lost", "not_owner"}})
		_, err := other.End(x.ctx, client.Complete([]byte(`{"other":true}`)))
		x.must(err)
		x.hasResult(x.becomes(id, wire.StatusCompleted, 2, 1), `{"other":true}`)
		x.works(2)
	}},
	{"lease/cancelled", "A lost delivery cancels its handler, with the cause.", "", func(x *run) {
		x.open()
		x.worker(members{"leaseSeconds": 600}) // so that no heartbeat tells
		id := x.task(x.post()).ID
		x.want("delivery", members{"delivery": 1})
		_, err := x.client.Cancel(x.ctx, id)
		x.must(err)
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.answer("release", 1, nil)
		x.want("settled", members{"delivery": 1, "ok": false, "code": []string{"lease_lost", "not_in_progress"}})
		x.works(2)
	}},
	{"lease/taken-back", "A lost delivery cancels its handler, with the cause.", "", func(x *run) {
		x.open()
		x.worker(members{"leaseSeconds": 600}) // so that no heartbeat tells
		id := x.task(x.post()).ID
		x.want("delivery", members{"delivery": 1})
		_, err := x.client.TakeBack(x.ctx, id)
		x.must(err)
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.answer("release", 1, nil)
		x.want("delivery", members{"delivery": 2, "task": id.String(), "attempts": 0})
	}},
	{"lease/listed-as-lost", "when the answer to a heartbeat lists it in `lost`", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2, "leaseSeconds": 3})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.push(2)
		for {
			beat := p.hear("heartbeat", nil)
			lost := []any{}
			if names(beat, 1) {
				lost = append(lost, members{"taskId": taskID(1), "leaseToken": token(1)})
			}
			p.ok(beat, members{"lost": lost})
			if len(lost) > 0 {
				break
			}
		}
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.never("cancelled", members{"delivery": 2})
	}},
	{"lease/revoked-for-a-new-reason", "A delivery is lost when the server sends `revoked`, whatever the reason", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.say(members{"type": "revoked", "taskId": taskID(1), "leaseToken": token(9), "reason": "expired"}) // of a delivery that nobody has
		x.never("cancelled", nil)
		p.say(members{"type": "revoked", "taskId": taskID(1), "leaseToken": token(1), "reason": "sold"})
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.answer("nack", 1, members{"reason": "late"})
		p.refuse(p.hear("nack", members{"leaseToken": token(1)}), "lease_lost", nil)
		x.want("settled", members{"delivery": 1, "ok": false, "code": "lease_lost"})
	}},
	{"lease/revoked-by-timeout", "The cause is `timeout` for the end of a run and \"lease lost\" otherwise.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.say(p.taskFrame(1, members{"runMs": 600_000, "runUntil": "2026-01-01T00:10:00.000Z"}))
		x.want("delivery", members{"delivery": 1, "runMs": 600_000})
		p.say(members{"type": "revoked", "taskId": taskID(1), "leaseToken": token(1), "reason": "timeout"})
		x.want("cancelled", members{"delivery": 1, "cause": "timeout"})
	}},
	{"lease/deadline-of-its-own", "A delivery with `runMs` has a deadline", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		began := time.Now()
		p.say(p.taskFrame(1, members{"runMs": 1000, "runUntil": "2020-01-01T00:00:00.000Z"}))
		x.want("delivery", members{"delivery": 1})
		x.want("cancelled", members{"delivery": 1, "cause": "timeout"})
		if took := time.Since(began); took < 900*time.Millisecond {
			x.fail("the handler was cancelled after %v, and had 1s", took)
		}
		x.answer("nack", 1, members{"reason": "too slow"})
		p.ok(p.hear("nack", members{"leaseToken": token(1)}), members{"status": "requeued"})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
	}},
	{"lease/duplicate", "A second frame with the same `leaseToken` is the same delivery.", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 3})
		p := s.arrives(nil)
		p.subscribed()
		first := p.taskFrame(1, nil)
		p.say(first)
		x.want("delivery", members{"delivery": 1})
		p.say(first, first)
		x.never("delivery", nil)
		p.push(2)
	}},
}

// names reports that a heartbeat names delivery n with its token.
func names(beat event, n int) bool {
	tasks, _ := beat["tasks"].([]any) // without it the heartbeat names none
	for _, one := range tasks {
		ref, _ := one.(map[string]any)
		if ref["taskId"] == taskID(n) && ref["leaseToken"] == token(n) {
			return true
		}
	}
	return false
}

// claim takes the next task of the queue "a", past the driver.
func (x *run) claim() *client.Claimed {
	claimed, err := x.client.Claim(x.ctx, client.ClaimOptions{Commands: []string{"a"}, Lease: time.Minute, Wait: 10 * time.Second})
	x.must(err)
	if len(claimed) == 0 {
		x.fail("no task was there to claim")
	}
	return claimed[0]
}

// begin lets the worker begin a task, with a lease of 3 s, and waits until the server knows that the task
// has arrived: a heartbeat names it.
func (x *run) begin() string {
	x.worker(members{"leaseSeconds": 3})
	id := x.post()
	x.want("delivery", members{"delivery": 1, "task": id})
	x.beats(id)
	return id
}

// beats moves the clock by a second and waits for the heartbeat after it.
func (x *run) beats(id string) {
	before := x.task(id).LeaseUntilMs
	x.advance(time.Second)
	x.until("a heartbeat must extend the lease", func() bool { return x.task(id).LeaseUntilMs > before })
}
