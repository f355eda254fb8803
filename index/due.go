package index

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

	// heap is where the order is among those of all queues, nil for nowhere; at its
	// key there and slot its index.
	heap *dueHeap
	at   place
	slot int
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

// dueHeap has orders by their first key. Every one in it knows its slot.
type dueHeap struct {
	orders []*byTime
}

// settleDue moves the order to the heap where it belongs: known when memory has its
// first key, unread when only the watermark is known, none when it has no key.
func (o *byTime) settleDue() {
	var to *dueHeap
	var at place
	switch {
	case o.len() > 0:
		to, at = &o.queue.index.known, o.first()
	case *o.total > 0:
		to, at = &o.queue.index.unread, place{rank: o.watermark()}
	}
	if to == o.heap && at == o.at {
		return
	}
	if o.heap != nil && o.heap != to {
		o.heap.remove(o)
	}
	o.at = at
	if to == nil {
		return
	}
	if o.heap == nil {
		o.heap = to
		o.slot = len(to.orders)
		to.orders = append(to.orders, o)
	}
	to.settle(o)
}

// top is the order whose first moment comes first, nil if there is none.
func (h *dueHeap) top() *byTime {
	if len(h.orders) == 0 {
		return nil
	}
	return h.orders[0]
}

func (h *dueHeap) remove(o *byTime) {
	end := len(h.orders) - 1
	moved := h.orders[end]
	h.orders[end] = nil
	h.orders = h.orders[:end]
	o.heap = nil
	if moved != o {
		moved.slot = o.slot
		h.settle(moved)
	}
}

// settle finds the slot of o from the hole at the slot it has.
func (h *dueHeap) settle(o *byTime) {
	i := o.slot
	for i > 0 && o.isBefore(h.orders[(i-1)/2]) {
		h.set(i, h.orders[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h.orders) && h.orders[child+1].isBefore(h.orders[child]) {
			child++
		}
		if child >= len(h.orders) || !h.orders[child].isBefore(o) {
			break
		}
		h.set(i, h.orders[child])
		i = child
	}
	h.set(i, o)
}

func (h *dueHeap) set(i int, o *byTime) {
	h.orders[i] = o
	o.slot = i
}

func (o *byTime) isBefore(p *byTime) bool { return o.at.compare(p.at) < 0 }
