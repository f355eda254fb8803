package shard

import (
	"codeq/index"
	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// Leases: heartbeats extend a delivery, the first confirmation starts its run, and
// due ends leases and runs that ran out.

// heartbeat extends leases and never shortens one. A delivery named with its token
// is bound to the asking session, so a worker that reconnected keeps its tasks.
func (s *Shard) heartbeat(m *Heartbeat) {
	answer := &Extended{Ref: m.Ref}
	if m.Tasks == nil {
		for _, e := range s.leases.OfSession(m.Consumer.ID, nil) {
			s.extendOne(m, e, answer)
		}
	}
	for _, ref := range m.Tasks {
		e := s.leases.Holds(ref)
		if e == nil || e.Task.Tenant != m.Tenant || e.Lease.Subject != m.Subject {
			answer.Lost = append(answer.Lost, ref)
			continue
		}
		s.extendOne(m, e, answer)
	}
	s.tell(m.Sink, answer)
}

// extendOne extends one of the deliveries of a heartbeat.
func (s *Shard) extendOne(m *Heartbeat, e *lease.Entry, answer *Extended) {
	if m.Tasks != nil {
		// Only a name proves that the worker has it: a task may be on its way
		// while the worker speaks of all that it has.
		s.confirm(e)
	}
	s.prolong(e, m.ExtendForMs, m.Consumer)
	leaseUntilMs, runUntilMs := e.Promise()
	if answer.LeaseUntilMs == 0 || leaseUntilMs < answer.LeaseUntilMs {
		answer.LeaseUntilMs = leaseUntilMs
	}
	if runUntilMs != 0 && (answer.RunUntilMs == 0 || runUntilMs < answer.RunUntilMs) {
		answer.RunUntilMs = runUntilMs
	}
}

// prolong sets the end of a lease later, never earlier, and never later than the
// end of its run. consumer is nil for a call over HTTP.
func (s *Shard) prolong(e *lease.Entry, lengthMs int64, consumer *Consumer) {
	if lengthMs == 0 {
		lengthMs = e.Lease.LeaseForMs
	}
	until := max(e.AckedUntilMs, s.now+lengthMs)
	rebound := s.rebind(consumer, e)
	ahead := until > e.Lease.DeadlineMs
	if ahead {
		// The stored deadline is half a lease later than the promised one: most
		// heartbeats write nothing, and a restart never shortens a lease that was
		// acknowledged.
		e.Lease.DeadlineMs = until + lengthMs/2
	}
	if ahead || rebound {
		e.PutAgain = true
		s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)
	}
	e.AckedUntilMs = until
	e.Gone = false
	s.leases.Move(e, until)
}

// rebind binds the delivery to the session of the caller and reports whether that
// changed. Another session of the same subject takes the delivery over. A call over
// HTTP unbinds it, and only if its session is gone; then no socket ends it, only
// its lease.
func (s *Shard) rebind(consumer *Consumer, e *lease.Entry) (changed bool) {
	switch {
	case consumer != nil && e.Lease.Session != consumer.ID:
		s.revoke(e, wire.RevokedSuperseded)
		s.leases.Bind(e, consumer.ID)
		e.Lease.WorkerID = consumer.WorkerID
		return true
	case consumer == nil && e.Gone:
		s.leases.Bind(e, wire.SessionID{})
		return true
	}
	return false
}

// confirm notes that the worker has the task. The first call starts its run.
func (s *Shard) confirm(e *lease.Entry) {
	e.Confirmed = true
	e.Task.Undelivered = 0
	if runForMs := e.Lease.RunForMs(); runForMs != 0 && e.RunUntilMs == 0 {
		s.leases.Run(e, s.now+runForMs)
	}
}

// received confirms those deliveries that were made to the consumer of the message.
func (s *Shard) received(m *Received) {
	for _, ref := range m.Tasks {
		if e := s.delivered(m.Consumer, ref); e != nil {
			s.confirm(e)
		}
	}
}

// undelivered ends deliveries whose frames never left.
func (s *Shard) undelivered(m *Undelivered) {
	for _, ref := range m.Tasks {
		if e := s.notArrived(m.Consumer, ref); e != nil {
			s.undeliver(e, 0)
		}
	}
}

