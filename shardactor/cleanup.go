package shardactor

import "codeq/wire"

// sweep is a cleanup that is under way: a slice of it in each round.
type sweep struct {
	*Cleanup
	deleted int
	over    bool
}

// cleanup begins to remove ended tasks of a queue that somebody wants gone. Its
// scans belong to the beginning of the rounds that follow.
func (s *Shard) cleanup(m *Cleanup) { s.sweeps = append(s.sweeps, &sweep{Cleanup: m}) }

// findSwept notes the next slice of the cleanup whose turn it is.
func (s *Shard) findSwept() {
	if len(s.sweeps) == 0 {
		return
	}
	w := s.sweeps[0]
	q := s.queueOf(w.Queue)
	s.suspect(q) // a name that was only asked for is not kept
	left := min(maxRoundReaps, w.Limit-w.deleted)
	for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
		if until, some := s.sweptUntil(w, q, place); some && left > 0 {
			left -= s.scanEnded(q, place, until, left)
			s.looks[len(s.looks)-1].sweep = w
		}
	}
	// What it left room for it has not found.
	w.over = left > 0 || min(maxRoundReaps, w.Limit-w.deleted) < maxRoundReaps
}

// sweptUntil is the last end time that a cleanup takes.
func (s *Shard) sweptUntil(w *sweep, q *queue, place wire.Location) (untilMs int64, some bool) {
	if w.BeforeMs != 0 {
		return w.BeforeMs - 1, true
	}
	keep := s.retentionOf(q, place)
	return s.now - keep, keep > 0
}

// endSwept answers a cleanup whose last slice was removed.
func (s *Shard) endSwept() {
	if len(s.sweeps) == 0 || !s.sweeps[0].over {
		return
	}
	w := s.sweeps[0]
	s.sweeps[0] = nil
	s.sweeps = s.sweeps[1:]
	s.tell(w.Sink, &Cleaned{Ref: w.Ref, Deleted: w.deleted})
}
