package index

import (
	"cmp"
	"fmt"

	"codeq/internal/heap"
	"codeq/record"
)

// staleAfter is how many keys leave an order of which memory has none until its
// watermark is looked for anew. Each scan from the watermark goes over at least as many
// deleted ones; a look over them once is cheap beside their removal.
const advanceAfter = 1024

// Limits hold the runs of an index, in keys. A run longer than Run drops its tail, one
// shorter than Refill that is not complete wants a refill. AdvanceAfter is advanceAfter if it is 0.
type Limits struct {
	Run          int
	Refill       int
	AdvanceAfter int
}

// Index holds the queues of one shard. One goroutine only.
type Index struct {
	limits Limits
	queues map[record.QueueKey]*Queue

	// known has the orders by time whose first key is in memory, unread those that
	// have keys and none in memory.
	known  heap.Heap[byTime]
	unread heap.Heap[byTime]

	refills refillList
	lagging []Lagging
	dirty   []*Queue
}

// New makes an empty index. Limits must be 2 ≤ Run and 1 ≤ Refill ≤ Run.
func New(l Limits) *Index {
	if l.Run < 2 || l.Refill < 1 || l.Refill > l.Run {
		panic(fmt.Sprintf("index: runs of %d keys, refilled below %d", l.Run, l.Refill))
	}
	l.AdvanceAfter = cmp.Or(l.AdvanceAfter, advanceAfter)
	return &Index{limits: l, queues: make(map[record.QueueKey]*Queue)}
}

// Queue finds a queue or makes an empty one.
func (x *Index) Queue(key record.QueueKey) *Queue {
	q := x.queues[key]
	if q == nil {
		q = newQueue(x, key)
		x.queues[key] = q
	}
	return q
}

// Find is the queue of that key, nil if there is none.
func (x *Index) Find(key record.QueueKey) *Queue { return x.queues[key] }

// Restore makes a queue from its stored figures. Memory has none of its keys
// yet: each order that has any wants a refill from its watermark.
func (x *Index) Restore(key record.QueueKey, c record.Counters) *Queue {
	if x.queues[key] != nil {
		panic(fmt.Sprintf("index: queue %v restored twice", key))
	}
	if low := leastOf(&c); low < 0 {
		panic(fmt.Sprintf("index: queue %v restored with %d in %+v", key, low, c))
	}
	q := newQueue(x, key)
	q.counters = c
	x.queues[key] = q
	for prio := record.Priorities - 1; prio >= 0; prio-- {
		q.ready[prio].restore()
	}
	q.delayed.restore()
	q.expiring.restore()
	return q
}

func leastOf(c *record.Counters) int64 {
	least := min(c.Delayed, c.DelayedWatermarkMs, c.Expiring, c.ExpiringWatermarkMs, c.InProgress, c.Dead, c.Done)
	for _, n := range c.Ready {
		least = min(least, n)
	}
	for _, n := range c.DeadBy {
		least = min(least, n)
	}
	return least
}

func (r *run) restore() {
	r.cursor = justBelow(r.watermark())
	r.queue.settle(r)
}

// Forget drops a queue without a task; it must not be used after that. Panics
// unless all its counters are zero. If its figures have changed, TakeDirty
// still gives it.
func (x *Index) Forget(q *Queue) {
	if !q.counters.IsZero() || x.queues[q.key] != q {
		panic(fmt.Sprintf("index: queue %v forgotten with %+v", q.key, q.counters))
	}
	q.forgotten = true
	delete(x.queues, q.key)
}

// Due is a task whose moment in an order by time has come.
type Due struct {
	Queue *Queue
	Order Order
	Key   record.TimedKey
}

// HeadDue is the earliest task in memory over all queues and orders by time, if its
// moment has come at nowMs; of equal times the lower id. It stays until it is
// removed. An order of which only the watermark is known, and due, is refilled before
// others.
func (x *Index) HeadDue(nowMs int64) (d Due, ok bool) {
	if o, atMs := x.unread.Top(); o != nil && atMs <= nowMs {
		x.refills.hurry(&o.run)
	}
	o, atMs := x.known.Top()
	if o == nil || atMs > nowMs {
		return Due{}, false
	}
	return Due{o.queue, o.order, record.TimedKey{AtMs: atMs, ID: o.first().id}}, true
}

// NextDueAtMs is when the moment of the next task in an order by time comes, in Unix
// milliseconds, 0 if there is none. It may be too early, never too late: of an order
// that waits for a refill only the watermark is known.
func (x *Index) NextDueAtMs() int64 {
	known, atMs := x.known.Top()
	if unread, fromMs := x.unread.Top(); unread != nil && (known == nil || fromMs < atMs) {
		return max(1, fromMs) // 0 would mean that there is none
	}
	return atMs
}

// TakeDirty appends the queues whose counters or watermarks have changed since the
// last call to dst, in the order of their first change.
func (x *Index) TakeDirty(dst []*Queue) []*Queue {
	dst = append(dst, x.dirty...)
	for _, q := range x.dirty {
		q.dirty = false
	}
	clear(x.dirty)
	x.dirty = x.dirty[:0]
	return dst
}
