package sim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"codeq/internal/callback"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// Queues have targets, which get their tasks one window at a time and end them by how they answer.
// One that is silent gets one task now and then, and holds up nobody.

// The numbers of targets, once more.
const (
	silentAfter  = 5
	probeEveryMs = 30_000
	firstWindow  = 8
)

// aimed is the target of a queue, and how it has fared in this life.
type aimed struct {
	wire.Target
	sink      *hookSink
	failures  int
	probeAtMs int64
}

// size is how many tasks it has at once.
func (a *aimed) size(nowMs int64) int {
	switch {
	case a.failures < silentAfter:
		return cmp.Or(a.Window, firstWindow)
	case nowMs < a.probeAtMs:
		return 0
	}
	return 1
}

// alarm is something that the worker does at a time.
type alarm struct {
	atMs int64
	do   func()
}

// alarmsRing does what it is time for.
func (w *world) alarmsRing() (rang bool) {
	if w.hooks == nil {
		return false
	}
	h := w.hooks
	for i := 0; i < len(h.alarms); i++ {
		if a := h.alarms[i]; a.atMs <= w.nowMs {
			h.alarms = slices.Delete(h.alarms, i, i+1)
			a.do()
			i, rang = -1, true
		}
	}
	if rang {
		eachQueue(h.resize)
	}
	return rang
}

func (w *world) nextAlarm(next int64) int64 {
	if w.hooks != nil {
		for _, a := range w.hooks.alarms {
			next = min(next, max(a.atMs, w.nowMs+1))
		}
	}
	return next
}

// follow is EngineOptions.Settings.
func (h *hooks) follow(q record.QueueKey, set *record.Settings) {
	a := h.targets[q]
	switch {
	case set.Target.URL == "" || set.Deleting:
		if a != nil && a.sink != nil {
			a.sink.known.closed = true
		}
		delete(h.targets, q)
	case a == nil:
		h.targets[q] = &aimed{Target: set.Target}
	default:
		if a.URL != set.Target.URL {
			a.failures, a.probeAtMs = 0, 0
		}
		a.Target = set.Target
	}
	h.worker.Follow(q, set)
	h.resize(q)
}

// resize follows how many tasks the target of a queue has.
func (h *hooks) resize(q record.QueueKey) {
	if a := h.targets[q]; a != nil && a.sink != nil && a.sink.known.window != a.size(h.world.nowMs) {
		a.sink.known.resize(a.size(h.world.nowMs))
	}
}

// subscribes notes what a consumer of the worker takes.
func (h *hooks) subscribes(m *shard.Subscribe) {
	i := slices.IndexFunc(h.sinks, func(s *hookSink) bool { return s.known.Consumer.Consumer == m.Consumer })
	s := h.sinks[i]
	if s.takes.Command != "" {
		return
	}
	s.takes = record.QueueKey{Command: m.Commands[0], Tenant: m.Consumer.Tenant}
	if s.takes.Command == hookCommand {
		s.known.resize(64)
		return
	}
	h.targets[s.takes].sink = s
	h.resize(s.takes)
}

// pushes looks at a task that goes to its target.
func (h *hooks) pushes(c *hookCall) {
	task, token, err := wire.ParseClaimed(c.Body)
	if err != nil || h.world.model.tasks[task.ID] == nil {
		violate("a target gets the tasks of its queue", "%s: %v", c.Body, err)
	}
	t := h.world.model.tasks[task.ID]
	c.ref, c.queue = wire.TaskRef{TaskID: t.id, Token: token}, t.queue()
	if c.sink = h.holderOf(c.ref); c.sink.takes != c.queue || c.Tenant != t.tenant || c.ID != t.id.String() || string(task.Payload) != t.payload || c.Attempt != task.Attempts+1 {
		violate("a target gets the tasks of its queue", "%+v of %v gets %s as attempt %d", t, c.sink.takes, c.Body, c.Attempt)
	}
	h.world.model.goesOut(t, c.Call)
	h.posted[token] = true
	h.world.model.hasTaken(c.sink.known, len(t.payload), c.sink.known.most)
	a := h.targets[c.queue]
	if a == nil || a.sink != c.sink {
		return // it was on its way when the queue lost the target
	}
	if a.URL != c.URL {
		violate("a target gets the tasks of its queue", "%v goes to %s, the target is %s", t.id, c.URL, a.URL)
	}
	if a.failures >= silentAfter && (h.world.nowMs < a.probeAtMs || slices.ContainsFunc(h.calls, func(o *hookCall) bool { return o.sink == c.sink })) {
		violate("a silent target is tried with one task", "%v of %v goes out at %d: %+v", t.id, c.queue, h.world.nowMs, *a)
	}
}

