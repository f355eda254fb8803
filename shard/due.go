package shard

import (
	"codeq/index"
	"codeq/lease"
	"codeq/wire"
)

// due does what the time asks for: delayed tasks whose moment came and waiting ones
// that expired, in the order of these times, then leases that ran out.
func (s *Shard) due() {
	done := 0
	for ; done < s.limits.Due; done++ {
		d, ok := s.index.HeadDue(s.now)
		if !ok {
			break
		}
		s.fallDue(d)
	}
	for ; done < s.limits.Due; done++ {
		e := s.leases.Due(s.lapseUntilMs())
		if e == nil {
			break
		}
		s.lapse(e)
	}
}

// fallDue makes a delayed task ready, at the tail of its priority, or ends one that
// has expired.
func (s *Shard) fallDue(d index.Due) {
	t, err := s.span.Task(d.Key.ID)
	switch {
	case t == nil || s.unreadable(err):
		s.setDueAside(d)
	case d.Order == index.Expiring:
		s.transition(t, s.expired(t, move{}))
	default:
		s.transition(t, s.placeAt(s.now, CauseDue))
	}
}

// setDueAside takes a task whose record cannot be read out of an order by time.
func (s *Shard) setDueAside(d index.Due) {
	batch, q := s.span.Batch(), d.Queue
	if d.Order == index.Expiring {
		q.RemoveExpiring(d.Key)
		batch.DeleteExpiring(q.Key(), d.Key)
	} else {
		q.RemoveDelayed(d.Key)
		batch.DeleteDelayed(q.Key(), d.Key)
	}
	s.mustRead(s.span.SetAside(d.Key.ID))
}

// lapse ends a lease that ran out, or a run. A delivery that never arrived is taken
// back; one that did is lost.
func (s *Shard) lapse(e *lease.Entry) {
	reason := wire.RevokedExpired
	switch {
	case !e.Confirmed:
		s.undeliver(e, 0)
	case e.IsRunOver():
		s.overrun(e)
		reason = wire.RevokedTimeout
	case e.Gone:
		s.lose(e, CauseSessionGone)
	default:
		s.lose(e, CauseExpired)
	}
	s.revoke(e, reason)
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

// overrun counts a run that came to its end: a failed attempt, which waits as the
// backoff policy says.
func (s *Shard) overrun(e *lease.Entry) {
	t := e.Task
	t.Undelivered = 0
	endedWithoutWord(t, e)
	delayMs := s.backoffOf(t).delayMs(t.Attempts+1, s.chance)
	s.retry(t, s.placeAt(s.now+delayMs, CauseTimeout), wire.ErrorTimeout)
}
