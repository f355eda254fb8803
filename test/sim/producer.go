package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// ledger is what clients were told and may rely on for ever. It is kept apart
// from the model: it survives every crash.
type ledger struct {
	tasks    map[wire.TaskID]string
	order    []wire.TaskID
	outcomes map[wire.TaskID]outcome
	// settings are the versions that were answered, by queue.
	settings map[record.QueueKey]int64
	// named are those of named records.
	named map[record.NamedKey]int64
	// arrived are the callbacks that an endpoint has taken, as in model.parentOf.
	arrived map[string]bool
}

type outcome struct {
	status wire.Status
	text   string
}

func newLedger() *ledger {
	return &ledger{tasks: make(map[wire.TaskID]string), outcomes: make(map[wire.TaskID]outcome),
		settings: make(map[record.QueueKey]int64), named: make(map[record.NamedKey]int64), arrived: make(map[string]bool)}
}

func (l *ledger) accepted(id wire.TaskID, payload string) {
	if first, known := l.tasks[id]; known {
		if first != payload {
			violate("one key makes one task", "task %v has payload %s and answered for %s", id, first, payload)
		}
		return
	}
	l.tasks[id] = payload
	l.order = append(l.order, id)
}

func (l *ledger) completed(id wire.TaskID, status wire.Status, text string) {
	now := outcome{status, text}
	if first, known := l.outcomes[id]; known && first != now {
		// The same token may be answered twice, with the record that stands; a
		// client that sent something else the second time is told ok as well.
		if first.status != status {
			violate("one completion stands", "task %v was acknowledged as %v and as %v", id, first, now)
		}
		return
	}
	l.outcomes[id] = now
}

// completed notes an outcome that a client was told. That a task FAILED stands until
// somebody replays it, and who was told so may hear it after that.
func (w *world) completed(id wire.TaskID, status wire.Status, text string) {
	if t := w.model.tasks[id]; t != nil && t.replays > 0 {
		if status == wire.StatusFailed {
			return
		}
		if w.ledger.outcomes[id].status == wire.StatusFailed {
			delete(w.ledger.outcomes, id)
		}
	}
	w.ledger.completed(id, status, text)
}

// request is one call over HTTP.
type request struct {
	world *world
	body  wire.EnqueueRequest
	// result is set when it is about a delivery instead of a new task.
	result *shard.Result
	watch  wire.TaskID
	// call makes the message of a worker about a task.
	call   func(to shard.Asker) shard.Message
	about  wire.TaskID
	cancel wire.TaskID
	replay wire.TaskID
	// upload is the file that it is about, nil for none.
	upload *upload
	// clean goes to one shard.
	clean *shard.Cleanup
	shard int
	tries int
	last  []uint64
	done  bool
}

// Deliver implements shard.Sink: the answer of one request.
func (r *request) Deliver(effects []shard.Effect) {
	r.world.delivered(effects, r.last)
	if len(effects) != 1 {
		violate("a request is answered once", "%d answers", len(effects))
	}
	w := r.world
	w.requests = slices.DeleteFunc(w.requests, func(o *request) bool { return o == r })
	r.done = true
	switch e := effects[0].(type) {
	case *shard.Enqueued:
		w.ledger.accepted(e.TaskID, string(r.body.Payload))
	case *shard.Managed:
		if e.Did == shard.Cancel {
			w.completed(e.TaskID, wire.StatusCancelled, "")
		}
	case *shard.Uploaded:
		r.upload.goesOn(e)
	case *shard.Refused:
		w.files.drop(r.upload)
	case *shard.Completed:
		w.completed(e.Record.TaskID, e.Record.Status, string(e.Record.Result)+e.Record.Error)
	}
}

// post sends a request to its shard. A full mailbox is the answer.
func (r *request) post() {
	m, shardNo, class := r.message()
	w := r.world
	if e, is := m.(*shard.Enqueue); is && len(w.letIn(e)) == 0 {
		return
	}
	if w.post(shardNo, []shard.Message{m}, 512+len(r.body.Payload), class) == mailbox.Accepted {
		w.requests = append(w.requests, r)
	}
}

// postBatch sends new tasks together: what is for one shard is one push.
func (w *world) postBatch(batch []*request) {
	messages, whose := make([][]shard.Message, w.shape.shards), make([][]*request, w.shape.shards)
	made, where := make([]*shard.Enqueue, len(batch)), make([]int, len(batch))
	for i, r := range batch {
		m, shardNo, _ := r.message()
		made[i], where[i] = m.(*shard.Enqueue), shardNo
	}
	let := w.letIn(made...)
	for i, r := range batch {
		m, shardNo := made[i], where[i]
		if !slices.Contains(let, m) {
			continue
		}
		messages[shardNo], whose[shardNo] = append(messages[shardNo], m), append(whose[shardNo], r)
	}
	for shardNo, list := range messages {
		if len(list) > 0 && w.post(shardNo, list, 512*len(list), mailbox.ClassNew) == mailbox.Accepted {
			w.requests = append(w.requests, whose[shardNo]...)
		}
	}
}

