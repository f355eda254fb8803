package shardactor

// gone unseats a session whose socket ended. What never arrived goes back at
// once; what did stays leased for the resume grace, or to the end of its lease
// if that is sooner.
func (s *Shard) gone(m *Gone) {
	s.unseat(m.Seat)
	for _, e := range s.leases.OfSession(m.Seat.ID, nil) {
		if !e.Confirmed {
			s.takeBack(e)
			continue
		}
		e.Gone = true
		s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))
	}
}
