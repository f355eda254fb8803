package shard

import (
	"slices"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// A delivery that never arrived counts nothing against the task. But a task that
// breaks its receiver never arrives either, and the other deliveries in flight to
// that receiver are lost with it. So after the third delivery in a row that did not
// arrive the task is a suspect: it waits for the delay of the backoff policy, and
// is then granted only to a session with nothing else in flight, until a delivery
// arrives.

const (
	// maxUndelivered is how many deliveries in a row that did not arrive make a
	// task a suspect.
	maxUndelivered = 3
	// asideForMs is how long a suspect waits at most for an idle subscriber before
	// it is ready again, at the tail.
	asideForMs = 10_000
	// checkAsideMs is how often the shard checks meanwhile for idle subscribers:
	// what a client confirms to other shards wakes this one only where it has the
	// window alone.
	checkAsideMs = 1_000
)

func isSuspect(t *record.Task) bool { return t.Undelivered >= maxUndelivered }

// undeliver ends a delivery that never arrived and counts no attempt. The task
// returns to its old place, or waits if it is a suspect.
func (s *Shard) undeliver(e *lease.Entry, closeCode uint16) {
	t := e.Task
	t.Undelivered++
	openToLateCompletion(t, e)
	to := putBack(record.CauseUndelivered)
	if isSuspect(t) {
		s.out.Suspects++
		delayMs := s.backoffOf(t).delayMs(t.Undelivered-maxUndelivered+1, s.random)
		to = s.placeAt(s.now+delayMs, record.CauseUndelivered)
	}
	to.closeCode = closeCode
	s.transition(t, to)
}

// aside is a suspect that was at the head of its queue when no subscriber was idle.
// Its record is delayed until untilMs; the task is granted earlier if a subscriber
// becomes idle.
type aside struct {
	id      wire.TaskID
	queue   *queue
	key     string
	untilMs int64
}

// grantSuspect grants the head of a queue to an idle subscriber. Without one it
// delays the task, and reserves a subscriber, which is granted nothing until it is
// idle.
func (s *Shard) grantSuspect(q *queue, t *record.Task) {
	sub := s.idle(q)
	if sub == nil {
		sub = s.soonIdle(q)
	}
	if sub != nil && s.grantAlone(q, sub, t) {
		return
	}
	untilMs := s.now + asideForMs
	s.transition(t, move{
		to: wire.LocationDelayed, status: wire.StatusPending, cause: record.CauseSuspect, dueAtMs: untilMs,
	})
	s.aside = append(s.aside, aside{t.ID, q, t.ConcurrencyKey, untilMs})
}

// soonIdle is the subscriber to reserve, nil for none. It may be idle already. One to which
// another suspect is on its way is not reserved: the end of the reservation shares its window.
func (s *Shard) soonIdle(q *queue) *subscriber {
	if s.reserved != nil {
		return nil
	}
	may := func(sub *subscriber) bool { return !sub.ownsWindow && !sub.consumer.OverHTTP }
	return q.tenant.wildcard.best(q.subscribers.best(nil, s.limits.Compared, may), s.limits.Compared, may)
}

// grantAside grants suspects in aside to subscribers that are idle now. It shares
// the credit of the reserved subscriber if no suspect waits for it any longer or
// asideForMs have passed.
func (s *Shard) grantAside() {
	var busy *queue // nobody of this one is idle
	left := s.aside[:0]
	for _, a := range s.aside {
		if a.untilMs <= s.now {
			continue // it has fallen due
		}
		if sub := s.idle(a.queue); a.queue != busy && sub != nil && a.queue.mayGrant() && !s.keyHolds(a.queue, a.key) && s.mayStart(a.queue) {
			s.fromAside(sub, a)
			continue
		}
		busy, left = a.queue, append(left, a)
	}
	s.aside = left
	if s.reserved != nil && (len(left) == 0 || s.reservedUntilMs <= s.now) {
		s.share(s.reserved)
	}
}

// fromAside grants a suspect in aside to an idle subscriber, ahead of the other
// tasks of its queue.
func (s *Shard) fromAside(sub *subscriber, a aside) {
	t, err := s.span.Task(a.id)
	if s.unreadable(err) || t == nil || t.Location != wire.LocationDelayed || t.DueAtMs != a.untilMs || t.Expires(s.now) {
		return // it is somewhere else by now, or will be when due comes to it
	}
	s.transition(t, s.placeAt(s.now, record.CauseDue))
	s.grantAlone(a.queue, sub, t)
}

// dropAside removes a task from aside that no longer waits, so that no subscriber
// stays reserved for it. grantAside removes those that fell due.
func (s *Shard) dropAside(id wire.TaskID) {
	s.aside = slices.DeleteFunc(s.aside, func(a aside) bool { return a.id == id })
}

// grantAlone grants a suspect to a subscriber if that is idle, and gives this shard
// its window alone. If it is not idle, grantAlone returns false and reserves it,
// unless another is reserved.
func (s *Shard) grantAlone(q *queue, sub *subscriber, t *record.Task) bool {
	var taken bool
	taken, sub.ownsWindow = sub.consumer.Credit.TakeAlone(s.shard, t.PayloadBytes, sub.credit+sub.reused > 0)
	sub.open = false
	if !taken {
		s.reserve(sub)
		return false
	}
	if s.reserved == sub {
		s.reserved = nil
	}
	if sub.credit > 0 {
		sub.credit--
	} else if sub.reused > 0 {
		sub.reused--
	}
	s.grant(q, sub, t)
	return true
}

// reserve reserves a subscriber whose window this shard has alone until it is idle.
// It shares the window again if another is reserved, or if the subscriber is a
// claim, which ends sooner.
func (s *Shard) reserve(sub *subscriber) {
	switch {
	case !sub.ownsWindow || s.reserved == sub:
	case s.reserved == nil && !sub.consumer.OverHTTP:
		s.reserved, s.reservedUntilMs = sub, s.now+asideForMs
	default:
		s.share(sub)
	}
}

// share lets all shards use the credit of a subscriber again: this one at once, the
// others when they are woken after the round.
func (s *Shard) share(sub *subscriber) {
	if s.reserved == sub {
		s.reserved = nil
	}
	sub.ownsWindow = false
	sub.consumer.Credit.Share()
	s.markOpen(sub)
	s.out.CreditReturns = append(s.out.CreditReturns, CreditReturn{Consumer: sub.consumer})
}

// idle is a subscriber of the queue with nothing in flight to it: the reserved one,
// or else the best of those that a grant compares.
func (s *Shard) idle(q *queue) *subscriber {
	if sub := s.reserved; sub != nil && sub.open && sub.isIdle() && sub.wants(q) {
		return sub
	}
	return q.tenant.wildcard.idle(q.subscribers.idle(nil, s.limits.Compared), s.limits.Compared)
}

func (sub *subscriber) wants(q *queue) bool {
	return slices.ContainsFunc(sub.subscriptions, func(one *subscription) bool { return one.to == q.subscribers || one.to == &q.tenant.wildcard })
}
