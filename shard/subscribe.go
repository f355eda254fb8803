package shard

import "codeq/wire"

// subscribe seats a session, or replaces what it takes. Tasks in hand stay.
func (s *Shard) subscribe(m *Subscribe) {
	s.seat(m.Seat, m.Commands, m.LeaseForMs)
	s.tell(m.Sink, &Subscribed{Ref: m.Ref})
}

// seat puts somebody into the crowds of some commands and out of all others.
func (s *Shard) seat(seat *Seat, commands []string, leaseForMs int64) {
	mb := s.members[seat.ID]
	if mb == nil {
		// Who comes last stands behind those who wait: otherwise a stream of
		// claims, each new here, would always be served before a session.
		mb = &member{seat: seat, lastGrant: s.grants}
		s.members[seat.ID] = mb
	}
	if mb.seat != seat {
		// The session has a newer socket, which says itself what it takes.
		return
	}
	s.leavePlaces(mb)
	mb.leaseForMs = leaseForMs
	for _, command := range commands {
		c := s.crowdOf(seat.Tenant, command)
		c.members++
		mb.places = append(mb.places, &place{member: mb, crowd: c})
	}
	s.opens(mb)
}

// opens lets a member be asked again, in every crowd it stands in.
func (s *Shard) opens(mb *member) {
	mb.open = true
	for _, p := range mb.places {
		if !p.listed {
			p.listed = true
			p.crowd.open = append(p.crowd.open, p)
		}
		if p.crowd.queue != nil {
			s.ready(p.crowd.queue)
			continue
		}
		s.takesTurns(p.crowd.tenant)
	}
}

// roomUnits takes units this shard waited for. What no grant of this round
// uses goes back; see returnCredit.
func (s *Shard) roomUnits(m *RoomUnits) {
	mb := s.members[m.Seat.ID]
	if mb == nil || mb.seat != m.Seat {
		// The seat closed meanwhile; its units are nobody's.
		return
	}
	if mb.credit == 0 {
		s.credited = append(s.credited, mb)
	}
	mb.credit += m.Units
	s.opens(mb)
}

// returnCredit gives back the units that arrived and found no task. A room that
// was alone for one that is over is shared again.
func (s *Shard) returnCredit() {
	for _, mb := range s.credited {
		if mb.alone && !mb.seat.Credit.WaitAlone(s.shard) {
			s.share(mb)
		}
		if mb.credit > 0 {
			s.out.Unused = append(s.out.Unused, SeatUnits{Seat: mb.seat, Units: mb.credit})
			mb.credit = 0
		}
	}
	clear(s.credited)
	s.credited = s.credited[:0]
}

// unseat takes a session out of every crowd.
func (s *Shard) unseat(id wire.SessionID) {
	mb := s.members[id]
	if mb == nil {
		return
	}
	s.leavePlaces(mb)
	s.forgive(mb)
	mb.open, mb.alone = false, false
	mb.credit = 0
	if s.reserved == mb {
		s.reserved = nil
	}
	delete(s.members, id)
}

func (s *Shard) leavePlaces(mb *member) {
	for _, p := range mb.places {
		p.crowd.leave(p)
		if p.crowd.queue != nil {
			s.mayBeEmpty(p.crowd.queue)
		}
	}
	mb.places = nil
}
