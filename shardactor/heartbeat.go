package shardactor

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
		for _, e := range s.leases.OfSession(m.Seat.ID, nil) {
			s.extend(m, e, answer)
		}
	}
	for _, ref := range m.Tasks {
		e := s.leases.Holds(ref)
		if e == nil || e.Task.Tenant != m.Tenant || e.Lease.Subject != m.Subject {
			answer.Lost = append(answer.Lost, ref)
			continue
		}
		s.extend(m, e, answer)
	}
	s.tell(m.Sink, answer)
}

func (s *Shard) extend(m *Heartbeat, e *lease.Entry, answer *Extended) {
	lengthMs := m.ExtendForMs
	if lengthMs == 0 {
		lengthMs = e.Lease.LeaseForMs
	}
	until := max(e.AckedUntilMs, s.now+lengthMs)
	rebound := m.Seat != nil && e.Lease.Session != m.Seat.ID
	if rebound {
		s.leases.Bind(e, m.Seat.ID)
		e.Lease.WorkerID = m.Seat.WorkerID
	}
	if until > e.Lease.DeadlineMs {
		// The stored deadline runs ahead, so most heartbeats write nothing and
		// a restart still never shortens an acknowledged lease.
		e.Lease.DeadlineMs = until + lengthMs/2
		s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)
	} else if rebound {
		s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)
	}
	e.AckedUntilMs = until
	e.Gone = false
	confirm(e)
	s.leases.Move(e, until)
	if answer.LeaseUntilMs == 0 || until < answer.LeaseUntilMs {
		answer.LeaseUntilMs = until
	}
}

// confirm notes that the worker has the task.
func confirm(e *lease.Entry) {
	e.Confirmed = true
	e.Task.Undelivered = 0
}

// received confirms deliveries of the session they were made to.
func (s *Shard) received(m *Received) {
	for _, ref := range m.Tasks {
		if e := s.delivered(m.Seat, ref); e != nil {
			confirm(e)
		}
	}
}

// undelivered takes deliveries back whose frames never left.
func (s *Shard) undelivered(m *Undelivered) {
	for _, ref := range m.Tasks {
		if e := s.delivered(m.Seat, ref); e != nil && !e.Confirmed {
			s.takeBack(e)
		}
	}
}

// delivered is the delivery if it was made to that seat and still stands.
func (s *Shard) delivered(seat *Seat, ref wire.TaskRef) *lease.Entry {
	e := s.leases.Holds(ref)
	if e == nil || e.Lease.Session != seat.ID {
		return nil
	}
	return e
}
