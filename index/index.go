package index

import (
	"cmp"
	"fmt"

	"codeq/internal/heap"
	"codeq/record"
)

// advanceAfter is the number of removals after which the low watermark of an order
// not cached in memory is recomputed. Until then each scan of the order passes over
// that many tombstones. One scan for 1,024 removals is cheap beside the removals.
const advanceAfter = 1024

// Limits bound the runs of an index, in keys. A run longer than Run drops its tail. A
// run shorter than Refill that is not complete wants a refill. AdvanceAfter is how many
// keys leave an order before NextLagging gives it; 0 means advanceAfter.
type Limits struct {
	Run          int
	Refill       int
	AdvanceAfter int
}

// Index holds the queues of one shard. One goroutine only.
type Index struct {
	limits Limits
	queues map[record.QueueKey]*Queue

	// known has the orders by time whose first key is in memory, unread those whose
	// keys are all in the store.
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

// Queue returns the queue of that key and makes it if there is none.
func (x *Index) Queue(key record.QueueKey) *Queue {
	q := x.queues[key]
	if q == nil {
		q = newQueue(x, key)
		x.queues[key] = q
	}
	return q
}

// Find returns the queue of that key, nil if there is none.
func (x *Index) Find(key record.QueueKey) *Queue { return x.queues[key] }

// Restore makes a queue from its stored figures. Its keys are all in the store: each
// order that has some wants a refill from its watermark. Panics if the queue exists or
// a figure is negative.
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
	least := min(c.Delayed, c.DelayedWatermarkMs, c.Expiring, c.ExpiringWatermarkMs, c.InProgress, c.Dead, c.Done, c.Limited)
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

// Forget drops a queue without tasks; every later change of it panics. Panics unless
// all counters are zero. TakeDirty still returns the queue if its figures have changed.
func (x *Index) Forget(q *Queue) {
	if !q.counters.IsZero() || x.queues[q.key] != q {
		panic(fmt.Sprintf("index: queue %v forgotten with %+v", q.key, q.counters))
	}
	q.forgotten = true
	delete(x.queues, q.key)
}

// Due is a task that is due: its delay is over, or it expires.
type Due struct {
	Queue *Queue
	Order Order
	Key   record.TimedKey
}

// HeadDue returns the earliest task in memory over all queues and orders by time if it
// is due at nowMs; of equal times the lower id. It stays until it is removed. An order
// with no key in memory and a watermark that is due gets the next refill.
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

// NextDueAtMs is when the next task is due, in Unix milliseconds, 0 if none waits. It
// may be too early, never too late: an order that waits for a refill counts with its
// watermark.
func (x *Index) NextDueAtMs() int64 {
	known, atMs := x.known.Top()
	if unread, fromMs := x.unread.Top(); unread != nil && (known == nil || fromMs < atMs) {
		return max(1, fromMs) // 0 would mean that there is none
	}
	return atMs
}

// TakeDirty appends to dst the queues whose counters or watermarks have changed since
// the last call, in the order of their first change.
func (x *Index) TakeDirty(dst []*Queue) []*Queue {
	dst = append(dst, x.dirty...)
	for _, q := range x.dirty {
		q.dirty = false
	}
	clear(x.dirty)
	x.dirty = x.dirty[:0]
	return dst
}
