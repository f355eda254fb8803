package shard

import (
	"slices"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// A delivery that never arrived is no fault of the task, but a task that breaks
// whatever receives it never arrives either, and takes along what is on its way
// beside it. So from the third delivery in a row that did not arrive the task is
// a suspect: it leaves its place, waits as the backoff policy says, and then goes
// alone, to a session to which nothing else is on its way, until it has arrived.

const (
	// maxUndelivered is the delivery in a row that makes a task a suspect.
	maxUndelivered = 3
	// asideForMs is how long a suspect stands aside at most before its turn in
	// its queue comes again.
	asideForMs = 10_000
	// checkAsideMs is how often the shard looks meanwhile who is idle: of what a
	// client takes from other shards it is told only where it has the credit alone.
	checkAsideMs = 1_000
)

func isSuspect(t *record.Task) bool { return t.Undelivered >= maxUndelivered }

// undeliver ends a delivery that never arrived, which counts no attempt. The task
// goes back to its old place, or waits if it is a suspect.
func (s *Shard) undeliver(e *lease.Entry, closeCode uint16) {
	t := e.Task
	t.Undelivered++
	endedWithoutWord(t, e)
	to := putBack(CauseUndelivered)
	if isSuspect(t) {
		s.out.Suspects++
		delayMs := s.backoffOf(t).delayMs(t.Undelivered-maxUndelivered+1, s.chance)
		to = s.placeAt(s.now+delayMs, CauseUndelivered)
	}
	to.closeCode = closeCode
	s.transition(t, to)
}

// aside is a suspect that was next in its queue when no subscriber was idle. Its
// record says that it is delayed until then; it goes earlier if one becomes so.
type aside struct {
	id      wire.TaskID
	queue   *queue
	untilMs int64
}

// grantSuspect gives the head of a queue to an idle subscriber. Without one it makes
// way for the others, and a subscriber gets no more until it is idle.
func (s *Shard) grantSuspect(q *queue, t *record.Task) {
	mb := s.idle(q)
	if mb == nil {
		mb = s.soonIdle(q)
	}
	if mb != nil && s.grantAlone(mb, t) {
		return
	}
	untilMs := s.now + asideForMs
	s.transition(t, move{
		to: wire.LocationDelayed, status: wire.StatusPending, cause: CauseSuspect, dueAtMs: untilMs,
	})
	s.aside = append(s.aside, aside{t.ID, q, untilMs})
}

// soonIdle is the subscriber to reserve, which may be idle by now; nil for none.
func (s *Shard) soonIdle(q *queue) *subscriber {
	if s.reserved != nil {
		return nil
	}
	mb := s.pick(q)
	if mb == nil || mb.consumer.OverHTTP {
		return nil
	}
	return mb
}

// grantAside gives the suspects that stand aside to subscribers that are idle now, and
// shares the credit of the reserved subscriber if no suspect waits for it any longer or
// it did not become idle in time.
func (s *Shard) grantAside() {
	var busy *queue // nobody of this one is idle
	left := s.aside[:0]
	for _, a := range s.aside {
		if a.untilMs <= s.now {
			continue // it has fallen due
		}
		if mb := s.idle(a.queue); a.queue != busy && mb != nil && !a.queue.settings.Paused {
			s.fromAside(mb, a)
			continue
		}
		busy, left = a.queue, append(left, a)
	}
	s.aside = left
	if s.reserved != nil && (len(left) == 0 || s.reservedUntilMs <= s.now) {
		s.share(s.reserved)
	}
}

// fromAside gives a suspect that stands aside to an idle subscriber. It has its turn
// now, wherever in its queue it would stand.
func (s *Shard) fromAside(mb *subscriber, a aside) {
	t, err := s.span.Task(a.id)
	if s.unreadable(err) || t == nil || t.Location != wire.LocationDelayed || t.DueAtMs != a.untilMs || t.Expires(s.now) {
		return // it is somewhere else by now, or will be when due comes to it
	}
	s.transition(t, s.placeAt(s.now, CauseDue))
	s.grantAlone(mb, t)
}

// leavesAside forgets a task that no longer waits for its turn, so that nobody is kept
// free for it. One that has fallen due is left out by grantAside.
func (s *Shard) leavesAside(id wire.TaskID) {
	s.aside = slices.DeleteFunc(s.aside, func(a aside) bool { return a.id == id })
}

// grantAlone gives a suspect to a subscriber whose credit this shard has alone from
// then on. It reports false if that is not idle, which reserves it unless another
// one is.
func (s *Shard) grantAlone(mb *subscriber, t *record.Task) bool {
	var taken bool
	taken, mb.alone = mb.consumer.Credit.TakeAlone(s.shard, t.PayloadBytes, mb.credit+mb.reused > 0)
	mb.open = false
	if !taken {
		s.reserve(mb)
		return false
	}
	if s.reserved == mb {
		s.reserved = nil
	}
	if mb.credit > 0 {
		mb.credit--
	} else if mb.reused > 0 {
		mb.reused--
	}
	s.grant(mb, t)
	return true
}

// reserve keeps the credit that this shard has alone until the subscriber is idle, unless
// it keeps another one or the subscriber is a claim, which does not last so long.
func (s *Shard) reserve(mb *subscriber) {
	switch {
	case !mb.alone || s.reserved == mb:
	case s.reserved == nil && !mb.consumer.OverHTTP:
		s.reserved, s.reservedUntilMs = mb, s.now+asideForMs
	default:
		s.share(mb)
	}
}

// share lets all shards use the credit of a subscriber again, this one at once. The
// others are woken after the round.
func (s *Shard) share(mb *subscriber) {
	if s.reserved == mb {
		s.reserved = nil
	}
	mb.alone = false
	mb.consumer.Credit.Share()
	s.opens(mb)
	s.out.Unused = append(s.out.Unused, UnusedCredit{Consumer: mb.consumer})
}

// idle is a subscriber that takes the queue's tasks and to whom nothing is on its way:
// the one that gets no more until then, or else one of those that a grant compares.
func (s *Shard) idle(q *queue) *subscriber {
	if mb := s.reserved; mb != nil && mb.open && mb.isIdle() && mb.wants(q) {
		return mb
	}
	return q.tenant.wildcard.idle(q.subscribers.idle(nil, s.limits.Compared), s.limits.Compared)
}

func (mb *subscriber) wants(q *queue) bool {
	return slices.ContainsFunc(mb.subscriptions, func(p *subscription) bool { return p.to == q.subscribers || p.to == &q.tenant.wildcard })
}