// targetAnswer is how a target answers where an endpoint would answer so.
func (w *world) targetAnswer(a callback.Answer) callback.Answer {
	c := w.chance
	if c.oneIn(4) {
		a = callback.Answer{Status: pick(c, []int{http.StatusAccepted, http.StatusAccepted, http.StatusUnprocessableEntity, http.StatusBadGateway})}
	}
	if a.Refused = a.Status == 0 && c.oneIn(4); a.Status != 0 {
		a.Body = []byte(pick(c, []string{"", `{"width":64}`, "null", "[1]", "no"}))
	}
	return a
}

// answerPush is a target that answers.
func (w *world) answerPush(c *hookCall, a callback.Answer) {
	h := w.hooks
	w.trace.say("  %s answers %d %s to %s, attempt %d", c.URL, a.Status, a.Body, w.name(c.ref.TaskID), c.Attempt)
	h.pushed = c
	c.done(a)
	h.pushed = nil
	if a.Status == http.StatusAccepted {
		h.returns(c.ref)
		w.overhear(c.ref)
		w.errands = append(w.errands[max(0, len(w.errands)-errandsMost+1):], errand{c.ref, c.Tenant, pick(w.chance, subjects), "goal"})
	}
	if !c.isEndedBy(&a) {
		violate("a target ends its tasks by its answers", "%d %q: %s", a.Status, a.Body, fmt.Sprintf("%T%+v", c.ended, c.ended))
	}
	if at := h.targets[c.queue]; at != nil && at.sink == c.sink && at.URL == c.URL {
		at.note(&a, w.nowMs)
	}
	h.resize(c.queue)
}

// note counts what tells of all tasks of a target.
func (a *aimed) note(answer *callback.Answer, nowMs int64) {
	if !slices.Contains([]int{0, 429, 502, 503, 504}, answer.Status) {
		a.failures = 0
		return
	}
	if a.failures++; answer.Refused {
		a.failures = max(a.failures, silentAfter)
	}
	a.probeAtMs = nowMs + probeEveryMs
}

// isEndedBy says whether what the worker has said of the task follows from the answer.
func (c *hookCall) isEndedBy(a *callback.Answer) bool {
	busy := a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable
	switch m := c.ended.(type) {
	case nil:
		return a.Status == http.StatusAccepted
	case *shard.Result:
		if a.Status == http.StatusUnprocessableEntity {
			return m.Status == wire.StatusFailed
		}
		want := "{}"
		if len(a.Body) > 0 && a.Body[0] == '{' {
			want = string(a.Body)
		}
		return a.Status/100 == 2 && a.Status != http.StatusAccepted && m.Status == wire.StatusCompleted && string(m.ResultRequest.Result) == want
	case *shard.End:
		switch least := int64(a.RetryAfter / time.Second); {
		case a.Refused:
			return m.How == shard.PutOff && m.DelaySeconds*1000 == probeEveryMs
		case busy && least == 0:
			return m.How == shard.PutOff && m.DelaySeconds >= 4 && m.DelaySeconds <= 6
		case busy:
			return m.How == shard.PutOff && m.DelaySeconds == least
		}
		return m.How == shard.Nack && m.DelaySeconds == -1 && a.Status/100 != 2 && a.Status != http.StatusUnprocessableEntity
	}
	return false
}

// aimSome is an admin who gives a queue a target, another one or none, and leaves the rest.
func (w *world) aimSome() {
	c := w.chance
	q := record.QueueKey{Command: pick(c, commands), Tenant: pick(c, w.shape.tenants)}
	set := w.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, w.shape.shards)][q].QueueSettings
	set.Target = wire.Target{URL: pick(c, []string{"", "https://t.org/a", "https://t.org/b", "https://t.org/a"}), Window: pick(c, []int{0, 1, 2})}
	if set.Target.URL == "" {
		set.Target.Window = 0
	}
	w.configure(q, shard.SettingsChange{Settings: &set})
}
