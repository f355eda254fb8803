package shard

import "codeq/wire"

// release hands untouched or interrupted work back: to its old place, without
// an attempt.
func (s *Shard) release(m *Release) {
	e := s.holderEnding(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	t := e.Task
	endedByWorker(t)
	if m.Counts() {
		t.Releases++
	}
	if t.Releases > s.limits.Releases*t.MaxAttempts {
		s.bury(t, wire.ErrorReleasedTooOften, move{cause: CauseRelease, dead: wire.DeadReleased})
		s.requeued(m.Asker, t, 0)
		return
	}
	s.transition(t, putBack(CauseRelease))
	s.requeued(m.Asker, t, 0)
}

// putBack is the move to the place a task had before it was granted.
func putBack(cause Cause) move {
	return move{to: wire.LocationPending, status: wire.StatusPending, cause: cause, toOldPlace: true}
}
