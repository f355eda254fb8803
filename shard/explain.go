package shard

import (
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// explain is asked why a task waits. The answer belongs behind the grants of the
// round: what is still ready then is what waits.
func (s *Shard) explain(m *Explain) { s.explains = append(s.explains, m) }

// answerExplains says what has become of the tasks that were asked about.
func (s *Shard) answerExplains() {
	for _, m := range s.explains {
		answer := &Explained{Ref: m.Ref, TaskID: m.TaskID}
		if t, e := s.find(m.TaskID, m.Tenant); t != nil && e == nil {
			answer.UpdatedAtMs, answer.Waiting = t.UpdatedAtMs, s.waitingOf(t)
		}
		s.tell(m.Sink, answer)
	}
	clear(s.explains)
	s.explains = s.explains[:0]
}

// waitingOf says why a task is not with a worker, from what the shard has in
// memory: nil for one that does not wait.
func (s *Shard) waitingOf(t *record.Task) *wire.Waiting {
	if t.Location == wire.LocationDelayed {
		w := &wire.Waiting{Reason: wire.WaitingDelayed, UntilMs: t.DueAtMs}
		if isSuspect(t) {
			w.Reason = wire.WaitingSuspect
		}
		return w
	}
	if t.Location != wire.LocationPending {
		return nil
	}
	q := s.queueOf(t.Queue())
	w := &wire.Waiting{}
	w.Behind, w.BehindKnown = q.index.Ahead(t.Priority, record.PendingKey{Seq: t.Seq, ID: t.ID})
	wildcard := &q.tenant.wildcard
	switch {
	case q.settings.Paused:
		w.Reason = wire.WaitingPaused
	case s.space >= store.NoGrant:
		w.Reason = wire.WaitingStorageFull
	case q.subscribers.count+wildcard.count == 0:
		w.Reason = wire.WaitingNoWorker
	case w.Behind > 0 || !w.BehindKnown || q.subscribers.hasOpen() || wildcard.hasOpen():
		w.Reason = wire.WaitingBehind
	default:
		w.Reason = wire.WaitingNoRoom
	}
	return w
}

// tellLeases says when leases end. The stored ends run ahead of those, see prolong.
func (s *Shard) tellLeases(m *TellLeases) {
	answer := &LeasesTold{Ref: m.Ref}
	for _, id := range m.Tasks {
		e := s.leases.Get(id)
		if e == nil || e.Task.Tenant != m.Tenant {
			continue
		}
		told := ToldLease{TaskID: id, Delivery: e.Lease.Delivery}
		told.LeaseUntilMs, told.RunUntilMs = e.Promise()
		answer.Leases = append(answer.Leases, told)
	}
	s.tell(m.Sink, answer)
}
