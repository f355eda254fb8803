package shard

// reaps orders the queues that have ended tasks by when the next of them has to
// go. Every queue in it knows its slot, from 1; 0 is for those that are not in
// it.
type reaps struct {
	queues []*queue
}

// top is the queue that is due first, nil if there is none.
func (h *reaps) top() *queue {
	if len(h.queues) == 0 {
		return nil
	}
	return h.queues[0]
}

// put gives a queue its time; 0 takes it out.
func (h *reaps) put(q *queue, atMs int64) {
	switch {
	case atMs == 0 && q.reapSlot == 0:
		return
	case atMs == 0:
		h.remove(q)
		return
	case q.reapSlot == 0:
		h.queues = append(h.queues, q)
		q.reapSlot = len(h.queues)
	}
	q.reapAtMs = atMs
	h.settle(q)
}

// hasten makes the time of a queue that is in it no later than one.
func (h *reaps) hasten(q *queue, atMs int64) {
	if q.reapSlot != 0 && atMs < q.reapAtMs {
		h.put(q, atMs)
	}
}

func (h *reaps) remove(q *queue) {
	last := h.queues[len(h.queues)-1]
	h.queues[len(h.queues)-1] = nil
	h.queues = h.queues[:len(h.queues)-1]
	slot := q.reapSlot
	q.reapSlot, q.reapAtMs = 0, 0
	if last != q {
		h.set(slot, last)
		h.settle(last)
	}
}

// settle moves a queue from its slot to where it belongs.
func (h *reaps) settle(q *queue) {
	slot := q.reapSlot
	for slot > 1 && q.reapAtMs < h.queues[slot/2-1].reapAtMs {
		h.set(slot, h.queues[slot/2-1])
		slot /= 2
	}
	for {
		child := 2 * slot
		if child < len(h.queues) && h.queues[child].reapAtMs < h.queues[child-1].reapAtMs {
			child++
		}
		if child > len(h.queues) || h.queues[child-1].reapAtMs >= q.reapAtMs {
			break
		}
		h.set(slot, h.queues[child-1])
		slot = child
	}
	h.set(slot, q)
}

func (h *reaps) set(slot int, q *queue) {
	h.queues[slot-1] = q
	q.reapSlot = slot
}
