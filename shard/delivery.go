package shard

import (
	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// A worker ends a delivery with a result, as failed (nack, abandon), or hands it
// back (release).

// deliveryOrRefuse returns the delivery that a worker acts on, or answers with a refusal
// and returns nil. Of several reasons it names the first in the order that the protocol
// promises: unknown task, other subject, terminal task, missing token, lost lease.
func (s *Shard) deliveryOrRefuse(h *Holder) *lease.Entry {
	t, e := s.find(h.TaskID, h.Tenant)
	if e != nil && isOf(h, e.Lease.Subject) && mayEnd(h.Owner, h.Token, &e.Lease) {
		return e
	}
	s.refuseDelivery(h, t, e)
	return nil
}

// OwnSubject owns the deliveries of the workers within the server. No credential has it: it is
// not trimmed. Whoever of the tenant has the token of such a delivery may act on it, because the
// token is all that the target of a queue gets.
const OwnSubject = " codeq"

// isOf reports whether a delivery of the subject may be that of a call.
func isOf(h *Holder, subject string) bool {
	return subject == h.Subject || subject == OwnSubject && !h.Token.IsZero()
}

// mayEnd reports whether a call of the right subject may act on a delivery: with
// its token, or without a token if the delivery was made over HTTP and went to the
// worker that the call names, if it names one.
func mayEnd(owner Owner, token wire.Token, l *record.Lease) bool {
	if !token.IsZero() {
		return l.Token == token
	}
	return l.OverHTTP && (owner.WorkerID == "" || owner.WorkerID == l.WorkerID)
}

// lastLease builds from the record the fields of the newest delivery that mayEnd
// reads, once the lease itself is gone.
func lastLease(t *record.Task, token wire.Token) *record.Lease {
	return &record.Lease{Token: token, OverHTTP: t.LastOverHTTP, WorkerID: t.LastWorkerID}
}

func (s *Shard) refuseDelivery(h *Holder, t *record.Task, e *lease.Entry) {
	to, id := h.Asker, h.TaskID
	switch {
	case t == nil:
		s.refuse(to, id, wire.CodeTaskNotFound, "task does not exist")
	case newestSubject(t, e) != "" && !isOf(h, newestSubject(t, e)):
		s.refuse(to, id, wire.CodeNotOwner, notYours(newestSubject(t, e)))
	case t.Status.Terminal():
		s.refuse(to, id, wire.CodeNotInProgress, "task is not in progress, it is "+string(t.Status))
	case e != nil && h.Token.IsZero():
		s.refuse(to, id, wire.CodeNotOwner, withoutToken(e))
	default:
		s.refuse(to, id, wire.CodeLeaseLost, "the lease of this delivery is over; drop the work")
	}
}

// notYours says why a call may not act on a delivery of that subject.
func notYours(subject string) string {
	if subject == OwnSubject {
		return "the delivery was made to the target of its queue; only its leaseToken may act on it"
	}
	return "the delivery belongs to another subject"
}

// withoutToken says why a call without a token may not act on the delivery.
func withoutToken(e *lease.Entry) string {
	if e.Lease.OverHTTP {
		return "the delivery belongs to another worker of this subject; name no workerId, the right one, or the leaseToken"
	}
	return "the delivery was made to a session; only its leaseToken may act on it"
}

// newestSubject is the subject of the newest delivery, empty before the first.
func newestSubject(t *record.Task, e *lease.Entry) string {
	if e != nil {
		return e.Lease.Subject
	}
	return t.LastSubject
}

// closeToCompletion notes that from now on no late completion is accepted, only the
// repetition of an accepted one. The task is no suspect any more.
func closeToCompletion(t *record.Task) {
	t.LastToken = wire.Token{}
	t.Undelivered = 0
}

// openToLateCompletion notes that a delivery ended by time or by a lost socket: a late
// completion with its token is accepted until the task is granted again.
func openToLateCompletion(t *record.Task, e *lease.Entry) {
	t.LastToken = e.Lease.Token
}

// retry counts a failed attempt and moves the task: to the given place, or to the
// dead letters if its attempts are used up.
func (s *Shard) retry(t *record.Task, again move, reason string) {
	t.Attempts++
	if reason != "" {
		t.Error = reason
	}
	if t.Attempts < t.MaxAttempts {
		s.transition(t, again)
		return
	}
	again.dead = wire.DeadExhausted
	s.bury(t, reason, again)
}

// bury makes the task a dead letter, with the causes, reason and exit of the given
// move. An empty reason becomes wire's text for used-up attempts.
func (s *Shard) bury(t *record.Task, reason string, last move) {
	if reason == "" {
		reason = wire.ErrorMaxAttempts
	}
	t.Error = reason
	s.transition(t, move{
		to: wire.LocationDead, status: wire.StatusFailed, cause: last.cause, dead: last.dead, reason: last.reason, exit: last.exit,
		result: &wire.ResultRecord{
			TaskID: t.ID, Status: wire.StatusFailed, Error: reason, CompletedAtMs: s.now,
		},
	})
}

// result ends a task with an outcome; FAILED makes it a dead letter. The holder of
// the newest delivery may send it, unless it ended that delivery itself: also after
// a lapse, a lost socket or a put-back, until the task is granted again.
func (s *Shard) result(m *Result) {
	t, e := s.find(m.TaskID, m.Tenant)
	// If the disk was full, the refusal of an earlier answer has returned the credit.
	m.HasCredit = m.HasCredit && e != nil && e.HasCredit
	s.answersFor(&m.Holder, e)
	switch {
	case t != nil && t.Status.Terminal() && s.repeated(m, t):
	case t != nil && !t.Status.Terminal() && mayComplete(m, t, e):
		files, refusal := s.filesOf(m, t, e)
		if refusal != nil {
			s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: t.ID, Err: refusal})
			return
		}
		s.complete(m, t, e, files)
	default:
		s.refuseDelivery(&m.Holder, t, e)
	}
}

