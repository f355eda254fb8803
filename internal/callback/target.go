package callback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

const (
	// busyForMs is how long a task waits whose target answers 429 or 503 without Retry-After.
	busyForMs = 5_000
	// marginMs is how long before the end of a lease its call ends, or a tenth of a shorter one.
	marginMs = 2_000
)

// target is where the tasks of a queue go. endpoint is how it fares.
type target struct {
	wire.Target
	endpoint
	// problem is why the last call failed that made it sick.
	problem string
	// waits: open is called when it is time for a probe.
	waits bool
}

// Follow is EngineOptions.Settings: a queue gets, changes or loses its target.
func (w *Worker) Follow(q record.QueueKey, set *record.Settings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.targets[q]
	switch {
	case set.Target.URL == "" || set.Deleting:
		if s != nil && s.consumer != nil {
			s.consumer.Close(0)
		}
		delete(w.targets, q)
		return
	case w.stopped:
		return
	case s == nil:
		s = &queue{worker: w, key: q, target: new(target)}
		w.targets[q] = s
	}
	if t := s.target; t.URL != set.Target.URL {
		t.endpoint, t.problem = endpoint{}, ""
	}
	s.target.Target = set.Target.InForce()
	if w.engine != nil {
		s.serve()
	}
}

// serve subscribes to the queue of a target.
func (s *queue) serve() {
	if s.consumer == nil {
		s.subscribe()
	}
	s.open()
}

// open sets how many tasks a target has at once: none while it is sick, but for one when it is
// time to try it.
func (s *queue) open() {
	w, t, size := s.worker, s.target, s.target.Window
	if t.isSick() {
		size = 1
		if left := t.probeAtMs - w.o.NowMs(); left > 0 {
			size = 0
			s.openIn(left)
		}
	}
	s.consumer.SetWindow(size)
}

// openIn calls open after a time, if nobody does before.
func (s *queue) openIn(ms int64) {
	w := s.worker
	if s.target.waits {
		return
	}
	s.target.waits = true
	w.o.After(ms, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.target.waits = false
		if !w.stopped && w.targets[s.key] == s {
			s.open()
		}
	})
}

// push posts a task to the target of its queue.
func (d *delivery) push() {
	w, t, now := d.queue.worker, d.queue.target, d.queue.worker.o.NowMs()
	until := d.LeaseUntilMs
	if d.RunUntilMs != 0 {
		until = min(until, d.RunUntilMs)
	}
	if now >= until || t.isSick() && now < t.probeAtMs {
		d.giveBack()
		return
	}
	if d.RunForMs != 0 {
		// A shard that has stopped leaves the delivery to its lease.
		_ = w.engine.Control(w.engine.ShardOf(d.Task.ID), nil, &shard.Received{
			Consumer: d.queue.consumer.Consumer, Tasks: []wire.TaskRef{{TaskID: d.Task.ID, Token: d.Token}},
		})
	}
	d.call = &Call{
		Callback: wire.Callback{ID: d.Task.ID.String(), URL: t.URL, Body: wire.AppendClaimed(nil, d.Task, d.Token)},
		Tenant:   d.queue.key.Tenant, Attempt: d.Task.Attempts + 1, TraceParent: d.Task.TraceParent, TraceState: d.Task.TraceState,
		Within: time.Duration(until-now-min((until-now)/10, marginMs)) * time.Millisecond, Keep: wire.MaxResultBytes,
	}
	d.arrive()
	w.o.Send(d.call, func(a Answer) { d.pushed(a) })
}

// pushed ends the delivery as its target has answered. One that was answered with 202 is left to
// whoever has its token.
func (d *delivery) pushed(a Answer) {
	s, w := d.queue, d.queue.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	switch status := a.Status; {
	case a.Stopped:
		d.giveBack()
		return
	case status == http.StatusAccepted:
		d.free()
	case a.succeeded():
		d.complete(a)
	case status == http.StatusUnprocessableEntity:
		d.fail(a.saying())
	case a.Refused:
		d.putOff(probeEveryMs)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		wait := min(a.RetryAfter, mostRetryAfter).Milliseconds()
		if wait == 0 {
			wait = int64(float64(busyForMs) * (0.8 + 0.4*w.o.Random()))
		}
		d.putOff(wait)
	default:
		d.end(&shard.End{How: shard.Nack, Holder: d.holder(), NackRequest: wire.NackRequest{DelaySeconds: -1, Reason: a.saying()}})
	}
	if s.target.URL == d.call.URL {
		s.target.note(a, w.o.NowMs())
	}
	if w.targets[s.key] == s && !w.stopped {
		s.open()
	}
}

// note counts what a call of a target came to. What a target says of one task tells nothing about
// the others, unless it, or what stands before it, says that it takes none.
func (t *target) note(a Answer, nowMs int64) {
	if a.Refused {
		t.failures = max(t.failures, sickAfter-1)
	}
	switch a.Status {
	case 0, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		t.count(true, nowMs)
		t.problem = a.outcome()
	default:
		t.count(false, nowMs)
		t.problem = ""
	}
}

// complete ends a task with the object that its target has answered, or with an empty one if that
// is no object that can be a result.
func (d *delivery) complete(a Answer) {
	r := wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte("{}")}
	if json.Unmarshal(a.Body, new(map[string]json.RawMessage)) == nil {
		if read, _, refusal := wire.ParseResultRequest(append(append([]byte(`{"status":"COMPLETED","result":`), a.Body...), '}')); refusal == nil {
			r = *read
		}
	} else if a.Cut {
		d.fail(a.outcome() + ", and its result cannot be kept: it has more than " + strconv.Itoa(wire.MaxResultBytes) + " bytes")
		return
	}
	d.end(&shard.Result{Holder: d.holder(), ResultRequest: r})
}

// outcome is what came of a call, for everybody who may see the queue.
func (a *Answer) outcome() string {
	switch {
	case a.Status == 0:
		return a.Problem
	case a.Status/100 == 3:
		return fmt.Sprintf("the target answered %d, and redirects are not followed", a.Status)
	}
	return fmt.Sprintf("the target answered %d", a.Status)
}

// saying is the outcome with the text that the target gives for it in the member error.
func (a *Answer) saying() string {
	text := a.outcome()
	var said struct{ Error string }
	if json.Unmarshal(a.Body, &said) == nil && said.Error != "" {
		text += ": " + said.Error
	}
	return wire.Head(text, wire.MaxErrorBytes)
}

// TargetHealth is why the target of a queue gets no task and when it is tried again, in Unix
// milliseconds; empty and 0 for one that gets them.
func (w *Worker) TargetHealth(tenant, command string) (problem string, probeAtMs int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.targets[record.QueueKey{Command: command, Tenant: tenant}]; s != nil && s.target.isSick() {
		return s.target.problem, s.target.probeAtMs
	}
	return "", 0
}

// Targets counts the queues with a target, and those among them whose target gets no task.
func (w *Worker) Targets() (all, sick int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.targets {
		if s.target.isSick() {
			sick++
		}
	}
	return len(w.targets), sick
}
