package shardactor

import (
	"codeq/index"
	"codeq/lease"
	"codeq/store"
	"codeq/wire"
)

// due does what the time asks for: delayed tasks whose moment came, then
// leases that ran out.
func (s *Shard) due() {
	done := 0
	for ; done < s.limits.Due; done++ {
		q, k, ok := s.index.HeadDue(s.now)
		if !ok {
			break
		}
		s.fallDue(q, k)
	}
	for ; done < s.limits.Due; done++ {
		e := s.leases.Due(s.lapseUntilMs())
		if e == nil {
			break
		}
		s.lapse(e)
	}
}

// fallDue makes a delayed task ready, at the tail of its priority.
func (s *Shard) fallDue(q *index.Queue, k store.TimedKey) {
	t, err := s.span.Task(k.ID)
	if t == nil || s.unreadable(err) {
		q.RemoveDelayed(k)
		s.span.Batch().DeleteDelayed(q.Key(), k)
		s.mustRead(s.span.SetAside(k.ID))
		return
	}
	s.transition(t, s.placeAt(s.now, CauseDue))
}

// lapse ends a lease that ran out. A delivery that never arrived is taken
// back; one that did is lost.
func (s *Shard) lapse(e *lease.Entry) {
	switch {
	case !e.Confirmed:
		s.takeBack(e, 0)
	case e.Gone:
		s.lose(e, CauseSessionGone)
	default:
		s.lose(e, CauseExpired)
	}
	s.revoke(e, wire.RevokedExpired)
}

// lose counts a lost lease: the first one goes to the tail at once, later ones
// wait as the backoff policy says.
func (s *Shard) lose(e *lease.Entry, cause Cause) {
	t := e.Task
	t.Losses++
	t.Undelivered = 0
	endedWithoutWord(t, e)
	var delayMs int64
	if t.Losses > 1 {
		delayMs = s.backoffOf(t).delayMs(t.Losses-1, s.chance)
	}
	s.retry(t, s.placeAt(s.now+delayMs, cause), wire.ErrorLeaseExpired)
}