// letIn takes what new tasks cost of the limits of their tenants, all those of a tenant
// together, and leaves out those that do not fit.
func (w *world) letIn(made ...*shard.Enqueue) (let []*shard.Enqueue) {
	for _, tenant := range w.shape.tenants {
		var of []*shard.Enqueue
		bytes := 0
		for _, e := range made {
			if e.Tenant == tenant {
				of, bytes = append(of, e), bytes+len(e.Payload)
			}
		}
		if len(of) == 0 {
			continue
		}
		pass, refusal := w.enter(tenant, subjects[0], len(of), bytes)
		if refusal != nil {
			w.trace.say("  %d tasks of %s do not fit: %s", len(of), tenant, refusal.Sentence)
			continue
		}
		for _, e := range of {
			e.Pass = pass
		}
		let = append(let, of...)
	}
	return let
}

// message is what a request is to its shard.
func (r *request) message() (m shard.Message, shardNo int, class mailbox.Class) {
	w := r.world
	r.tries++
	r.last = make([]uint64, w.shape.shards)
	asker := shard.Asker{Sink: r, Ref: shard.Ref(r.tries)}
	switch {
	case r.call != nil:
		return r.call(asker), w.server.engine.ShardOf(r.about), mailbox.ClassKeep
	case r.result != nil:
		r.result.Asker = asker
		shardNo, class = w.server.engine.ShardOf(r.result.TaskID), mailbox.ClassKeep
		again := *r.result
		m = &again
	case r.clean != nil:
		again := *r.clean
		again.Asker = asker
		shardNo, m = r.shard, &again
	case !r.cancel.IsZero():
		shardNo, class = w.server.engine.ShardOf(r.cancel), mailbox.ClassKeep
		m = &shard.Manage{Do: shard.Cancel, Asker: asker, By: "ops", Tenant: w.model.tasks[r.cancel].tenant, TaskID: r.cancel}
	case !r.replay.IsZero():
		shardNo, class = w.server.engine.ShardOf(r.replay), mailbox.ClassKeep
		m = &shard.Manage{Do: shard.Replay, Asker: asker, By: "ops", Tenant: w.model.tasks[r.replay].tenant, TaskID: r.replay}
	case !r.watch.IsZero():
		shardNo, class = w.server.engine.ShardOf(r.watch), mailbox.ClassKeep
		m = &shard.Watch{Asker: asker, Tenant: w.model.tasks[r.watch].tenant, TaskID: r.watch}
	default:
		var id wire.TaskID
		tenant := w.tenantOf(&r.body)
		id, shardNo = w.server.engine.Route(tenant, r.body.Command, r.body.IdempotencyKey)
		e := &shard.Enqueue{Asker: asker, ID: id, Tenant: tenant, EnqueueRequest: r.body, WantTask: true}
		e.Fingerprint = shard.FingerprintOf(&e.EnqueueRequest)
		m, class = e, mailbox.ClassNew
	}
	return m, shardNo, class
}

// enqueueOverHTTP is a producer that waits for its answer, and asks again with
// its key when that takes too long.
func (w *world) enqueueOverHTTP() {
	var batch []*request
	together := w.chance.oneIn(3)
	for range 1 + w.chance.IntN(4) {
		r := &request{world: w, body: w.newRequest()}
		w.trace.say("  POST %s priority %d key %q delay %d", r.body.Payload, r.body.Priority, r.body.IdempotencyKey, r.body.DelaySeconds)
		batch = append(batch, r)
		if again := *r; together && w.chance.oneIn(3) {
			batch = append(batch, &again)
		}
	}
	if together {
		w.postBatch(batch)
	}
	for _, r := range batch {
		if !together {
			r.post()
		}
	}
	if len(w.requests) == 0 || !w.chance.oneIn(3) {
		return
	}
	if late := pick(w.chance, w.requests); late.body.IdempotencyKey != "" && late.tries < 3 {
		w.trace.say("  POST %s again", late.body.Payload)
		again := *late
		again.post()
	}
}

// reportOverHTTP is a worker that lost its session and reports all the same,
// or somebody who waits for a result.
func (w *world) reportOverHTTP() {
	if len(w.overheard) == 0 {
		return
	}
	if w.chance.oneIn(4) && w.stopWaiting() {
		return
	}
	ref := pick(w.chance, w.overheard)
	t := w.model.tasks[ref.TaskID]
	if t == nil {
		return
	}
	if w.chance.oneIn(2) {
		w.trace.say("  wait for %s", w.name(t.id))
		(&request{world: w, watch: t.id}).post()
		return
	}
	w.trace.say("  POST result of %s", w.name(t.id))
	owner := shard.Owner{Tenant: t.tenant, Subject: pick(w.chance, subjects)}
	if t.subject != "" && !w.chance.oneIn(5) {
		owner.Subject = t.speaker()
	}
	(&request{world: w, result: &shard.Result{Holder: shard.Holder{Owner: owner, TaskRef: ref}, ResultRequest: w.outcome(ref)}}).post()
}

