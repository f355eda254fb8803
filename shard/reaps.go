package shard

// expiry queue orders the queues that have ended tasks by when the next of them has to
// go. Every queue in it knows its slot, from 1; 0 is for those that are not in
// it.
type expiryQueue struct {
	queues []*queue
}

// top is the queue that is due first, nil if there is none.
func (h *expiryQueue) top() *queue {
	if len(h.queues) == 0 {
		return nil
	}
	return h.queues[0]
}

// put gives a queue its time; 0 takes it out.
func (h *expiryQueue) put(q *queue, atMs int64) {
	switch {
	case atMs == 0 && q.expirySlot == 0:
		return
	case atMs == 0:
		h.remove(q)
		return
	case q.expirySlot == 0:
		h.queues = append(h.queues, q)
		q.expirySlot = len(h.queues)
	}
	q.expiryAtMs = atMs
	h.sift(q)
}

// hasten makes the time of a queue that is in it no later than one.
func (h *expiryQueue) advance(q *queue, atMs int64) {
	if q.expirySlot != 0 && atMs < q.expiryAtMs {
		h.put(q, atMs)
	}
}

func (h *expiryQueue) remove(q *queue) {
	last := h.queues[len(h.queues)-1]
	h.queues[len(h.queues)-1] = nil
	h.queues = h.queues[:len(h.queues)-1]
	slot := q.expirySlot
	q.expirySlot, q.expiryAtMs = 0, 0
	if last != q {
		h.set(slot, last)
		h.sift(last)
	}
}

// settle moves a queue from its slot to where it belongs.
func (h *expiryQueue) sift(q *queue) {
	slot := q.expirySlot
	for slot > 1 && q.expiryAtMs < h.queues[slot/2-1].expiryAtMs {
		h.set(slot, h.queues[slot/2-1])
		slot /= 2
	}
	for {
		child := 2 * slot
		if child < len(h.queues) && h.queues[child].expiryAtMs < h.queues[child-1].expiryAtMs {
			child++
		}
		if child > len(h.queues) || h.queues[child-1].expiryAtMs >= q.expiryAtMs {
			break
		}
		h.set(slot, h.queues[child-1])
		slot = child
	}
	h.set(slot, q)
}

func (h *expiryQueue) set(slot int, q *queue) {
	h.queues[slot-1] = q
	q.expirySlot = slot
}
