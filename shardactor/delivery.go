package shardactor

import (
	"codeq/lease"
	"codeq/store"
	"codeq/wire"
)

// holding finds the delivery that a worker acts on, or refuses it, in the
// order the protocol promises: unknown task, other subject, terminal task,
// lost lease. A nil entry means it was refused.
func (s *Shard) holding(to Asker, owner Owner, ref wire.TaskRef) *lease.Entry {
	t, e := s.find(ref.TaskID, owner.Tenant)
	if e != nil && e.Lease.Subject == owner.Subject && e.Lease.Token == ref.Token {
		return e
	}
	s.refuseDelivery(to, owner, ref.TaskID, t, e)
	return nil
}

func (s *Shard) refuseDelivery(to Asker, owner Owner, id wire.TaskID, t *store.TaskRecord, e *lease.Entry) {
	switch {
	case t == nil:
		s.refuse(to, id, wire.CodeTaskNotFound, "task does not exist")
	case holder(t, e) != "" && holder(t, e) != owner.Subject:
		s.refuse(to, id, wire.CodeNotOwner, "the delivery belongs to another subject")
	case t.Status.Terminal():
		s.refuse(to, id, wire.CodeNotInProgress, "task is not in progress, it is "+string(t.Status))
	default:
		s.refuse(to, id, wire.CodeLeaseLost, "the lease of this delivery is over; drop the work")
	}
}

// holder is the subject of the newest delivery, empty if there was none.
func holder(t *store.TaskRecord, e *lease.Entry) string {
	if e != nil {
		return e.Lease.Subject
	}
	return t.LastSubject
}

// endedByWorker notes that the worker itself ended its delivery, after which
// no completion with that token is accepted.
func endedByWorker(t *store.TaskRecord) {
	t.LastToken = wire.Token{}
	t.Undelivered = 0
}

// endedWithoutWord notes that a delivery ended by time or by a lost socket: a
// late completion with its token still counts while nobody took the task since.
func endedWithoutWord(t *store.TaskRecord, e *lease.Entry) {
	t.LastToken = e.Lease.Token
}

// retry counts a failed delivery and sends the task on: to the place given for
// it, or to the dead letters when its attempts are used up. It reports whether
// the task is tried again.
func (s *Shard) retry(t *store.TaskRecord, again move, reason string) bool {
	t.Attempts++
	if reason != "" {
		t.Error = reason
	}
	if t.Attempts < t.MaxAttempts {
		s.transition(t, again)
		return true
	}
	s.bury(t, reason, again.cause)
	return false
}

// bury makes a dead letter. Without a reason it says that the attempts are
// used up.
func (s *Shard) bury(t *store.TaskRecord, reason string, cause Cause) {
	if reason == "" {
		reason = wire.ErrorMaxAttempts
	}
	t.Error = reason
	s.transition(t, move{
		to: wire.LocationDead, status: wire.StatusFailed, cause: cause,
		result: &wire.ResultRecord{
			TaskID: t.ID, Status: wire.StatusFailed, Error: reason, CompletedAtMs: s.now,
		},
	})
}

// requeued answers nack, abandon and release.
func (s *Shard) requeued(to Asker, id wire.TaskID, again bool, delaySeconds int64) {
	answer := &Requeued{Ref: to.Ref, TaskID: id, Status: wire.NackRequeued, DelaySeconds: delaySeconds}
	if !again {
		answer.Status, answer.DelaySeconds = wire.NackDeadLettered, 0
	}
	s.tell(to.Sink, answer)
}
