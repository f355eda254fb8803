package shard

import (
	"slices"
	"strings"

	"codeq/lease"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Messages about a task from others than its worker: cancel, take back, replay, purge,
// move, explain, and when its lease ends.

// manage carries out a verb, or refuses it, for a caller who is not the worker of
// the task.
func (s *Shard) manage(m *Manage) {
	t, e := s.find(m.TaskID, m.Tenant)
	var refusal *wire.Error
	switch {
	case t == nil:
		refusal = wire.Refuse(wire.CodeTaskNotFound, "task does not exist")
	case m.Commands != nil && !wire.CommandIsAmong(m.Commands, t.Command):
		refusal = wire.Refuse(wire.CodeForbidden, "this credential may not use the command "+t.Command)
	case m.Do == Cancel:
		refusal = s.cancel(m, t, e)
	case m.Do == Replay:
		refusal = s.replay(m, t)
	case m.Do == Purge:
		refusal = s.purge(m, t)
	case m.Do == RunNow:
		refusal = s.runNow(m, t)
	case m.Do == TakeBack:
		refusal = s.takeBack(m, t, e)
	default:
		refusal = s.prioritize(m, t)
	}
	if refusal != nil {
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: m.TaskID, Err: refusal})
		return
	}
	s.tell(m.Sink, &Managed{Ref: m.Ref, TaskID: m.TaskID, Did: m.Do})
}

// notSo refuses to manage a task because of its status or place. In the sentence %s
// stands for what the task is.
func notSo(code wire.Code, t *record.Task, sentence, is string) *wire.Error {
	refusal := wire.Refuse(code, strings.Replace(sentence, "%s", is, 1))
	refusal.Status = t.Status
	return refusal
}

// notThere is notSo for a task that is not in the place that it must be in.
func notThere(code wire.Code, t *record.Task, sentence string) *wire.Error {
	is := string(t.Status)
	switch t.Location {
	case wire.LocationPending, wire.LocationLimited:
		is = "ready"
	case wire.LocationDelayed:
		is = "delayed"
	case wire.LocationInProgress:
		is = "in progress"
	}
	return notSo(code, t, sentence, is)
}

// isMeant reports whether a task is in the place that a verb is for, "" for any. One that
// waits for its concurrency key is as good as ready.
func isMeant(only wire.Location, t *record.Task) bool {
	return only == "" || only.State() == t.Location.State()
}

// notTheLetter is notSo for a task that is not a dead letter, or died again since.
func notTheLetter(t *record.Task) *wire.Error {
	return notSo(wire.CodeNotInDLQ, t, "task is not the dead letter that was meant, it is %s; look again", string(t.Status))
}

// cancel ends a task before its work is done. The first end counts: a second cancel
// succeeds, and a task that ended otherwise is refused.
func (s *Shard) cancel(m *Manage, t *record.Task, e *lease.Entry) *wire.Error {
	switch {
	case !isMeant(m.Only, t):
		return notThere(wire.CodeNotWaiting, t, "task is not where it was meant, it is %s; look again")
	case t.Status == wire.StatusCancelled:
		return nil
	case t.Status.Terminal():
		return notSo(wire.CodeAlreadyTerminal, t, "task has already ended, it is %s; only one that has not can be cancelled", string(t.Status))
	}
	s.cancelOpen(t, e, m.By)
	return nil
}

// cancelOpen ends a task that waits or runs, and tells the worker that has it. The
// credit stays taken until that answers.
func (s *Shard) cancelOpen(t *record.Task, e *lease.Entry, by string) {
	closeToCompletion(t)
	s.transition(t, move{
		to: wire.LocationNone, status: wire.StatusCancelled, cause: record.CauseCancel, by: by,
		result: &wire.ResultRecord{TaskID: t.ID, Status: wire.StatusCancelled, CompletedAtMs: s.now},
	})
	if e != nil {
		s.revoke(e, wire.RevokedCancelled)
	}
}

// revoke tells the session of a delivery, if it is connected, that it has lost it.
// The credit stays taken until the worker answers.
func (s *Shard) revoke(e *lease.Entry, reason string) {
	if sub := s.byConsumer[e.Lease.Session]; sub != nil && !e.Gone {
		ref := wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}
		s.tell(sub.consumer.Sink, &Revoked{TaskRef: ref, Reason: reason})
		s.leak(sub, e)
	}
}

// takeBack makes a task in progress ready again at its old place, and tells the worker.
// No attempt counts, because nothing is known against the task, and no late completion
// is accepted. A suspect stays one: its delivery need not have arrived.
func (s *Shard) takeBack(m *Manage, t *record.Task, e *lease.Entry) *wire.Error {
	if e == nil {
		return notThere(wire.CodeNotInProgress, t, "task has no worker, it is %s; only one in progress can be taken back")
	}
	t.LastToken = wire.Token{}
	to := putBack(record.CauseTakenBack)
	to.by = m.By
	s.transition(t, to)
	s.revoke(e, wire.RevokedTakenBack)
	return nil
}

// replay makes a dead letter ready, with all its attempts.
func (s *Shard) replay(m *Manage, t *record.Task) *wire.Error {
	switch {
	case t.Location != wire.LocationDead:
		return notSo(wire.CodeNotInDLQ, t, "task is no dead letter, it is %s; only a dead letter can be replayed", string(t.Status))
	case m.EndedAtMs != 0 && t.EndedAtMs != m.EndedAtMs:
		return notTheLetter(t)
	}
	s.revive(t, m.By)
	return nil
}

