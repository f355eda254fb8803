package sim

import (
	"fmt"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// frozen counts, in each shard, the changes for which it keeps a queue empty. A
// crash ends it.
type frozen []map[record.QueueKey]int

func newFrozen(shards int) frozen {
	f := make(frozen, shards)
	for shard := range f {
		f[shard] = make(map[record.QueueKey]int)
	}
	return f
}

func (m *model) home(q record.QueueKey) int {
	return wire.ShardOfQueue(q.Tenant, q.Command, len(m.shards))
}

// isSpread says what the home of a queue has decided.
func (m *model) isSpread(q record.QueueKey) bool {
	return q.Command == hookCommand || m.settings[m.home(q)][q].Spread
}

func (t *task) queue() record.QueueKey { return record.QueueKey{Command: t.command, Tenant: t.tenant} }

// has says whether a queue has a task in a shard that was not removed.
func (m *model) has(q record.QueueKey, shard int) bool {
	for _, t := range m.all {
		if !t.removed && t.queue() == q && t.shard == shard {
			return true
		}
	}
	return false
}

// takesNew says whether a new task is made in the shard that was asked. Otherwise
// it is refused, because its queue has its tasks at home, or soon will.
func (m *model) takesNew(a *shard.Enqueue) bool {
	shardNo, q := m.at.Shard, record.QueueKey{Command: a.Command, Tenant: a.Tenant}
	if m.settings[shardNo][q].Deleting {
		m.refused(a.Asker, wire.CodeQueueDeleted)
		return false
	}
	if shardNo == m.home(q) || m.settings[shardNo][q].Spread && m.frozen[shardNo][q] == 0 {
		return true
	}
	m.refused(a.Asker, wire.CodeOverloaded)
	return false
}

// placed holds a task that was made against the promises: a queue has its tasks at
// home, a spread one those with a key.
func (m *model) placed(t *task) {
	switch q := t.queue(); {
	case t.shard == m.home(q):
	case !m.isSpread(q):
		violate("a queue has its tasks at home", "task %v of %v in shard %d", t.id, q, t.shard)
	case t.key != "":
		violate("a key is at home", "task %v of %v with key %q in shard %d", t.id, q, t.key, t.shard)
	}
}

// goesFirst says that no other shard has a task of a queue with one order that
// should have been handed out instead.
func (m *model) goesFirst(t *task) {
	if m.isSpread(t.queue()) {
		return
	}
	for shard := range m.shards {
		first := m.head(shard, t.tenant, t.command)
		if first != nil && (first.prio > t.prio || first.prio == t.prio && first.order < t.order) {
			violate("a queue is first in, first out over all shards", "%+v was handed out before %+v", t, first)
		}
	}
}

// freeze: a shard says that it has nothing of a queue, and keeps it so.
func (m *model) freeze(a *shard.Freeze) {
	switch {
	case m.at.Space >= store.OnlyDelete:
		m.refused(a.Asker, wire.CodeStorageFull)
	case a.Delete != nil && !m.settings[m.at.Shard][a.Queue].Deleting && !m.mayDelete(a.Queue, a.Delete),
		a.Delete == nil && m.has(a.Queue, m.at.Shard):
		m.refused(a.Asker, wire.CodeQueueNotEmpty)
	default:
		expect[*shard.Frozen](m, a.Asker)
		m.frozen[m.at.Shard][a.Queue]++
	}
}

// mayHaveOneOrder says that a queue becomes one that is not spread only while all
// its tasks lie at home.
func (m *model) mayHaveOneOrder(q record.QueueKey) {
	for shard := range m.shards {
		if shard != m.home(q) && m.has(q, shard) {
			violate("a queue has its tasks at home", "queue %v is spread no more, and has tasks in shard %d", q, shard)
		}
	}
}

// nobodyWaits says that whoever waited for a change has heard of its end.
func (m *model) nobodyWaits() {
	for shard := range m.shards {
		eachQueue(func(q record.QueueKey) {
			if n := m.frozen[shard][q]; n != 0 {
				violate("changes come to an end", "queue %v is frozen %d times in shard %d", q, n, shard)
			}
		})
	}
}

// orderSome is an admin who spreads a queue or puts it into one order, while tasks
// are on their way: posted before, meanwhile and after.
func (w *world) orderSome() {
	c := w.chance
	q := record.QueueKey{Command: quiet, Tenant: pick(c, w.shape.tenants)}
	if c.oneIn(4) {
		q.Command = pick(c, commands)
	}
	if c.oneIn(3) {
		w.empty(q)
		return
	}
	w.postTo(q)
	set := wire.QueueSettings{Spread: !w.model.isSpread(q), RetentionSeconds: pick(c, []int64{0, 1, 30})}
	if c.oneIn(6) {
		set.Spread = !set.Spread
	}
	w.configure(q, shard.SettingsChange{Settings: &set})
	if c.oneIn(3) {
		w.run(c.IntN(w.shape.shards))
	}
	w.postTo(q)
	if c.oneIn(8) {
		back := set // the first belongs to its message
		back.Spread = !set.Spread
		w.configure(q, shard.SettingsChange{Settings: &back})
	}
}

// postTo posts a few tasks to a queue.
func (w *world) postTo(q record.QueueKey) {
	for range w.chance.IntN(4) {
		r := &request{world: w, body: w.requestFor(q)}
		w.trace.say("  POST %s to %s, key %q", r.body.Payload, q.Command, r.body.IdempotencyKey)
		r.post()
	}
}

func (w *world) requestFor(q record.QueueKey) wire.EnqueueRequest {
	c := w.chance
	w.drawn++
	r := wire.EnqueueRequest{
		Command: q.Command, Priority: pick(c, []int{0, 0, 9}), MaxAttempts: 2,
		Payload: fmt.Appendf(nil, `{"tenant":%q,"n":%d}`, q.Tenant, w.drawn),
	}
	if c.oneIn(2) {
		n := c.IntN(6)
		r.IdempotencyKey = fmt.Sprintf("order/%d", n)
		r.Priority, r.Payload = 0, fmt.Appendf(nil, `{"tenant":%q,"order":%d}`, q.Tenant, n)
	}
	return w.shared(labelled(r))
}

// empty ends what is left of a queue and has it removed.
func (w *world) empty(q record.QueueKey) {
	w.trace.say("  empty %s of %s", q.Command, q.Tenant)
	for _, t := range w.model.all {
		if t.open() && !t.removed && t.queue() == q && w.model.tasks[t.id] != nil {
			(&request{world: w, cancel: t.id}).post()
		}
	}
	for shardNo := range w.shape.shards {
		m := &shard.Cleanup{Queues: []record.QueueKey{q}, BeforeMs: w.nowMs + 60_000, Limit: 1000}
		(&request{world: w, clean: m, shard: shardNo}).post()
	}
}
