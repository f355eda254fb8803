package shard

import (
	"codeq/store"
	"codeq/wire"
)

// keep is a completion whose unit of room the shard has kept for now.
type keep struct {
	member *member
	answer *Completed
}

// keepUnit takes the unit of room of a delivery that has just ended for the
// next grant to the same seat. Given back by the session it would come round
// after two more syncs: the one of this batch, and the one of the grant. Used
// here, both are one batch, so that a crash sees both or none.
//
// While another shard waits for room of the seat, this one keeps only up to its
// share of the window, and after a few in a row lets one go round all the same:
// a share does not count units of deliveries that lapsed in the hands of a stuck
// worker. So no shard starves, and a window smaller than the number of shards
// goes from shard to shard.
func (s *Shard) keepUnit(m *Result, session wire.SessionID, answer *Completed) {
	mb := s.members[session]
	if mb == nil || mb.seat.Sink != m.Sink || s.space >= store.NoGrant {
		return
	}
	othersWait := mb.seat.Credit.OthersWait(s.shard)
	if !mb.seat.Credit.MayKeep() || othersWait && !s.hasShare(mb) {
		return
	}
	if othersWait {
		mb.keptInRow++
	} else {
		mb.keptInRow = 0
	}
	answer.Kept = true
	mb.kept++
	s.keeps = append(s.keeps, keep{mb, answer})
	s.opens(mb)
}

// hasShare says whether a unit more is within the shard's share of the window.
func (s *Shard) hasShare(mb *member) bool {
	if mb.keptInRow >= s.limits.KeptInRow {
		mb.keptInRow = 0
		return false
	}
	return s.leases.CountOf(mb.seat.ID)+mb.kept < mb.seat.Credit.Portion(s.shard)
}

// returnKept leaves to the session what no grant has used.
func (s *Shard) returnKept() {
	for i := len(s.keeps) - 1; i >= 0; i-- {
		if k := s.keeps[i]; k.member.kept > 0 {
			k.member.kept--
			k.answer.Kept = false
		}
	}
	clear(s.keeps)
	s.keeps = s.keeps[:0]
}