// revive alone leaves a terminal state. It keeps the number of deliveries, so that
// no old token is the newest again, and the error until another replaces it. It
// keeps LastToken: the late result of a delivery that ended without its worker is
// accepted until the task is granted again. It clears ResultToken, because the
// result is void, and the expiry, because a replayed task is meant to run.
func (s *Shard) revive(t *record.Task, by string) {
	s.dropFromBatches(t)
	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}
	t.ExpiresAtMs = 0
	s.span.Batch().TakeResult(t)
	s.transition(t, move{to: wire.LocationPending, status: wire.StatusPending, cause: record.CauseReplay, by: by})
}

// purge deletes a dead letter with all its keys, its result included. Its watchers
// were answered when it died. It works while the disk is full, because it only
// deletes.
func (s *Shard) purge(m *Manage, t *record.Task) *wire.Error {
	if t.Location != wire.LocationDead || t.EndedAtMs != m.EndedAtMs {
		return notTheLetter(t)
	}
	s.dropFromBatches(t)
	s.transition(t, move{to: removed, status: t.Status, cause: record.CausePurge})
	return nil
}

// dropFromBatches removes a dead letter from the batches of this round, because it is
// replayed or purged now: otherwise doRemovals would remove it too.
func (s *Shard) dropFromBatches(t *record.Task) {
	k := record.TimedKey{AtMs: t.EndedAtMs, ID: t.ID}
	for i := range s.batches {
		if l := &s.batches[i]; l.place == wire.LocationDead && l.queue.key == t.Queue() {
			l.ended = slices.DeleteFunc(l.ended, func(found record.EndedEntry) bool { return found.TimedKey == k })
		}
	}
}

// watch registers for the end of a task. For an ended task it answers at once, so a
// watcher that registers first and reads second misses nothing.
func (s *Shard) watch(m *Watch) {
	t, _ := s.find(m.TaskID, m.Tenant)
	switch {
	case t == nil:
		s.refuse(m.Asker, m.TaskID, wire.CodeTaskNotFound, "task does not exist")
	case t.Status.Terminal():
		s.tell(m.Sink, &Ended{Ref: m.Ref, TaskID: m.TaskID})
	default:
		s.watchers[m.TaskID] = append(s.watchers[m.TaskID], m.Asker)
	}
}

// unwatch removes a watcher.
func (s *Shard) unwatch(m *Unwatch) {
	left := s.watchers[m.TaskID][:0]
	for _, w := range s.watchers[m.TaskID] {
		if w != m.Asker {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		delete(s.watchers, m.TaskID)
		return
	}
	s.watchers[m.TaskID] = left
}

func (s *Shard) tellWatchers(id wire.TaskID) {
	for _, w := range s.watchers[id] {
		s.tell(w.Sink, &Ended{Ref: w.Ref, TaskID: id})
	}
	delete(s.watchers, id)
}

// answerExplains answers every Explain of the round.
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

// waitingOf says why a task waits, from the memory of the shard; nil for one that
// does not wait.
func (s *Shard) waitingOf(t *record.Task) *wire.Waiting {
	if t.Location == wire.LocationDelayed {
		w := &wire.Waiting{Reason: wire.WaitingDelayed, UntilMs: t.DueAtMs}
		if isSuspect(t) {
			w.Reason = wire.WaitingSuspect
		}
		return w
	}
	if !waits(t.Location) {
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
	case s.keyIsFull(q, t.ConcurrencyKey):
		s.addKeyLimit(q, t.ConcurrencyKey, w)
	case q.shut:
		s.addLimit(q, w)
	case q.subscribers.count+wildcard.count == 0:
		w.Reason = wire.WaitingNoWorker
	case w.Behind > 0 || !w.BehindKnown || q.subscribers.hasOpen() || wildcard.hasOpen():
		w.Reason = wire.WaitingBehind
	default:
		w.Reason = wire.WaitingNoCredit
	}
	return w
}

// tellLeases answers when leases end. The stored ends are later than these, see
// prolong.
func (s *Shard) tellLeases(m *TellLeases) {
	answer := &LeasesTold{Ref: m.Ref}
	for _, id := range m.Tasks {
		e := s.leases.Get(id)
		if e == nil || e.Task.Tenant != m.Tenant {
			continue
		}
		told := ToldLease{TaskID: id, Delivery: e.Lease.Delivery}
		told.LeaseUntilMs, told.RunUntilMs = e.Promise()
		told.Progress, told.Printed = wire.ReadProgress(e.Lease.Progress), e.Lease.Printed
		answer.Leases = append(answer.Leases, told)
	}
	s.tell(m.Sink, answer)
}

// runNow makes a delayed task ready before its time, at the tail of its priority.
func (s *Shard) runNow(m *Manage, t *record.Task) *wire.Error {
	if t.Location != wire.LocationDelayed {
		return notThere(wire.CodeNotWaiting, t, "task does not wait for a time, it is %s; only a delayed one can be run now")
	}
	to := s.placeAt(s.now, record.CauseRunNow)
	to.by = m.By
	s.transition(t, to)
	return nil
}

// prioritize gives a waiting task another priority. A ready one keeps its sequence,
// so that moved tasks stay in their order, and an older one comes before the
// younger ones of its new priority.
func (s *Shard) prioritize(m *Manage, t *record.Task) *wire.Error {
	if !waits(t.Location) || !isMeant(m.Only, t) {
		return notThere(wire.CodeNotWaiting, t, "task does not wait where it was meant, it is %s; only a ready or delayed one can be moved")
	}
	if t.Priority != m.Priority {
		s.transition(t, move{
			to: t.Location, status: t.Status, cause: record.CauseMove, toOldPlace: true, dueAtMs: t.DueAtMs, moves: true, priority: m.Priority,
			by: m.By,
		})
	}
	return nil
}
