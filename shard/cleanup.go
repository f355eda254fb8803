package shard

import (
	"codeq/wire"
)

// Cleanups on request.

// cleanupRun is a cleanup in progress. Each round removes at most limits.Removals
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
	left := min(s.limits.Removals, w.Limit-w.deleted)
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
