package shard

import (
	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// result ends a task with an outcome: one that is FAILED is a dead letter. It is accepted from the holder of the
// newest delivery unless the worker ended that delivery itself: also after a
// lapse, a lost socket or a put-back, as long as nobody took the task since.
func (s *Shard) result(m *Result) {
	t, e := s.find(m.TaskID, m.Tenant)
	// A word that was refused for want of space has had the credit come back already.
	m.HasCredit = m.HasCredit && e != nil && e.HasCredit
	s.answersFor(m.Asker, m.Owner, m.TaskRef, e)
	switch {
	case t != nil && t.Status.Terminal() && s.repeated(m, t):
	case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):
		s.complete(m, t, e)
	default:
		s.refuseDelivery(m.Asker, m.Owner, m.TaskRef, t, e)
	}
}

func mayComplete(m *Result, t *record.Task, e *lease.Entry) bool {
	if newestSubject(t, e) != m.Subject {
		return false
	}
	if e != nil {
		return mayEnd(m.Owner, m.Token, &e.Lease)
	}
	return !t.LastToken.IsZero() && mayEnd(m.Owner, m.Token, lastLease(t, t.LastToken))
}

func (s *Shard) complete(m *Result, t *record.Task, e *lease.Entry) {
	record := &wire.ResultRecord{
		TaskID: t.ID, Status: m.Status, Result: m.ResultRequest.Result, Error: m.Error,
		Artifacts: m.Artifacts, CompletedAtMs: s.now,
	}
	t.ResultToken = t.LastToken
	if e != nil {
		t.ResultToken = e.Lease.Token
	}
	endedByWorker(t)
	ends := move{to: wire.LocationNone, status: m.Status, cause: CauseResult, result: record, reason: m.Error, exit: m.Exit}
	if m.Status == wire.StatusFailed {
		t.Error = m.Error
		ends.to, ends.dead = wire.LocationDead, wire.DeadFailed
	}
	s.transition(t, ends)
	answer := &Completed{Ref: m.Ref, Record: record}
	s.tell(m.Sink, answer)
	if e != nil && m.HasCredit {
		s.reuseCredit(m, e.Lease.Session, answer)
	}
}

// repeated answers a completion that was accepted before, with the record that
// stands. Another status is not a repetition.
func (s *Shard) repeated(m *Result, t *record.Task) bool {
	if t.ResultToken.IsZero() || t.LastSubject != m.Subject || t.Status != m.Status ||
		!mayEnd(m.Owner, m.Token, lastLease(t, t.ResultToken)) {
		return false
	}
	record, err := s.span.ResultOf(t)
	if s.unreadable(err) || record == nil {
		return false
	}
	s.tell(m.Sink, &Completed{Ref: m.Ref, Record: record})
	return true
}
