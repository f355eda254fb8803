package shard

import (
	"codeq/store"
	"codeq/wire"
)

// keep is a completion whose credit the shard has kept for now.
type reused struct {
	subscriber *subscriber
	answer     *Completed
}

// reuseCredit takes the credit of a delivery that has just ended for the
// next grant to the same consumer. Given back by the session it would come round
// after two more syncs: the one of this batch, and the one of the grant. Used
// here, both are one batch, so that a crash sees both or none.
//
// While another shard waits for credit of the consumer, this one keeps only up to its
// share of the window, and after a few in a row lets one go round all the same:
// a share does not count credits of deliveries that lapsed in the hands of a stuck
// worker. So no shard starves, and a window smaller than the number of shards
// goes from shard to shard.
func (s *Shard) reuseCredit(m *Result, session wire.SessionID, answer *Completed) {
	mb := s.bySession[session]
	if mb == nil || mb.consumer.Sink != m.Sink || s.space >= store.NoGrant {
		return
	}
	othersWait := mb.consumer.Credit.OthersWait(s.shard)
	if !mb.consumer.Credit.MayReuse() || othersWait && !s.hasShare(mb) {
		return
	}
	if othersWait {
		mb.reusedInRow++
	} else {
		mb.reusedInRow = 0
	}
	answer.CreditReused = true
	mb.reused++
	s.reuses = append(s.reuses, reused{mb, answer})
	s.opens(mb)
}

// hasShare says whether a credit more is within the shard's share of the window.
func (s *Shard) hasShare(mb *subscriber) bool {
	if mb.reusedInRow >= s.limits.ReusedInRow {
		mb.reusedInRow = 0
		return false
	}
	return s.leases.CountOf(mb.consumer.ID)+mb.reused < mb.consumer.Credit.Portion(s.shard)
}

// returnReused leaves to the session what no grant has used.
func (s *Shard) returnReused() {
	for i := len(s.reuses) - 1; i >= 0; i-- {
		if k := s.reuses[i]; k.subscriber.reused > 0 {
			k.subscriber.reused--
			k.answer.CreditReused = false
		}
	}
	clear(s.reuses)
	s.reuses = s.reuses[:0]
}
