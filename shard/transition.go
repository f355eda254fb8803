package shard

import (
	"cmp"
	"fmt"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// A task moves by transition alone: it deletes the entry of the old place and
// writes that of the new one, with counters, record, history and result, in the
// same batch.

// Event is one transition of one task. Number counts per shard without gaps
// and is stored with the batch.
type Event struct {
	Number  uint64
	AtMs    int64
	Tenant  string
	Command string
	// Queue numbers the queue within this shard until the next start; no two queues
	// have had the same number.
	Queue  uint32
	TaskID wire.TaskID
	From   wire.Location
	To     wire.Location
	Status wire.Status
	Cause  record.Cause
	// Files says that the task ends or is removed and that files were uploaded for it.
	Files    bool
	Delivery int
	// SpentMs is how long the task was in From: on a grant how long it was ready, at
	// the end of a delivery how long that ran. 0 for a new task.
	SpentMs int64
	// TotalMs is the time from the enqueue to the end, 0 for a move that ends no task.
	TotalMs int64
	// Worker is the display name of the worker of the delivery that begins or ends;
	// empty for other moves. Attempts are those counted so far; 0 on a removal.
	Worker   string
	Attempts int
	// Trace is the trace context of the task; nil unless Config.TraceParent is set.
	Trace *Trace
}

// Trace is the trace context that a task was posted with, as in W3C Trace Context. Both are empty
// for none.
type Trace struct{ Parent, State string }

// move says where a task goes and why. transition reads only the fields that its
// target needs.
type move struct {
	to     wire.Location
	status wire.Status
	cause  record.Cause
	// ended is why the delivery in progress ended, if that is not cause.
	ended record.Cause
	// toOldPlace keeps the sequence of the task; without it the task gets a new
	// one, at the tail.
	toOldPlace bool
	dueAtMs    int64
	// moves sets the priority of the task to priority.
	moves    bool
	priority int
	// lease is set for a grant, complete but for its task.
	lease *lease.Entry
	// result is set for a terminal status.
	result *wire.ResultRecord
	// dead is set for wire.LocationDead.
	dead wire.DeadCause
	// absent is set for removed: the keys that the task is known not to have.
	absent record.Absent
	// closeCode is the close code of the socket over which a delivery did not
	// arrive, 0 if unknown.
	closeCode uint16
	// reason and exit are what the worker stated when it ended the delivery.
	reason string
	exit   wire.Exit
	// by is the person who asked for the move, empty for others.
	by string
	// held: the door has counted the new task.
	held bool
	// unnoted: a delivery that ends so gets no line in the history.
	unnoted bool
}

// leavesLine reports whether a delivery that ends so gets a line in the history. A
// success gets none: the result says as much. A removed task has no history.
func (m *move) leavesLine() bool {
	return m.to != removed && !m.unnoted && (m.cause != record.CauseResult || m.status == wire.StatusFailed)
}

// transition moves one task: it deletes the entry of its old place and writes that
// of the new one, with index keys, counters, record, history, result and event in
// the open batch. No other function moves a task. The caller has already changed
// the fields of the record that say what happened (attempts, error, tokens). A task
// that has expired ends instead of waiting.
func (s *Shard) transition(t *record.Task, m move) {
	q, from, since, held := s.queueOf(t.Queue()), t.Location, s.inPlaceSince(t), m.held
	if waits(m.to) && t.Expires(s.now) {
		m = s.expired(t, m)
	}
	s.moveExpiring(q, t, from, m.to)
	s.countMove(q, from, m.to, int64(t.PayloadBytes), held)
	s.leave(q, t, &m)
	s.keepFiles(q, t, &m)
	if m.to == wire.LocationPending {
		m.to = s.byKey(q, t, &m)
	}
	if m.by != "" && from != wire.LocationInProgress && m.to != removed {
		s.noteHand(t, &m)
	}
	ends, callbacks := m.to != removed && m.status.Terminal(), []recipient(nil)
	if ends {
		callbacks = s.noteCallbacks(q, t, m.status)
	}
	if m.moves {
		t.Priority = m.priority
	}
	t.Location, t.Status, t.UpdatedAtMs = m.to, m.status, s.now
	// A task that no person has handled, and without a callback, has no history line before
	// its first delivery, or if that ends now and writes none.
	bare := !t.Handled && (t.Deliveries == 0 || t.Deliveries == 1 && from == wire.LocationInProgress && !m.leavesLine())
	s.enter(q, t, &m, bare)
	switch m.to {
	case removed:
		s.forget(t, m.absent)
	case wire.LocationInProgress:
	default:
		s.span.Batch().PutTask(t)
	}
	if ends {
		s.tellWatchers(t.ID)
	}
	e := s.addEvent(q, t.ID, from, m.to)
	e.Status, e.Cause, e.Delivery, e.SpentMs = m.status, m.cause, t.Deliveries, s.now-since
	e.Files = t.Files.Begun > 0 && (ends || m.to == removed)
	if from == wire.LocationInProgress {
		e.Worker = t.LastWorkerID
	}
	if m.lease != nil {
		e.Delivery, e.Worker = m.lease.Lease.Delivery, m.lease.Lease.WorkerID
	}
	if m.to == removed {
		return
	}
	e.Attempts, e.Trace = t.Attempts, s.traceOf(t)
	if ends {
		e.TotalMs = s.now - t.CreatedAtMs
	}
	if len(callbacks) > 0 {
		s.makeCallbacks(callbacks, t, m.result, e.Number)
	}
}

// inPlaceSince is the time of the move that brought the task where it is. The record
// of a task in progress does not have it after a restart, its lease does.
func (s *Shard) inPlaceSince(t *record.Task) int64 {
	switch t.Location {
	case "":
		return s.now
	case wire.LocationInProgress:
		return cmp.Or(s.leases.Get(t.ID).Lease.GrantedAtMs, t.UpdatedAtMs)
	case wire.LocationDead, wire.LocationNone:
		return t.EndedAtMs
	}
	return t.UpdatedAtMs
}

// addEvent adds the next event of the round, without what only some moves have.
func (s *Shard) addEvent(q *queue, id wire.TaskID, from, to wire.Location) *Event {
	s.marks.Event++
	s.out.Events = append(s.out.Events, Event{
		Number: s.marks.Event, AtMs: s.now, Tenant: q.key.Tenant, Command: q.key.Command, Queue: q.number, TaskID: id, From: from, To: to,
	})
	return &s.out.Events[len(s.out.Events)-1]
}

// eventUnreadable is the event of a task that leaves the orders of its queue because
// its record is missing or cannot be decoded. It runs before the task leaves the order.
func (s *Shard) eventUnreadable(q *queue, id wire.TaskID, from wire.Location) {
	s.countMove(q, from, removed, 0, false)
	s.addEvent(q, id, from, removed).Cause = record.CauseUnreadable
}

// leave deletes the entry of the place that the record names. A new task has no
// place.
func (s *Shard) leave(q *queue, t *record.Task, m *move) {
	batch := s.span.Batch()
	switch t.Location {
	case "":
	case wire.LocationPending:
		k := record.PendingKey{Seq: t.Seq, ID: t.ID}
		q.index.RemoveReady(t.Priority, k)
		batch.DeletePending(q.key, t.Priority, k)
		s.leaveReady(q, t, m)
	case wire.LocationLimited:
		s.leaveLimited(q, t, m)
	case wire.LocationDelayed:
		k := record.TimedKey{AtMs: t.DueAtMs, ID: t.ID}
		if m.cause != record.CauseDue {
			s.dropAside(t.ID)
		}
		q.index.RemoveDelayed(k)
		batch.DeleteTimed(q.key, record.FamilyDelayed, k)
		t.DueAtMs = 0
	case wire.LocationInProgress:
		s.leaveInProgress(q, t, m)
	case wire.LocationDead, wire.LocationNone:
		s.leaveEnded(q, t)
	default:
		panic(fmt.Sprintf("shard %d: task %v leaves %q", s.shard, t.ID, t.Location))
	}
}

// leaveInProgress ends a delivery: it copies number and holder from the lease to
// the record, and writes a history line if the delivery did not succeed.
func (s *Shard) leaveInProgress(q *queue, t *record.Task, m *move) {
	e := s.leases.Get(t.ID)
	s.leases.Remove(e)
	q.index.RemoveLeased()
	s.freePlace(q)
	s.endKey(q, t.ConcurrencyKey)
	batch := s.span.Batch()
	batch.DeleteLease(q.key, t.ID, !e.PutAgain)
	t.Deliveries = e.Lease.Delivery
	t.LastSubject, t.LastWorkerID, t.LastOverHTTP = e.Lease.Subject, e.Lease.WorkerID, e.Lease.OverHTTP
	t.Progress, t.Printed = cmp.Or(e.Lease.Progress, t.Progress), t.Printed || e.Lease.Printed
	if t.Files = e.Lease.Files; t.LastToken.IsZero() {
		t.Files.Listed = ""
	}
	if !m.leavesLine() {
		return
	}
	batch.AddHistory(t.ID, wire.HistoryLine{
		Delivery: e.Lease.Delivery, WorkerID: e.Lease.WorkerID,
		FromMs: e.Lease.GrantedAtMs, ToMs: s.now, Cause: cmp.Or(m.ended, m.cause).String(), By: m.by, CloseCode: int(m.closeCode),
		Error: wire.Head(m.reason, wire.MaxLineErrorBytes), Exit: m.exit,
	})
}

// noteHand writes into the history what a person does to a task that no worker has.
func (s *Shard) noteHand(t *record.Task, m *move) {
	t.Handled = true
	s.span.Batch().AddHistory(t.ID, wire.HistoryLine{ToMs: s.now, Cause: cmp.Or(m.ended, m.cause).String(), By: m.by})
}

// enter writes the entry of the place that the move names. A bare task has no
// history.
func (s *Shard) enter(q *queue, t *record.Task, m *move, bare bool) {
	batch := s.span.Batch()
	switch m.to {
	case wire.LocationPending, wire.LocationLimited:
		if !m.toOldPlace {
			s.marks.Seq++
			t.Seq = s.marks.Seq
		}
		if m.to == wire.LocationLimited {
			s.enterLimited(q, t)
			return
		}
		k := record.PendingKey{Seq: t.Seq, ID: t.ID}
		q.index.AddReady(t.Priority, k, s.now)
		batch.PutPending(q.key, t.Priority, k, s.now)
		s.joinRings(q)
	case wire.LocationDelayed:
		t.DueAtMs = m.dueAtMs
		k := record.TimedKey{AtMs: t.DueAtMs, ID: t.ID}
		q.index.AddDelayed(k)
		batch.PutTimed(q.key, record.FamilyDelayed, k)
	case wire.LocationInProgress:
		q.index.AddLeased(t.ID)
		batch.PutLease(q.key, t.ID, &m.lease.Lease)
		m.lease.Task = t
		s.leases.Grant(m.lease, m.lease.AckedUntilMs)
		s.startKey(q, t.ConcurrencyKey)
	case wire.LocationDead, wire.LocationNone:
		s.enterEnded(q, t, m, bare)
	case removed:
	default:
		panic(fmt.Sprintf("shard %d: task %v enters %q", s.shard, t.ID, m.to))
	}
}

func (s *Shard) enterEnded(q *queue, t *record.Task, m *move, bare bool) {
	if !m.status.Terminal() || m.result == nil || (m.dead != 0) != (m.to == wire.LocationDead) {
		panic(fmt.Sprintf("shard %d: task %v ends as %q in %q because of %q with the result %v", s.shard, t.ID, m.status, m.to, m.dead, m.result))
	}
	t.EndedAtMs, t.Files.Listed = s.now, ""
	k := record.TimedKey{AtMs: s.now, ID: t.ID}
	batch := s.span.Batch()
	batch.GiveResult(t, m.result)
	ended := record.Ended{
		Status: m.status, Deliveries: t.Deliveries, Cause: m.dead, HasKey: t.IdempotencyKey != "", Labelled: t.Labels != "",
		HasFiles: t.Files.Begun > 0, Absent: record.Absent{History: bare, Payload: t.Whole()},
	}
	if m.to == wire.LocationDead {
		t.DeadCause = m.dead
		q.index.AddDead(s.now, m.dead)
		batch.PutEnded(q.key, record.FamilyDead, k, ended)
		q.mayHavePassed(k)
	} else {
		q.index.AddDone(s.now)
		batch.PutEnded(q.key, record.FamilyDone, k, ended)
	}
	s.planEnded(q)
}

// waits reports whether tasks in this place still wait for a grant.
func waits(place wire.Location) bool {
	return place == wire.LocationPending || place == wire.LocationDelayed || place == wire.LocationLimited
}

// expired returns the move that ends an expired task. It replaces instead, which
// would let the task wait; the history line of the delivery keeps cause, reason and
// exit of instead, which is empty if there was no delivery.
func (s *Shard) expired(t *record.Task, instead move) move {
	closeToCompletion(t)
	t.Expired = true
	return move{
		to: wire.LocationNone, status: wire.StatusCancelled, cause: record.CauseTaskExpired,
		ended: instead.cause, closeCode: instead.closeCode, reason: instead.reason, exit: instead.exit, by: instead.by,
		result: &wire.ResultRecord{
			TaskID: t.ID, Status: wire.StatusCancelled, Error: t.Error, CancelCause: wire.CancelExpired, CompletedAtMs: s.now,
		},
	}
}

// moveExpiring writes the expiry entry of a task when it begins to wait, and
// deletes it when the task leaves: only waiting tasks expire.
func (s *Shard) moveExpiring(q *queue, t *record.Task, from, to wire.Location) {
	if t.ExpiresAtMs == 0 || waits(from) == waits(to) {
		return
	}
	k := record.TimedKey{AtMs: t.ExpiresAtMs, ID: t.ID}
	if waits(to) {
		q.index.AddExpiring(k)
		s.span.Batch().PutTimed(q.key, record.FamilyExpiring, k)
		return
	}
	q.index.RemoveExpiring(k)
	s.span.Batch().DeleteTimed(q.key, record.FamilyExpiring, k)
}