func mayComplete(m *Result, t *record.Task, e *lease.Entry) bool {
	if !isOf(&m.Holder, newestSubject(t, e)) {
		return false
	}
	if e != nil {
		return mayEnd(m.Owner, m.Token, &e.Lease)
	}
	return !t.LastToken.IsZero() && mayEnd(m.Owner, m.Token, lastLease(t, t.LastToken))
}

func (s *Shard) complete(m *Result, t *record.Task, e *lease.Entry, files []wire.Artifact) {
	result := &wire.ResultRecord{
		TaskID: t.ID, Status: m.Status, Result: m.ResultRequest.Result, Error: m.Error,
		Artifacts: files, CompletedAtMs: s.now,
	}
	t.ResultToken = t.LastToken
	if e != nil {
		t.ResultToken = e.Lease.Token
	}
	closeToCompletion(t)
	ends := move{to: wire.LocationNone, status: m.Status, cause: record.CauseResult, result: result, reason: m.Error, exit: m.Exit}
	if m.Status == wire.StatusFailed {
		t.Error = m.Error
		ends.to, ends.dead = wire.LocationDead, wire.DeadFailed
	}
	s.transition(t, ends)
	answer := &Completed{Ref: m.Ref, Record: result}
	s.tell(m.Sink, answer)
	if e != nil && m.HasCredit {
		s.reuseCredit(m, e.Lease.Session, answer)
	}
}

// repeated answers a completion that was accepted before, with the stored record. A
// completion with another status is refused.
func (s *Shard) repeated(m *Result, t *record.Task) bool {
	if t.ResultToken.IsZero() || !isOf(&m.Holder, t.LastSubject) || t.Status != m.Status ||
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

// end ends a delivery without an outcome, and returns credit held elsewhere.
func (s *Shard) end(m *End) {
	s.answersFor(&m.Holder, s.leases.Get(m.TaskID))
	e := s.deliveryOrRefuse(&m.Holder)
	if e == nil {
		return
	}
	t, delayMs := e.Task, int64(0)
	closeToCompletion(t)
	switch m.How {
	case Nack:
		delayMs = s.nack(t, &m.NackRequest)
	case Abandon:
		s.retry(t, s.placeAt(s.now, record.CauseAbandon), "")
	case Release:
		s.release(t, &m.ReleaseRequest)
	case PutOff:
		delayMs = m.DelaySeconds * 1000
		place := s.placeAt(s.now+delayMs, record.CauseRelease)
		place.unnoted = true
		s.transition(t, place)
	}
	answer := &Requeued{Ref: m.Ref, TaskID: t.ID}
	switch t.Status {
	case wire.StatusFailed:
		answer.Status = wire.NackDeadLettered
	case wire.StatusCancelled:
		answer.Status = wire.NackExpired
	default:
		answer.Status, answer.DelaySeconds = wire.NackRequeued, wholeSeconds(delayMs)
	}
	s.tell(m.Sink, answer)
}

// nack counts a failed attempt and returns the delay of the next. Without a delay in
// the request the backoff policy decides; with 0 the task is ready at once, at the
// tail; a longer delay than the policy's maximum is capped.
func (s *Shard) nack(t *record.Task, m *wire.NackRequest) (delayMs int64) {
	policy := s.backoffOf(t)
	delayMs = min(m.DelaySeconds*1000, policy.maxMs)
	if m.DelaySeconds < 0 {
		delayMs = policy.delayMs(t.Attempts+1, s.random)
	}
	place := s.placeAt(s.now+delayMs, record.CauseNack)
	place.reason, place.exit = m.Reason, m.Exit
	s.retry(t, place, m.Reason)
	return delayMs
}

// release returns a task to its old place and counts no attempt, for work that was
// not begun or was interrupted.
func (s *Shard) release(t *record.Task, m *wire.ReleaseRequest) {
	if m.Counts() {
		t.Releases++
	}
	if t.Releases > s.limits.Releases*t.MaxAttempts {
		s.bury(t, wire.ErrorReleasedTooOften, move{cause: record.CauseRelease, dead: wire.DeadReleased})
		return
	}
	s.transition(t, putBack(record.CauseRelease))
}

// putBack is the move to the place that the task had before its grant.
func putBack(cause record.Cause) move {
	return move{to: wire.LocationPending, status: wire.StatusPending, cause: cause, toOldPlace: true}
}
