package index

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// small limits make dropping, refilling and emptiness happen all the time.
var small = Limits{Run: 8, Refill: 3, AdvanceAfter: 4}

// large are those of a server.
var large = Limits{Run: 4096, Refill: 1024}

// model is a shard without an index: every order as a full sorted list, as the
// store would have it, from which refills are served.
type model struct {
	t      failing
	r      *rand.Rand
	x      *Index
	queues []*modelQueue
	// held are the tasks in progress, which may go back to their old key.
	held  []heldTask
	seq   uint64
	tasks uint64
	nowMs int64
	// since is when the task of a place became ready.
	since map[place]int64
	// dirty are the queues that TakeDirty must give next, in order.
	dirty []*modelQueue
	// lagging are the orders whose watermarks must be recomputed, in order; gone counts
	// the removals from each since then.
	lagging []Lagging
	gone    map[Lagging]int
	// asked are the orders whose head somebody was told to wait for; see refillAsked.
	asked []*askedRun
	// said grows with every answer of the index.
	said   []string
	counts map[string]int
}

// failing is what the model needs of a test, so that rapid can drive it too.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

type modelQueue struct {
	key    record.QueueKey
	q      *Queue
	orders [expiringOrder + 1][]place
	// filled means that a refill came after the last change. A refill raises no
	// watermark, since it must not make the figures change.
	filled [expiringOrder + 1]bool
	held   int64
	dead   []place
	done   []place
}

type heldTask struct {
	in   *modelQueue
	prio int
	key  place
}

// Behind the ready orders are those by time.
const (
	delayedOrder  = record.Priorities
	expiringOrder = delayedOrder + 1
)

var timedOrders = []int{delayedOrder, expiringOrder}

func newModel(t failing, seed uint64) *model {
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 1)), x: New(small), nowMs: 1000,
		since: map[place]int64{}, gone: map[Lagging]int{}, counts: map[string]int{}}
	for i := range 3 {
		key := record.QueueKey{Command: fmt.Sprintf("c%d", i), Tenant: "t"}
		m.queues = append(m.queues, &modelQueue{key: key, q: m.x.Queue(key)})
	}
	return m
}

