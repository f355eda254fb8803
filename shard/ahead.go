package shard

import (
	"strings"

	"codeq/record"
	"codeq/wire"
)

// runNow makes a delayed task ready before its time, at the tail of its priority as
// if it had fallen due.
func (s *Shard) runNow(m *RunNow) {
	t, _ := s.managed(m.Asker, m.TaskID, m.Tenant, m.Commands)
	switch {
	case t == nil:
	case t.Location != wire.LocationDelayed:
		s.refuseWaiting(m.Asker, t, "task does not wait for a time, it is %s; only a delayed one can be run now")
	default:
		s.transition(t, s.placeAt(s.now, CauseRunNow))
		s.tell(m.Sink, &Moved{Ref: m.Ref, TaskID: t.ID})
	}
}

// prioritize gives a waiting task another priority. A ready one keeps its sequence,
// so that tasks that are moved one after the other stay in their order, and an
// older one comes before the younger ones of its new priority.
func (s *Shard) prioritize(m *Prioritize) {
	t, _ := s.managed(m.Asker, m.TaskID, m.Tenant, m.Commands)
	switch {
	case t == nil:
		return
	case t.Location != wire.LocationPending && t.Location != wire.LocationDelayed || m.Only != "" && m.Only != t.Location:
		s.refuseWaiting(m.Asker, t, "task does not wait where it was meant, it is %s; only a ready or delayed one can be moved")
		return
	case t.Priority != m.Priority:
		to := move{
			to: t.Location, status: t.Status, cause: CauseMove, toOldPlace: true, dueAtMs: t.DueAtMs, moves: true, priority: m.Priority,
		}
		s.transition(t, to)
	}
	s.tell(m.Sink, &Moved{Ref: m.Ref, TaskID: t.ID})
}

// refuseWaiting refuses a task that is not where it was meant.
func (s *Shard) refuseWaiting(to Asker, t *record.Task, sentence string) {
	where := string(t.Status)
	switch t.Location {
	case wire.LocationPending:
		where = "ready"
	case wire.LocationDelayed:
		where = "delayed"
	case wire.LocationInProgress:
		where = "in progress"
	}
	refusal := wire.Refuse(wire.CodeNotWaiting, strings.Replace(sentence, "%s", where, 1))
	refusal.Status = t.Status
	s.tell(to.Sink, &Refused{Ref: to.Ref, TaskID: t.ID, Err: refusal})
}
