package shard

import "codeq/wire"

// sweep is a cleanup that is under way: a slice of it in each round.
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
