package sim

import (
	"fmt"

	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// orders is what shards know of queues that become ordered. A crash ends it.
type orders struct {
	// frozen counts the changes for which each shard keeps a queue empty.
	frozen []map[store.QueueKey]int
	// parked are the new tasks that wait in each shard for the settings of their
	// queue.
	parked [][]*shardactor.Enqueue
}

func newOrders(shards int) orders {
	o := orders{frozen: make([]map[store.QueueKey]int, shards), parked: make([][]*shardactor.Enqueue, shards)}
	for shard := range shards {
		o.frozen[shard] = make(map[store.QueueKey]int)
	}
	return o
}

func (m *model) home(q store.QueueKey) int {
	return wire.ShardOfQueue(q.Tenant, q.Command, len(m.shards))
}

// isOrdered says what the home of a queue has decided.
func (m *model) isOrdered(q store.QueueKey) bool { return m.settings[m.home(q)][q].Ordered }

func (t *task) queue() store.QueueKey { return store.QueueKey{Command: t.command, Tenant: t.tenant} }

// has says whether a queue has a task that was not removed, in one shard or, with
// -1, in any.
func (m *model) has(q store.QueueKey, shard int) bool {
	for _, t := range m.all {
		if !t.removed && t.queue() == q && (shard < 0 || t.shard == shard) {
			return true
		}
	}
	return false
}

// isHere says whether a new task is made in the shard that was asked. Otherwise
// it waits there, or goes back to be sent where it belongs.
func (m *model) isHere(a *shardactor.Enqueue) bool {
	shard, q := m.at.Shard, store.QueueKey{Command: a.Command, Tenant: a.Tenant}
	set := m.settings[shard][q]
	switch {
	case m.orders.frozen[shard][q] > 0 || a.RoutedBy > set.Version:
		m.parks(a)
	case set.Ordered && shard != m.home(q), !set.Ordered && set.Version > 0 && a.IdempotencyKey != "" &&
		shard != wire.ShardOfKey(a.Tenant, a.Command, a.IdempotencyKey, len(m.shards)):
		m.sentBack(a, set)
	default:
		return true
	}
	return false
}

// parks: a new task waits, unless too many do.
func (m *model) parks(a *shardactor.Enqueue) {
	shard := m.at.Shard
	bytes := len(a.Payload)
	for _, e := range m.orders.parked[shard] {
		bytes += len(e.Payload)
	}
	if len(m.orders.parked[shard]) >= m.limits.Parked || bytes > m.limits.ParkedBytes {
		m.refused(a.Asker, wire.CodeOverloaded)
		return
	}
	m.orders.parked[shard] = append(m.orders.parked[shard], a)
}

func (m *model) sentBack(a *shardactor.Enqueue, set store.Settings) {
	if m.at.effect >= len(m.at.Outcome.Effects) {
		violate("a misplaced task goes back", "%s of %s", a.Payload, a.Command)
	}
	next := m.at.Outcome.Effects[m.at.effect].Effect
	m.at.effect++
	if back, ok := next.(*shardactor.Misplaced); !ok || back.Enqueue != a || back.Settings != set {
		violate("a misplaced task goes back", "%s of %s by %+v, got %s", a.Payload, a.Command, set, describe(next))
	}
}

// placed holds a task that was made against the promises: an ordered queue has
// its tasks in one shard, and a key has its place.
func (m *model) placed(t *task) {
	switch q := t.queue(); {
	case m.isOrdered(q):
		if t.shard != m.home(q) {
			violate("an ordered queue has its tasks at home", "task %v of %v in shard %d", t.id, q, t.shard)
		}
	case t.key != "":
		if of := wire.ShardOfKey(t.tenant, t.command, t.key, len(m.shards)); of != t.shard {
			violate("a key has its place", "task %v of key %q in shard %d, not %d", t.id, t.key, t.shard, of)
		}
	}
}

// goesFirst says that no other shard has a task of an ordered queue that should
// have been handed out instead.
func (m *model) goesFirst(t *task) {
	if !m.isOrdered(t.queue()) {
		return
	}
	for shard := range m.shards {
		first := m.head(shard, t.tenant, t.command)
		if first != nil && (first.prio > t.prio || first.prio == t.prio && first.order < t.order) {
			violate("an ordered queue is first in, first out over all shards", "%+v was handed out before %+v", t, first)
		}
	}
}

// freeze: a shard says that it has nothing of a queue, and keeps it so.
func (m *model) freeze(a *shardactor.Freeze) {
	switch {
	case m.at.Space >= store.OnlyDelete:
		m.refused(a.Asker, wire.CodeStorageFull)
	case m.has(a.Queue, m.at.Shard):
		m.refused(a.Asker, wire.CodeQueueNotEmpty)
	default:
		expect[*shardactor.Frozen](m, a.Asker)
		m.orders.frozen[m.at.Shard][a.Queue]++
	}
}

// thawed judges the new tasks that waited for a copy of the settings.
func (m *model) thawed(a *shardactor.CopySettings) {
	shard := m.at.Shard
	if a.Thaw {
		m.orders.frozen[shard][a.Queue]--
	}
	waiting := m.orders.parked[shard]
	m.orders.parked[shard] = nil
	for _, e := range waiting {
		if e.Command == a.Queue.Command && e.Tenant == a.Queue.Tenant {
			m.enqueue(e)
		} else {
			m.orders.parked[shard] = append(m.orders.parked[shard], e)
		}
	}
}

// changesOrder says whether a change of that may be: over a queue without a task.
func (m *model) changesOrder(a *shardactor.Configure) (refused bool) {
	if m.has(a.Queue, m.at.Shard) {
		m.refused(a.Asker, wire.CodeQueueNotEmpty)
		return true
	}
	if m.has(a.Queue, -1) {
		violate("the order changes while there is no task", "queue %v", a.Queue)
	}
	return false
}

// nobodyWaits says that whoever waited for a change has heard of its end.
func (m *model) nobodyWaits() {
	for shard := range m.shards {
		if n := len(m.orders.parked[shard]); n > 0 {
			violate("changes come to an end", "%d new tasks wait in shard %d", n, shard)
		}
		eachQueue(func(q store.QueueKey) {
			if n := m.orders.frozen[shard][q]; n != 0 {
				violate("changes come to an end", "queue %v is frozen %d times in shard %d", q, n, shard)
			}
		})
	}
}

// strayed is shown what shards send back to the router.
func (w *world) strayed(effects []shardactor.Effect) { w.delivered(effects, w.server.lastStray) }

// orderSome is an admin who gives a queue an order or takes it, while tasks are
// on their way: posted before, meanwhile and after.
func (w *world) orderSome() {
	c := w.chance
	q := store.QueueKey{Command: quiet, Tenant: pick(c, w.shape.tenants)}
	if c.oneIn(4) {
		q.Command = pick(c, commands)
	}
	if c.oneIn(3) {
		w.empty(q)
		return
	}
	w.postTo(q)
	set := wire.QueueSettings{Ordered: !w.model.isOrdered(q), RetentionSeconds: pick(c, []int64{0, 1, 30})}
	if c.oneIn(6) {
		set.Ordered = !set.Ordered
	}
	w.configure(q, shardactor.SettingsChange{Settings: &set})
	if c.oneIn(3) {
		w.run(c.IntN(w.shape.shards))
	}
	w.postTo(q)
	if c.oneIn(8) {
		back := set // the first belongs to its message
		back.Ordered = !set.Ordered
		w.configure(q, shardactor.SettingsChange{Settings: &back})
	}
}

// postTo posts a few tasks to a queue.
func (w *world) postTo(q store.QueueKey) {
	for range w.chance.IntN(4) {
		r := &request{world: w, body: w.requestFor(q)}
		w.trace.say("  POST %s to %s, key %q", r.body.Payload, q.Command, r.body.IdempotencyKey)
		r.post()
	}
}

func (w *world) requestFor(q store.QueueKey) wire.EnqueueRequest {
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
	return r
}

// empty ends what is left of a queue and has it removed.
func (w *world) empty(q store.QueueKey) {
	w.trace.say("  empty %s of %s", q.Command, q.Tenant)
	for _, t := range w.model.all {
		if t.open() && !t.removed && t.queue() == q && w.model.tasks[t.id] != nil {
			(&request{world: w, cancel: t.id}).post()
		}
	}
	for shard := range w.shape.shards {
		m := &shardactor.Cleanup{Queues: []store.QueueKey{q}, BeforeMs: w.nowMs + 60_000, Limit: 1000}
		(&request{world: w, clean: m, shard: shard}).post()
	}
}
