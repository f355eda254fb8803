package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"time"

	"codeq/internal/callback"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// Worlds with webhooks have the worker of callbacks of production, and endpoints that answer
// as chance has it, or not at all.

// hookCommand is the queue of callbacks, hookSettings what it has: the numbers once more.
const hookCommand = "codeq.webhook"

var hookSettings = wire.QueueSettings{
	Spread: true, MaxAttempts: 10, LeaseSeconds: 30, Backoff: wire.Backoff{BaseSeconds: 5, MaxSeconds: 86_400},
	RetentionSeconds: 86_400, DLQRetentionSeconds: 604_800,
}

// allCommands are those that tasks have.
var allCommands = append(slices.Clone(commands), hookCommand)

// hookOf is the webhook that a task with this payload is posted with.
func hookOf(payload []byte) string {
	if !bytes.Contains(payload, []byte(`,"hook":true,`)) {
		return ""
	}
	return []string{"https://x.org/a", "https://x.org/b?q=1", "https://y.org/"}[crc32.ChecksumIEEE(payload)/7%3]
}

// hooks are the worker of one life, its consumers and the calls under way.
type hooks struct {
	world  *world
	worker *callback.Worker
	engine *shardactor.Engine
	sinks  []*hookSink
	calls  []*hookCall
}

type hookCall struct {
	*callback.Call
	done func(callback.Answer)
}

// hookSink looks at what goes to the consumer of a tenant.
type hookSink struct {
	world *world
	to    shard.Sink
	known *consumer
	last  []uint64
}

// Deliver implements shard.Sink.
func (s *hookSink) Deliver(effects []shard.Effect) {
	s.world.delivered(effects, s.last)
	s.to.Deliver(effects)
}

// newHooks makes the worker of a life, which gets the events before next does.
func (w *world) newHooks(next shardactor.Observer) *callback.Worker {
	w.hooks = &hooks{world: w}
	w.hooks.worker = callback.New(callback.Options{
		Next: next, NowMs: func() int64 { return w.nowMs }, Random: func() float64 { return float64(w.chance.IntN(1000)) / 1000 },
		Send: func(c *callback.Call, done func(callback.Answer)) {
			w.hooks.sends(c)
			w.hooks.calls = append(w.hooks.calls, &hookCall{c, done})
		},
	})
	return w.hooks.worker
}

// startHooks begins the work of a life, of which the model knows.
func (w *world) startHooks() {
	if w.hooks != nil {
		w.hooks.engine = w.server.engine
		w.hooks.worker.Start(w.hooks)
	}
}

// NewConsumer implements callback.Engine.
func (h *hooks) NewConsumer(o shardactor.ConsumerOptions) *shardactor.Consumer {
	s := &hookSink{world: h.world, to: o.Sink, last: make([]uint64, h.world.shape.shards)}
	o.Sink = s
	consumer := h.engine.NewConsumer(o)
	s.known = h.world.model.connected(consumer)
	s.known.resize(64)
	h.sinks = append(h.sinks, s)
	return consumer
}

// Control implements callback.Engine: the end of a delivery returns its credit.
func (h *hooks) Control(shardNo int, slot *mailbox.Slot[shard.Message], m shard.Message) bool {
	switch m := m.(type) {
	case *shard.Result:
		h.returns(m.TaskRef)
	case *shard.End:
		h.returns(m.TaskRef)
	}
	return h.engine.Control(shardNo, slot, m)
}

func (h *hooks) returns(ref wire.TaskRef) {
	for _, s := range h.sinks {
		if s.known.out[ref.Token] {
			delete(s.known.out, ref.Token)
			s.known.untaken -= len(h.world.model.tasks[ref.TaskID].payload)
			return
		}
	}
	violate("a callback is answered once", "%v", ref)
}

// Named and Name implement callback.Engine.
func (h *hooks) Named(tenant string, kind record.Kind) record.NamedList {
	return h.engine.Named(tenant, kind)
}
func (h *hooks) Name(n *shardactor.Naming) { h.engine.Name(n) }

// Shards implements callback.Engine.
func (h *hooks) Shards() int { return h.engine.Shards() }

// ShardOf implements callback.Engine.
func (h *hooks) ShardOf(id wire.TaskID) int { return h.engine.ShardOf(id) }

// sends looks at a call that goes out: it is that of a task that has ended on disk, it says
// what the first attempt said, and there are not too many to one endpoint.
func (h *hooks) sends(c *callback.Call) {
	t := h.world.model.parentOf[c.ID]
	if t == nil || t.tenant != c.Tenant || t.isNew || h.world.model.tasks[t.id] != t {
		violate("a callback tells of an end that stands", "%s of %s goes to %s", c.ID, c.Tenant, c.URL)
	}
	if want := fmt.Sprintf(`{"id":"%s","url":"%s","body":%s}`, c.ID, c.URL, c.Body); want != t.payload {
		violate("a callback says what the end was", "%s is sent, and was made as %s", want, t.payload)
	}
	if c.Attempt != t.attempts+1 {
		violate("a callback counts its attempts", "%s says %d after %d that failed", c.ID, c.Attempt, t.attempts)
	}
	same := 0
	for _, other := range h.calls {
		if other.URL == c.URL && other.Tenant == c.Tenant {
			same++
		}
	}
	if same >= 8 {
		violate("an endpoint has at most eight callbacks at once", "%s of %s", c.URL, c.Tenant)
	}
}

