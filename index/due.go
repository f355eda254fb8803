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

// byTime is an order by time. What it counts, and its watermark, stand in the counters of
// its queue.
type byTime struct {
	run
	order       Order
	total       *int64
	watermarkMs *int64

	// heap is the one of the index that the order is in, nil for none.
	heap *heap.Heap[byTime]
	due  heap.Node[byTime]
}

func (r *run) order() Order {
	if r.timed == nil {
		return Ready
	}
	return r.timed.order
}

// timedOf is one of the orders by time.
func (q *Queue) timedOf(o Order) *byTime {
	if o == Expiring {
		return &q.expiring
	}
	return &q.delayed
}

// settleDue moves the order to the heap where it belongs: known when memory has its
// first key, unread when only the watermark is known, none when it has no key.
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
