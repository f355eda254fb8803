package shard

import (
	"codeq/lease"
	"codeq/wire"
)

// heartbeat extends leases and never shortens one. A delivery named with its
// token is carried by the asking session from now on, so a worker that
// reconnected keeps its tasks.
func (s *Shard) heartbeat(m *Heartbeat) {
	answer := &Extended{Ref: m.Ref}
	if m.Tasks == nil {
		for _, e := range s.leases.OfSession(m.Consumer.ID, nil) {
			s.beat(m, e, answer)
		}
	}
	for _, ref := range m.Tasks {
		e := s.leases.Holds(ref)
		if e == nil || e.Task.Tenant != m.Tenant || e.Lease.Subject != m.Subject {
			answer.Lost = append(answer.Lost, ref)
			continue
		}
		s.beat(m, e, answer)
	}
	s.tell(m.Sink, answer)
}

// beat extends one of the deliveries of a heartbeat.
func (s *Shard) beat(m *Heartbeat, e *lease.Entry, answer *Extended) {
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

// prolong moves the end of a lease out, never in, and never behind the end of its
// run. The caller is a consumer, or HTTP if that is nil.
func (s *Shard) prolong(e *lease.Entry, lengthMs int64, consumer *Consumer) {
	if lengthMs == 0 {
		lengthMs = e.Lease.LeaseForMs
	}
	until := max(e.AckedUntilMs, s.now+lengthMs)
	rebound := s.rebind(consumer, e)
	ahead := until > e.Lease.DeadlineMs
	if ahead {
		// The stored deadline runs ahead, so most heartbeats write nothing and
		// a restart still never shortens an acknowledged lease.
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

// carry makes the caller the one whose socket keeps the delivery, and says
// whether that is a change. Another session of the same subject takes it over;
// a call over HTTP does so only when the session is gone, and then the lease
// alone decides.
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

// confirm notes that the worker has the task. Its run begins with the first time.
func (s *Shard) confirm(e *lease.Entry) {
	e.Confirmed = true
	e.Task.Undelivered = 0
	if runForMs := e.Lease.RunForMs(); runForMs != 0 && e.RunUntilMs == 0 {
		s.leases.Run(e, s.now+runForMs)
	}
}

// received confirms deliveries of the session they were made to.
func (s *Shard) received(m *Received) {
	for _, ref := range m.Tasks {
		if e := s.delivered(m.Consumer, ref); e != nil {
			s.confirm(e)
		}
	}
}

// undelivered takes deliveries back whose frames never left.
func (s *Shard) undelivered(m *Undelivered) {
	for _, ref := range m.Tasks {
		if e := s.notArrived(m.Consumer, ref); e != nil {
			s.undeliver(e, 0)
		}
	}
}

// notArrived is a delivery to that consumer that nobody has confirmed. One over
// HTTP counts as arrived from the first byte of the answer on, so the word of
// the claim that there was none is taken for it.
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

// delivered is the delivery if it was made to that consumer and still stands.
func (s *Shard) delivered(consumer *Consumer, ref wire.TaskRef) *lease.Entry {
	e := s.leases.Holds(ref)
	if e == nil || e.Lease.Session != consumer.leaseSession() || e.Lease.OverHTTP != consumer.OverHTTP {
		return nil
	}
	return e
}
