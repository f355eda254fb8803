package sim

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	// asking are the versions of endpoints that the worker has asked to disable.
	asking map[record.NamedKey]int64
	// targets are those of queues, alarms what After was told to do, posted the deliveries that
	// have left for their target; pushed is the call that a target has just answered.
	targets map[record.QueueKey]*aimed
	alarms  []alarm
	posted  map[wire.Token]bool
	pushed  *hookCall
}

// hookCall is a call; version is that of its endpoint. One of a target has a task, and how that
// has ended by the answer.
type hookCall struct {
	*callback.Call
	done    func(callback.Answer)
	version int64
	ref     wire.TaskRef
	queue   record.QueueKey
	sink    *hookSink
	ended   shard.Message
}

// hookSink looks at what goes to the consumer of a tenant, or of a queue with a target.
type hookSink struct {
	world *world
	takes record.QueueKey
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
	w.hooks = &hooks{world: w, asking: make(map[record.NamedKey]int64), targets: make(map[record.QueueKey]*aimed), posted: make(map[wire.Token]bool)}
	w.hooks.worker = callback.New(callback.Options{
		Next: next, NowMs: func() int64 { return w.nowMs }, Random: func() float64 { return float64(w.chance.IntN(1000)) / 1000 },
		Send: func(c *callback.Call, done func(callback.Answer)) {
			call := &hookCall{Call: c, done: done, version: w.holds[endpointKey(c.Tenant, c.Endpoint)].Version}
			if strings.Contains(c.ID, ".") {
				w.hooks.sends(c)
			} else {
				w.hooks.pushes(call)
			}
			w.hooks.calls = append(w.hooks.calls, call)
		},
		After:    func(ms int64, do func()) { w.hooks.alarms = append(w.hooks.alarms, alarm{w.nowMs + ms, do}) },
		Disabled: func(tenant, name, reason string) { w.trace.say("  %s of %s is disabled: %s", name, tenant, reason) },
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
	h.sinks = append(h.sinks, s)
	return consumer
}

// Control implements callback.Engine: the end of a delivery returns its credit.
func (h *hooks) Control(shardNo int, slot *mailbox.Slot[shard.Message], m shard.Message) bool {
	switch m := m.(type) {
	case *shard.Subscribe:
		h.subscribes(m)
	case *shard.Result:
		h.ends(m.TaskRef, m)
	case *shard.End:
		h.ends(m.TaskRef, m)
	}
	return h.engine.Control(shardNo, slot, m)
}

// ends notes how a delivery ends.
func (h *hooks) ends(ref wire.TaskRef, m shard.Message) {
	if h.pushed != nil && h.pushed.ref == ref {
		h.pushed.ended = m
	}
	h.returns(ref)
}

// returns notes the credit of a delivery, and its bytes unless it has left for its target.
func (h *hooks) returns(ref wire.TaskRef) {
	s := h.holderOf(ref)
	delete(s.known.out, ref.Token)
	if !h.posted[ref.Token] {
		h.world.model.hasTaken(s.known, len(h.world.model.tasks[ref.TaskID].payload), s.known.most)
	}
}

func (h *hooks) holderOf(ref wire.TaskRef) *hookSink {
	for _, s := range h.sinks {
		if s.known.out[ref.Token] {
			return s
		}
	}
	violate("a callback is answered once", "%v", ref)
	return nil
}

// Named and Name implement callback.Engine.
func (h *hooks) Named(tenant string, kind record.Kind) record.NamedList {
	return h.engine.Named(tenant, kind)
}
func (h *hooks) Name(n *shardactor.Naming) { h.world.asksToDisable(n) }

// Shards implements callback.Engine.
func (h *hooks) Shards() int { return h.engine.Shards() }

// ShardOf implements callback.Engine.
func (h *hooks) ShardOf(id wire.TaskID) int { return h.engine.ShardOf(id) }

// sends looks at a call that goes out: it is that of a task that has ended on disk, it says
// what the first attempt said, and there are not too many to one endpoint.
func (h *hooks) sends(c *callback.Call) {
	t := h.world.model.parentOf[c.ID+c.Endpoint]
	if t == nil || t.tenant != c.Tenant || t.isNew || h.world.model.tasks[t.id] != t {
		violate("a callback tells of an end that stands", "%s of %s goes to %s", c.ID, c.Tenant, c.URL)
	}
	to := `"url":"` + c.URL
	if c.Endpoint != "" {
		to = `"endpoint":"` + c.Endpoint
		h.world.goesTo(c)
	}
	if want := fmt.Sprintf(`{"id":"%s",%s","body":%s}`, c.ID, to, c.Body); want != t.payload {
		violate("a callback says what the end was", "%s is sent, and was made as %s", want, t.payload)
	}
	if c.Attempt != t.attempts+1 {
		violate("a callback counts its attempts", "%s says %d after %d that failed", c.ID, c.Attempt, t.attempts)
	}
	h.world.model.goesOut(t, c)
	same := 0
	for _, other := range h.calls {
		if other.Tenant == c.Tenant && other.Endpoint == c.Endpoint && (c.Endpoint != "" || other.URL == c.URL) {
			same++
		}
	}
	if same >= 8 {
		violate("an endpoint has at most eight callbacks at once", "%s of %s", c.URL, c.Tenant)
	}
}

// answerHook is an endpoint that answers, or the end of its time. At the end of a world all answer
// well.
func (w *world) answerHook(a callback.Answer, well bool) {
	h := w.hooks
	i := w.chance.IntN(len(h.calls))
	c := h.calls[i]
	h.calls = slices.Delete(h.calls, i, i+1)
	if c.sink != nil {
		if !well {
			a = w.targetAnswer(a)
		}
		w.answerPush(c, a)
		return
	}
	w.trace.say("  %s answers %d to %s, attempt %d", c.URL, a.Status, c.ID, c.Attempt)
	if a.Status == 200 {
		w.ledger.arrived[c.ID+c.Endpoint] = true
	}
	c.done(a)
	if key := endpointKey(c.Tenant, c.Endpoint); a.Status == http.StatusGone && c.Endpoint != "" && w.isOpen(key, c.version) && h.asking[key] != c.version {
		violate("an endpoint that is gone is disabled", "%+v, nobody asks for that", w.holds[key])
	}
}

// answerSomeHooks lets a few endpoints answer.
func (w *world) answerSomeHooks() {
	if w.hooks == nil {
		return
	}
	w.alarmsRing()
	c := w.chance
	for n := c.IntN(4); n > 0 && len(w.hooks.calls) > 0; n-- {
		a := callback.Answer{Status: pick(c, []int{200, 200, 200, 204, 302, 404, 410, 429, 500, 503, 0, 0}), Problem: "no answer"}
		if a.Status == 204 {
			a.Status = 200
		}
		if a.Status == 429 || a.Status == 503 {
			a.RetryAfter = time.Duration(c.IntN(3)) * time.Second
		}
		w.answerHook(a, false)
	}
}

// answerAllHooks has everything arrive that is under way.
func (w *world) answerAllHooks() (moved bool) {
	for w.hooks != nil && len(w.hooks.calls) > 0 {
		w.answerHook(callback.Answer{Status: 200}, true)
		moved = true
	}
	return moved
}

// everyCallbackCame: what is COMPLETED has arrived, and each end has a callback.
func (w *world) everyCallbackCame() {
	for _, t := range w.model.all {
		if t.command == hookCommand && t.status == wire.StatusCompleted && !w.ledger.arrived[t.calledAs+t.endpoint] {
			violate("no callback is lost", "%s is done and has not arrived", t.calledAs)
		}
	}
}

// callsBack is what must follow from the end of a task whose outcome an endpoint gets, or its
// webhook if that is empty: a callback in the same shard and round, with the outcome as its payload.
func (m *model) callsBack(t *task, endpoint string, number uint64) {
	e := m.peek()
	if e.Command != hookCommand || e.From != "" || wire.ShardOfTask(e.TaskID, len(m.shards)) != t.shard {
		violate("an end has its callback", "task %v ended, and next is %+v", t.id, e)
	}
	made := &task{
		id: e.TaskID, shard: t.shard, tenant: t.tenant, command: hookCommand, ended: true,
		maxAttempts: hookSettings.MaxAttempts, calledAs: t.id.String() + "." + strconv.FormatUint(number, 10), endpoint: endpoint,
		trace: m.following(t, t.deliveries),
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
	if len(r.Artifacts) > 0 {
		text := string(wire.AppendArtifacts(nil, r.Artifacts))
		body += "," + text[1:len(text)-1]
	}
	body += `,"completedAt":"` + time.UnixMilli(r.CompletedAtMs).UTC().Format("2006-01-02T15:04:05.000Z") + `"}`
	to := `"url":"` + t.webhook
	if endpoint != "" {
		to = `"endpoint":"` + endpoint
	}
	made.payload = fmt.Sprintf(`{"id":"%s",%s","body":%s}`, made.calledAs, to, body)
	t.callbacks = append(slices.Clip(t.callbacks), made.id)
	m.add(made)
	m.parentOf[made.calledAs+endpoint] = made
	m.toTail(made)
	by := m.hand
	m.hand = hand{}
	m.moved(made, "", record.CauseEnqueue)
	m.hand = by
}

// putOff: the task waits, and nothing counts.
func (m *model) putOff(a *shard.End, t *task) {
	m.ends(t)
	if !m.tooLate(t) {
		m.toDelayed(t, m.at.NowMs+a.DelaySeconds*1000)
		m.moved(t, wire.LocationInProgress, record.CauseRelease)
	}
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