// stopWaiting is a caller that waits for a result no longer. What was under way
// to it may still come.
func (w *world) stopWaiting() bool {
	i := slices.IndexFunc(w.requests, func(r *request) bool { return !r.watch.IsZero() })
	if i < 0 {
		return false
	}
	r := w.requests[i]
	w.requests = slices.Delete(w.requests, i, i+1)
	w.trace.say("  wait no longer for %s", w.name(r.watch))
	w.server.engine.Control(w.server.engine.ShardOf(r.watch), nil, &shard.Unwatch{
		Asker: shard.Asker{Sink: r, Ref: shard.Ref(r.tries)}, TaskID: r.watch,
	})
	return true
}

// httpDied drops all calls under way: their outcome is unknown.
func (w *world) httpDied() {
	w.unknown = append(w.unknown[:0], w.requests...)
	w.requests = nil
	w.claims = nil
}

// retryUnknown asks again what got no answer before the crash, as far as a key
// makes that safe.
func (w *world) retryUnknown() {
	for _, r := range w.unknown {
		if r.body.IdempotencyKey != "" {
			w.trace.say("  POST %s again after the crash", r.body.Payload)
			again := *r
			again.post()
		}
	}
	w.unknown = w.unknown[:0]
}

// newRequest draws a new task.
func (w *world) newRequest() wire.EnqueueRequest {
	c := w.chance
	w.drawn++
	pad := w.shape.padBytes
	if w.shape.big && !c.oneIn(4) {
		pad = 100
	}
	r := wire.EnqueueRequest{
		Command: pick(c, busy), Priority: pick(c, []int{0, 0, 0, 5, 9}), MaxAttempts: c.IntN(5),
		Payload: fmt.Appendf(nil, `{"tenant":%q,"n":%d,"pad":"%s"}`, pick(c, w.shape.tenants), w.drawn,
			strings.Repeat("x", c.IntN(pad))),
	}
	if c.oneIn(5) {
		r.DelaySeconds = int64(pick(c, []int{1, 2, 10, 300}))
	} else if c.oneIn(20) {
		r.RunAtMs = w.nowMs + int64(c.IntN(5000)) - 1000
	}
	if c.oneIn(4) {
		n := c.IntN(40)
		r.IdempotencyKey = fmt.Sprintf("key/%d", n)
		r.Command, r.MaxAttempts, r.Priority = busy[n%len(busy)], 3, 0
		r.Payload = fmt.Appendf(nil, `{"tenant":%q,"key":%d,"other":%v}`, w.shape.tenants[n%len(w.shape.tenants)], n, c.oneIn(10))
	}
	if w.limitsOf(&r); r.IdempotencyKey != "" && !c.oneIn(10) {
		r.TimeoutSeconds = int64(len(r.IdempotencyKey) % 2 * 7)
	}
	if w.shape.hooks && crc32.ChecksumIEEE(r.Payload)%2 == 0 {
		r.Payload = bytes.Replace(r.Payload, []byte(`",`), []byte(`","hook":true,`), 1)
		r.Webhook = hookOf(r.Payload)
	}
	return w.shared(labelled(r))
}

// tenantOf is whose task a body over HTTP is.
func (w *world) tenantOf(r *wire.EnqueueRequest) string {
	for _, tenant := range tenants {
		if strings.HasPrefix(string(r.Payload), fmt.Sprintf(`{"tenant":%q`, tenant)) {
			return tenant
		}
	}
	return tenants[0]
}

// handsBack is why somebody hands a task back.
func (w *world) handsBack() wire.ReleaseRequest {
	return wire.ReleaseRequest{NotStarted: w.chance.oneIn(4), Stopping: w.chance.oneIn(8)}
}

// outcome draws how a task ends.
func (w *world) outcome(ref wire.TaskRef) wire.ResultRequest {
	if w.chance.oneIn(8) {
		return wire.ResultRequest{Status: wire.StatusFailed, Error: "cannot", Artifacts: w.filesNamed(ref)}
	}
	result := fmt.Appendf(nil, `{"of":"%s"}`, ref.Token)
	if ref.Token[0]%8 == 0 {
		// Too long for the record, and the same for each repetition.
		result = fmt.Appendf(nil, `{"of":"%s","pad":"%s"}`, ref.Token, strings.Repeat("x", 300))
	}
	return wire.ResultRequest{Status: wire.StatusCompleted, Result: result, Artifacts: w.filesNamed(ref)}
}