// answerHook is an endpoint that answers, or the end of its time.
func (w *world) answerHook(a callback.Answer) {
	h := w.hooks
	i := w.chance.IntN(len(h.calls))
	c := h.calls[i]
	h.calls = slices.Delete(h.calls, i, i+1)
	w.trace.say("  %s answers %d to %s, attempt %d", c.URL, a.Status, c.ID, c.Attempt)
	if a.Status == 200 {
		w.ledger.arrived[c.ID] = true
	}
	c.done(a)
}

// answerSomeHooks lets a few endpoints answer.
func (w *world) answerSomeHooks() {
	if w.hooks == nil {
		return
	}
	c := w.chance
	for n := c.IntN(4); n > 0 && len(w.hooks.calls) > 0; n-- {
		a := callback.Answer{Status: pick(c, []int{200, 200, 200, 204, 302, 404, 410, 429, 500, 503, 0, 0}), Problem: "no answer"}
		if a.Status == 204 {
			a.Status = 200
		}
		if a.Status == 429 || a.Status == 503 {
			a.RetryAfter = time.Duration(c.IntN(3)) * time.Second
		}
		w.answerHook(a)
	}
}

// answerAllHooks has everything arrive that is under way.
func (w *world) answerAllHooks() (moved bool) {
	for w.hooks != nil && len(w.hooks.calls) > 0 {
		w.answerHook(callback.Answer{Status: 200})
		moved = true
	}
	return moved
}

// everyCallbackCame: what is COMPLETED has arrived, and each end has a callback.
func (w *world) everyCallbackCame() {
	for _, t := range w.model.all {
		if t.command == hookCommand && t.status == wire.StatusCompleted && !w.ledger.arrived[t.calledAs] {
			violate("no callback is lost", "%s is done and has not arrived", t.calledAs)
		}
	}
}

// callsBack is what must follow from the end of a task with a webhook: a callback in the same
// shard and round, with the outcome as its payload.
func (m *model) callsBack(t *task, number uint64) {
	e := m.peek()
	if e.Command != hookCommand || e.From != "" || wire.ShardOfTask(e.TaskID, len(m.shards)) != t.shard {
		violate("an end has its callback", "task %v ended, and next is %+v", t.id, e)
	}
	made := &task{
		id: e.TaskID, shard: t.shard, tenant: t.tenant, command: hookCommand, ended: true,
		maxAttempts: hookSettings.MaxAttempts, calledAs: t.id.String() + "." + strconv.FormatUint(number, 10),
	}
	r := t.result
	body := fmt.Sprintf(`{"eventType":"%s","taskId":"%v","status":"%s"`, t.command, t.id, r.Status)
	if len(r.Result) > 0 {
		body += `,"result":` + string(r.Result)
	}
	if r.Error != "" {
		body += `,"error":` + strconv.Quote(r.Error)
	}
	if r.CancelCause != "" {
		body += `,"cancelCause":"` + r.CancelCause + `"`
	}
	body += `,"completedAt":"` + time.UnixMilli(r.CompletedAtMs).UTC().Format("2006-01-02T15:04:05.000Z") + `"}`
	made.payload = fmt.Sprintf(`{"id":"%s","url":"%s","body":%s}`, made.calledAs, t.webhook, body)
	t.callbacks = append(slices.Clip(t.callbacks), made.id)
	m.add(made)
	m.parentOf[made.calledAs] = made
	m.toTail(made)
	by := m.hand
	m.hand = hand{}
	m.moved(made, "", record.CauseEnqueue)
	m.hand = by
}

// putOff: the task waits, and nothing counts.
func (m *model) putOff(a *shard.End, t *task) {
	m.ends(t)
	m.toDelayed(t, m.at.NowMs+a.DelaySeconds*1000)
	m.moved(t, wire.LocationInProgress, record.CauseRelease)
	m.requeued(a.Asker, t)
}

// checkCallbacks compares the callbacks of a task with its history, which keeps the last lines.
func (t *task) checkCallbacks(seen *wire.Task) {
	var got []wire.TaskID
	for _, line := range seen.History {
		if !line.Callback.IsZero() {
			got = append(got, line.Callback)
		}
	}
	missing := len(t.callbacks) - len(got)
	if missing < 0 || missing > 0 && len(seen.History) < record.MaxHistory || !slices.Equal(got, t.callbacks[missing:]) || seen.Webhook != t.webhook {
		violate("the history names the callbacks", "%v of task %v, the history has %+v", t.callbacks, t.id, seen.History)
	}
}
