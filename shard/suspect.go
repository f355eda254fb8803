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
	// lookAsideMs is how often the shard looks meanwhile who is idle: of what a
	// client takes from other shards it is told only where it has the room alone.
	lookAsideMs = 1_000
)

func isSuspect(t *record.Task) bool { return t.Undelivered >= maxUndelivered }

// takeBack ends a delivery that never arrived, which counts no attempt. The task
// goes back to its old place, or waits if it is a suspect.
func (s *Shard) takeBack(e *lease.Entry, closeCode uint16) {
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

// aside is a suspect that was next in its queue when no member was idle. Its
// record says that it is delayed until then; it goes earlier if one becomes so.
type aside struct {
	id      wire.TaskID
	queue   *queue
	untilMs int64
}

// grantSuspect gives the head of a queue to an idle member. Without one it makes
// way for the others, and a member gets no more until it is idle.
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

// soonIdle is the member to reserve, which may be idle by now; nil for none.
func (s *Shard) soonIdle(q *queue) *member {
	if s.reserved != nil {
		return nil
	}
	mb := s.pick(q)
	if mb == nil || mb.seat.OverHTTP {
		return nil
	}
	return mb
}

// grantAside gives the suspects that stand aside to members that are idle now, and
// shares the room of the reserved member if no suspect waits for it any longer or
// it did not become idle in time.
func (s *Shard) grantAside() {
	var busy *queue // nobody of this one is idle
	kept := s.aside[:0]
	for _, a := range s.aside {
		if a.untilMs <= s.now {
			continue // it has fallen due
		}
		if mb := s.idle(a.queue); a.queue != busy && mb != nil && !a.queue.settings.Paused {
			s.fromAside(mb, a)
			continue
		}
		busy, kept = a.queue, append(kept, a)
	}
	s.aside = kept
	if s.reserved != nil && (len(kept) == 0 || s.reservedUntilMs <= s.now) {
		s.share(s.reserved)
	}
}

// fromAside gives a suspect that stands aside to an idle member. It has its turn
// now, wherever in its queue it would stand.
func (s *Shard) fromAside(mb *member, a aside) {
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

// grantAlone gives a suspect to a member whose room this shard has alone from
// then on. It reports false if that is not idle, which reserves it unless another
// one is.
func (s *Shard) grantAlone(mb *member, t *record.Task) bool {
	var taken bool
	taken, mb.alone = mb.seat.Credit.TakeAlone(s.shard, t.PayloadBytes, mb.credit+mb.kept > 0)
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
	} else if mb.kept > 0 {
		mb.kept--
	}
	s.grant(mb, t)
	return true
}

// reserve keeps the room that this shard has alone until the member is idle, unless
// it keeps another one or the member is a claim, which does not last so long.
func (s *Shard) reserve(mb *member) {
	switch {
	case !mb.alone || s.reserved == mb:
	case s.reserved == nil && !mb.seat.OverHTTP:
		s.reserved, s.reservedUntilMs = mb, s.now+asideForMs
	default:
		s.share(mb)
	}
}

// share lets all shards use the room of a member again, this one at once. The
// others are woken after the round.
func (s *Shard) share(mb *member) {
	if s.reserved == mb {
		s.reserved = nil
	}
	mb.alone = false
	mb.seat.Credit.Share()
	s.opens(mb)
	s.out.Unused = append(s.out.Unused, SeatUnits{Seat: mb.seat})
}

// idle is a member that takes the queue's tasks and to whom nothing is on its way:
// the one that gets no more until then, or else one of those that a grant compares.
func (s *Shard) idle(q *queue) *member {
	if mb := s.reserved; mb != nil && mb.open && mb.isIdle() && mb.takes(q) {
		return mb
	}
	return q.tenant.wild.idle(q.crowd.idle(nil, s.limits.Compared), s.limits.Compared)
}

func (mb *member) takes(q *queue) bool {
	return slices.ContainsFunc(mb.places, func(p *place) bool { return p.crowd == q.crowd || p.crowd == &q.tenant.wild })
}
