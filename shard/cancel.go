package shard

import (
	"slices"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// cancel ends a task before its work is done. Whatever ended it first stands:
// a task that was cancelled before is cancelled again with success, one that
// ended otherwise is refused.
func (s *Shard) cancel(m *Cancel) {
	t, e := s.managed(m.Asker, m.TaskID, m.Tenant, m.Commands)
	switch {
	case t == nil:
	case m.Only != "" && m.Only != t.Location:
		s.refuseWaiting(m.Asker, t, "task is not where it was meant, it is %s; look again")
	case t.Status == wire.StatusCancelled:
		s.tell(m.Sink, &Cancelled{Ref: m.Ref, TaskID: t.ID})
	case t.Status.Terminal():
		refusal := wire.Refuse(wire.CodeAlreadyTerminal, "task has already ended, it is "+string(t.Status)+"; only one that has not can be cancelled")
		refusal.Status = t.Status
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: t.ID, Err: refusal})
	default:
		s.cancelOpen(t, e)
		s.tell(m.Sink, &Cancelled{Ref: m.Ref, TaskID: t.ID})
	}
}

// managed finds a task for whoever acts on it beside its worker, with the
// commands they may use, nil for all; or it refuses and returns nil.
func (s *Shard) managed(to Asker, id wire.TaskID, tenant string, commands []string) (*record.Task, *lease.Entry) {
	t, e := s.find(id, tenant)
	if t == nil {
		s.refuse(to, id, wire.CodeTaskNotFound, "task does not exist")
		return nil, nil
	}
	if commands != nil && !slices.Contains(commands, t.Command) {
		s.refuse(to, id, wire.CodeForbidden, "this credential may not use the command "+t.Command)
		return nil, nil
	}
	return t, e
}

// cancelOpen ends a task wherever it waits or runs. A worker that has it is
// told; its credit stays out until it answers.
func (s *Shard) cancelOpen(t *record.Task, e *lease.Entry) {
	endedByWorker(t)
	s.transition(t, move{
		to: wire.LocationNone, status: wire.StatusCancelled, cause: CauseCancel,
		result: &wire.ResultRecord{TaskID: t.ID, Status: wire.StatusCancelled, CompletedAtMs: s.now},
	})
	if e != nil {
		s.revoke(e, wire.RevokedCancelled)
	}
}

// revoke tells the session that carries a delivery, if it is there, that it
// has lost it. The credit stays out until the worker answers.
func (s *Shard) revoke(e *lease.Entry, reason string) {
	if mb := s.bySession[e.Lease.Session]; mb != nil && !e.Gone {
		ref := wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}
		s.tell(mb.consumer.Sink, &Revoked{TaskRef: ref, Reason: reason})
		s.leak(mb, e)
	}
}
