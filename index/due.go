package index

import (
	"encoding/binary"

	"codeq/internal/heap"
)

// Order is one of the orders that a queue has of its tasks.
type Order int

// The orders: ready tasks by sequence, one for each priority; delayed tasks by due
// time; those of both that expire, by when they do.
const (
	Ready Order = iota
	Delayed
	Expiring
)

// String is the name of the order.
func (o Order) String() string { return [...]string{"ready", "delayed", "expiring"}[o] }

// byTime is an order by time. Its count and its watermark are fields of the counters
// of the queue.
type byTime struct {
	run
	order       Order
	total       *int64
	watermarkMs *int64

	// heap is Index.known, Index.unread, or nil if the order has no key.
	heap *heap.Heap[byTime]
	due  heap.Node[byTime]
}

func (r *run) order() Order {
	if r.timed == nil {
		return Ready
	}
	return r.timed.order
}

// timedOf is the order by time that o names.
func (q *Queue) timedOf(o Order) *byTime {
	if o == Expiring {
		return &q.expiring
	}
	return &q.delayed
}

// settleDue puts the order into known with its first key in memory, into unread with
// its watermark if all keys are in the store, and into no heap if it has none.
func (o *byTime) settleDue() {
	var to *heap.Heap[byTime]
	var key heap.Key
	switch {
	case o.len() > 0:
		first := o.first()
		to, key.AtMs = &o.queue.index.known, int64(first.rank)
		key.Tie = [2]uint64{binary.BigEndian.Uint64(first.id[:8]), binary.BigEndian.Uint64(first.id[8:])}
	case *o.total > 0:
		to, key.AtMs = &o.queue.index.unread, int64(o.watermark())
	}
	if o.heap != to && o.heap != nil {
		o.heap.Remove(&o.due)
	}
	if o.heap = to; to != nil {
		to.Put(&o.due, o, key)
	}
}
