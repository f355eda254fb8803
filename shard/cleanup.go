package shard

import (
	"codeq/wire"
)

// Cleanups on request, and the expiry queue, which orders queues by when their next
// ended task must be removed.

// cleanupRun is a cleanup in progress. Each round removes at most limits.Expiries
// tasks of it.
type cleanupRun struct {
	*Cleanup
	// beganMs is when the cleanup began: a task whose retention ends later stays.
	beganMs int64
	// done counts the queues that are finished.
	done    int
	deleted int
	over    bool
}

// cleanup begins a cleanup. Its scans run at the beginning of the rounds that
// follow.
func (s *Shard) cleanup(m *Cleanup) {
	s.cleanups = append(s.cleanups, &cleanupRun{Cleanup: m, beganMs: s.now})
}

// findCleanup reads the next tasks of the oldest cleanup, from at most
// limits.Cleanups queues.
func (s *Shard) findCleanup() {
	if len(s.cleanups) == 0 {
		return
	}
	w := s.cleanups[0]
	left := min(s.limits.Expiries, w.Limit-w.deleted)
	for seen := 0; seen < s.limits.Cleanups && left > 0 && w.done < len(w.Queues); seen++ {
		left -= s.cleanQueue(w, left)
		if left > 0 {
			w.done++
		}
	}
	w.over = w.done == len(w.Queues)
}

// cleanQueue adds a batch of at most limit tasks of the next queue of a cleanup,
// and returns how many it found. It makes no queue for an unknown name.
func (s *Shard) cleanQueue(w *cleanupRun, limit int) (found int) {
	q := s.queues[w.Queues[w.done]]
	if q == nil || q.settings.Deleting {
		return 0
	}
	for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
		if until, some := s.cleanUntil(w, q, place); some && found < limit {
			found += s.scanEnded(q, place, until, limit-found)
			s.batches[len(s.batches)-1].cleanup = w
		}
	}
	return found
}

// cleanUntil is the latest end time of tasks that a cleanup removes; some is false
// if it removes none.
func (s *Shard) cleanUntil(w *cleanupRun, q *queue, place wire.Location) (untilMs int64, some bool) {
	if w.BeforeMs != 0 {
		return w.BeforeMs - 1, true
	}
	keep := s.retentionOf(q, place)
	return w.beganMs - keep, keep > 0
}

// endCleanup answers a cleanup that has finished all its queues or has removed
// Limit tasks. It counts removed tasks, not found ones: a message of the round may
// have replayed one.
func (s *Shard) endCleanup() {
	if len(s.cleanups) == 0 {
		return
	}
	w := s.cleanups[0]
	if !w.over && w.deleted < w.Limit {
		return
	}
	s.cleanups[0] = nil
	s.cleanups = s.cleanups[1:]
	s.tell(w.Sink, &Cleaned{Ref: w.Ref, Deleted: w.deleted})
}

// expiryQueue is a heap of the queues that have ended tasks, by when the next of
// them must be removed. Every queue in it has its slot, from 1; 0 is for those that
// are not in it.
type expiryQueue struct {
	queues []*queue
}

// top is the queue that is due first, nil for none.
func (h *expiryQueue) top() *queue {
	if len(h.queues) == 0 {
		return nil
	}
	return h.queues[0]
}

// put sets the time of a queue; 0 removes it.
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

// advance sets the time of a queue in it to atMs if that is earlier.
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

// sift restores the heap after the time of a queue has changed.
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