// notArrived returns the delivery if it was made to that consumer and nobody has
// confirmed it. A delivery over HTTP is confirmed from its grant on; only its claim
// knows that no byte was written, so that is believed.
func (s *Shard) notArrived(consumer *Consumer, ref wire.TaskRef) *lease.Entry {
	e := s.delivered(consumer, ref)
	if e != nil && consumer.OverHTTP {
		e.Confirmed = false
	}
	if e == nil || e.Confirmed {
		return nil
	}
	return e
}

// delivered returns the delivery if it was made to that consumer and has not ended.
func (s *Shard) delivered(consumer *Consumer, ref wire.TaskRef) *lease.Entry {
	e := s.leases.Holds(ref)
	if e == nil || e.Lease.Session != consumer.leaseSession() || e.Lease.OverHTTP != consumer.OverHTTP {
		return nil
	}
	return e
}

// extend is a heartbeat for one delivery over HTTP. If the session of the delivery
// is gone, only the lease ends it from now on.
func (s *Shard) extend(m *Extend) {
	e := s.deliveryOrRefuse(&m.Holder)
	if e == nil {
		return
	}
	if !m.OnItsWay {
		s.confirm(e)
	}
	s.prolong(e, m.ExtendForMs, nil)
	answer := &Extended{Ref: m.Ref}
	answer.LeaseUntilMs, answer.RunUntilMs = e.Promise()
	s.tell(m.Sink, answer)
}

// due handles what is due, at most limits.Due entries: delayed and expired tasks in
// the order of their times, then leases that ran out.
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
		s.quarantineDue(d)
	case d.Order == index.Expiring:
		s.transition(t, s.expired(t, move{}))
	default:
		s.transition(t, s.placeAt(s.now, record.CauseDue))
	}
}

// quarantineDue deletes the entry of a task, whose record is missing or cannot be read,
// from the delayed or the expiring order and moves what is left of it to bad/.
func (s *Shard) quarantineDue(d index.Due) {
	batch, q := s.span.Batch(), d.Queue
	if d.Order == index.Expiring {
		q.RemoveExpiring(d.Key)
		batch.DeleteTimed(q.Key(), record.FamilyExpiring, d.Key)
	} else {
		s.eventUnreadable(s.queueOf(q.Key()), d.Key.ID, wire.LocationDelayed)
		q.RemoveDelayed(d.Key)
		batch.DeleteTimed(q.Key(), record.FamilyDelayed, d.Key)
	}
	s.mustRead(s.span.Quarantine(d.Key.ID))
}

// lapse ends a delivery whose lease or run ran out. A delivery that never arrived
// counts nothing against the task; one that arrived counts as lost, or as a failed
// attempt if its run is over.
func (s *Shard) lapse(e *lease.Entry) {
	reason := wire.RevokedExpired
	switch {
	case !e.Confirmed:
		s.undeliver(e, 0)
	case e.IsRunOver():
		s.overrun(e)
		reason = wire.RevokedTimeout
	case e.Gone:
		s.lose(e, record.CauseSessionGone)
	default:
		s.lose(e, record.CauseExpired)
	}
	s.revoke(e, reason)
}

// lose counts a lost lease: after the first the task is ready at once, at the tail;
// after later ones it waits for the delay of the backoff policy.
func (s *Shard) lose(e *lease.Entry, cause record.Cause) {
	t := e.Task
	t.Losses++
	t.Undelivered = 0
	openToLateCompletion(t, e)
	var delayMs int64
	if t.Losses > 1 {
		delayMs = s.backoffOf(t).delayMs(t.Losses-1, s.random)
	}
	s.retry(t, s.placeAt(s.now+delayMs, cause), wire.ErrorLeaseExpired)
}

// overrun counts a run that reached its timeout as a failed attempt; the task waits
// for the delay of the backoff policy.
func (s *Shard) overrun(e *lease.Entry) {
	t := e.Task
	t.Undelivered = 0
	openToLateCompletion(t, e)
	delayMs := s.backoffOf(t).delayMs(t.Attempts+1, s.random)
	s.retry(t, s.placeAt(s.now+delayMs, record.CauseTimeout), wire.ErrorTimeout)
}
