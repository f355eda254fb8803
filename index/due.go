package index

// dueHeap orders queues by dueAt. Every queue in it knows its slot.
type dueHeap struct {
	queues []*Queue
}

// settleDue moves the queue to the heap where its delayed run belongs: known
// when memory has the first key, unread when only the floor is known, none
// when nothing is delayed.
func (q *Queue) settleDue() {
	var to *dueHeap
	var at place
	switch {
	case q.delayed.len() > 0:
		to, at = &q.index.known, q.delayed.first()
	case q.counters.Delayed > 0:
		to, at = &q.index.unread, place{rank: q.delayed.floor()}
	}
	if to == q.due && at == q.dueAt {
		return
	}
	if q.due != nil && q.due != to {
		q.due.remove(q)
	}
	q.dueAt = at
	if to == nil {
		return
	}
	if q.due == nil {
		q.due = to
		q.dueSlot = len(to.queues)
		to.queues = append(to.queues, q)
	}
	to.settle(q)
}

// top is the queue that is due first, nil if there is none.
func (h *dueHeap) top() *Queue {
	if len(h.queues) == 0 {
		return nil
	}
	return h.queues[0]
}

func (h *dueHeap) remove(q *Queue) {
	end := len(h.queues) - 1
	moved := h.queues[end]
	h.queues[end] = nil
	h.queues = h.queues[:end]
	q.due = nil
	if moved != q {
		moved.dueSlot = q.dueSlot
		h.settle(moved)
	}
}

// settle finds the slot of q from the hole at the slot it has.
func (h *dueHeap) settle(q *Queue) {
	i := q.dueSlot
	for i > 0 && q.isBefore(h.queues[(i-1)/2]) {
		h.set(i, h.queues[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h.queues) && h.queues[child+1].isBefore(h.queues[child]) {
			child++
		}
		if child >= len(h.queues) || !h.queues[child].isBefore(q) {
			break
		}
		h.set(i, h.queues[child])
		i = child
	}
	h.set(i, q)
}

func (h *dueHeap) set(i int, q *Queue) {
	h.queues[i] = q
	q.dueSlot = i
}

func (q *Queue) isBefore(o *Queue) bool { return q.dueAt.compare(o.dueAt) < 0 }
