package shard

import (
	"codeq/wire"
)

// Cleanups that somebody asks for, and the queue that says when the next ended task
// has to go.

// cleanupRun is a cleanup that is under way: a slice of it in each round.
type cleanupRun struct {
	*Cleanup
	// beganMs is the end of all retentions: what is past its own later stays.
	beganMs int64
	// swept are the queues of which nothing is left to remove.
	done    int
	deleted int
	over    bool
}

// cleanup begins to remove ended tasks that somebody wants gone. Its scans
// belong to the beginning of the rounds that follow.
func (s *Shard) cleanup(m *Cleanup) {
	s.cleanups = append(s.cleanups, &cleanupRun{Cleanup: m, beganMs: s.now})
}

// findCleanup notes the next slice of the cleanup whose turn it is, which may go
// over many queues.
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

// cleanQueue notes what goes of the queue that a cleanup has come to, at most
// limit, and says how many. A name that was only asked for is not kept.
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

// cleanUntil is the last end time that a cleanup takes.
func (s *Shard) cleanUntil(w *cleanupRun, q *queue, place wire.Location) (untilMs int64, some bool) {
	if w.BeforeMs != 0 {
		return w.BeforeMs - 1, true
	}
	keep := s.retentionOf(q, place)
	return w.beganMs - keep, keep > 0
}

// endCleanup answers a cleanup that has come past all its queues or has removed as
// many as it may. What it found counts only once it is removed: a message of the
// round may have moved it on.
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

// advance makes the time of a queue that is in it no later than one.
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

// sift moves a queue from its slot to where it belongs.
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
