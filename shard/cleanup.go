package shard

import "codeq/wire"

// sweep is a cleanup that is under way: a slice of it in each round.
type sweep struct {
	*Cleanup
	// beganMs is the end of all retentions: what is past its own later stays.
	beganMs int64
	// swept are the queues of which nothing is left to remove.
	swept   int
	deleted int
	over    bool
}

// cleanup begins to remove ended tasks that somebody wants gone. Its scans
// belong to the beginning of the rounds that follow.
func (s *Shard) cleanup(m *Cleanup) { s.sweeps = append(s.sweeps, &sweep{Cleanup: m, beganMs: s.now}) }

// findSwept notes the next slice of the cleanup whose turn it is, which may go
// over many queues.
func (s *Shard) findSwept() {
	if len(s.sweeps) == 0 {
		return
	}
	w := s.sweeps[0]
	left := min(s.limits.Reaps, w.Limit-w.deleted)
	for looked := 0; looked < s.limits.Sweeps && left > 0 && w.swept < len(w.Queues); looked++ {
		left -= s.sweepQueue(w, left)
		if left > 0 {
			w.swept++
		}
	}
	w.over = w.swept == len(w.Queues)
}

// sweepQueue notes what goes of the queue that a cleanup has come to, at most
// limit, and says how many. A name that was only asked for is not kept.
func (s *Shard) sweepQueue(w *sweep, limit int) (found int) {
	q := s.queues[w.Queues[w.swept]]
	if q == nil || q.settings.Deleting {
		return 0
	}
	for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
		if until, some := s.sweptUntil(w, q, place); some && found < limit {
			found += s.scanEnded(q, place, until, limit-found)
			s.looks[len(s.looks)-1].sweep = w
		}
	}
	return found
}

// sweptUntil is the last end time that a cleanup takes.
func (s *Shard) sweptUntil(w *sweep, q *queue, place wire.Location) (untilMs int64, some bool) {
	if w.BeforeMs != 0 {
		return w.BeforeMs - 1, true
	}
	keep := s.retentionOf(q, place)
	return w.beganMs - keep, keep > 0
}

// endSwept answers a cleanup that has come past all its queues or has removed as
// many as it may. What it found counts only once it is removed: a message of the
// round may have moved it on.
func (s *Shard) endSwept() {
	if len(s.sweeps) == 0 {
		return
	}
	w := s.sweeps[0]
	if !w.over && w.deleted < w.Limit {
		return
	}
	s.sweeps[0] = nil
	s.sweeps = s.sweeps[1:]
	s.tell(w.Sink, &Cleaned{Ref: w.Ref, Deleted: w.deleted})
}