func (m *model) say(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

func (m *model) hash() uint64 {
	h := fnv.New64a()
	for _, line := range m.said {
		h.Write([]byte(line))
	}
	return h.Sum64()
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("after %d answers: %s", len(m.said), fmt.Sprintf(format, args...))
}

// touched tells the model that the figures of mq changed.
func (m *model) touched(mq *modelQueue) *Queue {
	if mq.q == nil {
		mq.q = m.x.Queue(mq.key)
	}
	if !slices.Contains(m.dirty, mq) {
		m.dirty = append(m.dirty, mq)
	}
	return mq.q
}

func (m *model) newID() wire.TaskID {
	m.tasks++
	// Random first bytes: ids do not arrive in order.
	id := wire.TaskID{byte(m.r.IntN(256)), byte(m.r.IntN(256))}
	for i := range 8 {
		id[15-i] = byte(m.tasks >> (8 * i))
	}
	return id
}

func insertSorted(keys []place, k place) []place {
	i, found := slices.BinarySearchFunc(keys, k, place.compare)
	if found {
		panic(fmt.Sprintf("model has %v already", k))
	}
	return slices.Insert(keys, i, k)
}

func removeSorted(keys []place, k place) []place {
	i, found := slices.BinarySearchFunc(keys, k, place.compare)
	if !found {
		panic(fmt.Sprintf("model does not have %v", k))
	}
	return slices.Delete(keys, i, i+1)
}

func pending(k place) record.PendingKey { return record.PendingKey{Seq: k.rank, ID: k.id} }

func timed(k place) record.TimedKey { return record.TimedKey{AtMs: int64(k.rank), ID: k.id} }

func (m *model) add(mq *modelQueue, order int, k place) {
	q := m.touched(mq)
	mq.orders[order] = insertSorted(mq.orders[order], k)
	mq.filled[order] = false
	switch order {
	case delayedOrder:
		q.AddDelayed(timed(k))
		return
	case expiringOrder:
		q.AddExpiring(timed(k))
		return
	}
	m.since[k] = m.nowMs
	q.AddReady(order, pending(k), m.nowMs)
}

func (m *model) remove(mq *modelQueue, order int, k place) {
	q := m.touched(mq)
	mq.orders[order] = removeSorted(mq.orders[order], k)
	mq.filled[order] = false
	before := mq.run(order).watermark()
	switch order {
	case delayedOrder:
		q.RemoveDelayed(timed(k))
	case expiringOrder:
		q.RemoveExpiring(timed(k))
	default:
		q.RemoveReady(order, pending(k))
	}
	if after := mq.run(order).watermark(); after < before {
		m.fatalf("a removal lowered a watermark from %d to %d", before, after)
	}
}

func (m *model) nextKey(id wire.TaskID) place {
	m.seq++
	return place{m.seq, id}
}

func (m *model) anyQueue() *modelQueue { return m.queues[m.r.IntN(len(m.queues))] }

func (m *model) anyPriority() int { return []int{0, 5, 9}[m.r.IntN(3)] }

func (m *model) anyDue() uint64 { return uint64(m.nowMs) + uint64(m.r.IntN(20)) }

// takeHeld takes one of the tasks in progress out of it.
func (m *model) takeHeld() (h heldTask, ok bool) {
	if len(m.held) == 0 {
		return h, false
	}
	i := m.r.IntN(len(m.held))
	h = m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.touched(h.in).RemoveLeased()
	m.left(h.in.q, true)
	h.in.held--
	return h, true
}

// serve answers one refill from the full order.
func (m *model) serve() bool {
	f, ok := m.nextRefill()
	if !ok {
		return false
	}
	again, _ := m.x.NextRefill()
	if again != f {
		m.fatalf("asked twice, a refill is %+v and then %+v", f, again)
	}
	mq := m.queueOf(f.Queue)
	order, after := f.Priority, place{f.AfterPending.Seq, f.AfterPending.ID}
	if f.Order != Ready {
		order, after = timedOrders[f.Order-Delayed], place{uint64(f.AfterTimed.AtMs), f.AfterTimed.ID}
	}
	r := mq.run(order)
	if r.len() >= small.Refill || r.len() >= len(mq.orders[order]) || f.Limit < 1 || r.len()+f.Limit > small.Run {
		m.fatalf("refill %+v of a run of %d with %d live keys", f, r.len(), len(mq.orders[order]))
	}
	var found []place
	for _, k := range mq.orders[order] {
		if k.compare(after) > 0 && len(found) < f.Limit {
			found = append(found, k)
		}
	}
	m.say("refill %v %v %d %v+%d", mq.key, f.Order, f.Priority, after, len(found))
	before := mq.q.counters.ReadySinceMs
	m.fill(f, found)
	if mq.q.counters.ReadySinceMs != before {
		if order >= delayedOrder || before[order] != 0 {
			m.fatalf("a refill changed what was known of %v: %v, then %v", mq.key, before, mq.q.counters.ReadySinceMs)
		}
		m.touched(mq)
		m.counts["head found by a refill"]++
	}
	mq.filled[order] = true
	m.answered(mq.run(order))
	m.counts["refilled"]++
	return true
}

func (m *model) fill(f Refill, found []place) {
	if f.Order != Ready {
		keys := make([]record.TimedKey, len(found))
		for i, k := range found {
			keys[i] = timed(k)
		}
		f.FillTimed(keys)
		return
	}
	entries := make([]record.PendingEntry, len(found))
	for i, k := range found {
		entries[i] = record.PendingEntry{PendingKey: pending(k), ReadyAtMs: m.since[k]}
	}
	f.FillPending(entries)
}

func (m *model) queueOf(q *Queue) *modelQueue {
	for _, mq := range m.queues {
		if mq.q == q {
			return mq
		}
	}
	m.fatalf("queue %v is none of the model's", q.Key())
	return nil
}

func (mq *modelQueue) run(order int) *run {
	switch order {
	case delayedOrder:
		return &mq.q.delayed.run
	case expiringOrder:
		return &mq.q.expiring.run
	}
	return &mq.q.ready[order]
}

func (mq *modelQueue) isEmpty() bool {
	for _, keys := range mq.orders {
		if len(keys) > 0 {
			return false
		}
	}
	return mq.held == 0 && len(mq.dead) == 0 && len(mq.done) == 0
}
