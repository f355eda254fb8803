package shardactor

// claim seats somebody who asks once. The answer waits for the grant pass; see
// answerClaims.
func (s *Shard) claim(m *Claim) {
	s.seat(m.Seat, m.Commands, m.LeaseForMs)
	s.claims = append(s.claims, claimant{member: s.members[m.Seat.ID], asker: m.Asker})
}

// claimant is a member that leaves with the answer.
type claimant struct {
	member *member
	asker  Asker
}

// answerClaims lets go of everybody who asked once, with the word that this was
// all. Whoever still has room while the pass was cut short, by its bound or by a
// head that must be read first, stays for the next round if there is anything
// for it.
func (s *Shard) answerClaims(cut bool) {
	staying := s.claims[:0]
	for _, c := range s.claims {
		if cut && c.member.open && s.mayHave(c.member) {
			staying = append(staying, c)
			continue
		}
		s.tell(c.asker.Sink, &Claimed{Ref: c.asker.Ref})
		s.unseat(c.member.seat.ID)
	}
	clear(s.claims[len(staying):])
	s.claims = staying
}

// mayHave reports whether a task is ready in a queue that the member takes.
func (s *Shard) mayHave(mb *member) bool {
	for _, p := range mb.places {
		if q := p.crowd.queue; q != nil && q.hasTurns() || q == nil && p.crowd.tenant.hasTurns() {
			return true
		}
	}
	return false
}
