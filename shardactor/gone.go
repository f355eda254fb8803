package shardactor

import "codeq/store"

// gone unseats a session whose socket ended. What never arrived goes back at
// once; what did stays leased for the resume grace, or to the end of its lease
// if that is sooner.
func (s *Shard) gone(m *Gone) {
	s.unseat(m.Seat)
	for _, e := range s.leases.OfSession(m.Seat.ID, nil) {
		e.Gone = true
		if !e.Confirmed && s.space < store.OnlyDelete {
			s.takeBack(e)
			continue
		}
		if !e.Confirmed {
			// No room on the disk for the move: it lapses when there is.
			s.leases.Move(e, s.now)
			continue
		}
		s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))
	}
}
