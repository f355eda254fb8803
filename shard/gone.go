package shard

import "codeq/store"

// gone ends a socket of a session. After a resume the session has another one
// and its tasks belong to that.
func (s *Shard) sessionGone(m *SessionGone) {
	if mb := s.bySession[m.Consumer.ID]; mb != nil && mb.consumer.Epoch > m.Consumer.Epoch {
		return
	}
	s.unseat(m.Consumer.ID)
	s.socketEnded(m.Consumer, m.Code)
}

// socketEnded decides about what a session has in flight when its socket ends.
// What never arrived goes back at once; what did stays leased for the resume
// grace, or to the end of its lease if that is sooner.
func (s *Shard) socketEnded(consumer *Consumer, code uint16) {
	for _, e := range s.leases.OfSession(consumer.ID, nil) {
		if e.Gone {
			// Of an earlier socket; its grace runs already.
			continue
		}
		e.Gone, e.HasCredit = true, false
		if !e.Confirmed && s.space < store.OnlyDelete {
			s.undeliver(e, code)
			continue
		}
		if !e.Confirmed {
			// No room on the disk for the move: it lapses when leases may again; see noteStall.
			s.leases.Move(e, s.now)
			continue
		}
		s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))
	}
}
