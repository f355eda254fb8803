package shard

import (
	"cmp"
	"fmt"

	"codeq/lease"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// A task moves by transition alone: it deletes the entry of the old place and
// writes that of the new one, with counters, record, history and result, in the
// same batch.

// Cause says why a task moved. Its event has it, and so has the history line of a
// delivery that ended without success.
type Cause string

// The causes, one for each way a task can move.
const (
	CauseEnqueue     Cause = "enqueue"
	CauseDue         Cause = "due"
	CauseGrant       Cause = "grant"
	CauseResult      Cause = "result"
	CauseNack        Cause = "nack"
	CauseAbandon     Cause = "abandon"
	CauseRelease     Cause = "release"
	CauseExpired     Cause = "lease_expired"
	CauseTimeout     Cause = "timeout"
	CauseSessionGone Cause = "session_gone"
	CauseUndelivered Cause = "undelivered"
	CauseSuspect     Cause = "suspect"
	CauseCancel      Cause = "cancel"
	CauseTaskExpired Cause = "expired"
	CauseRetention   Cause = "retention"
	CauseReplay      Cause = "replay"
	CauseCleanup     Cause = "cleanup"
	CausePurge       Cause = "purge"
	CauseBound       Cause = "dlq_bound"
	CauseRunNow      Cause = "run_now"
	CauseMove        Cause = "move"
	CauseDelete      Cause = "queue_deleted"
)

// Event is one transition of one task. Number counts per shard without gaps
// and is stored with the batch.
type Event struct {
	Number   uint64
	AtMs     int64
	Tenant   string
	Command  string
	TaskID   wire.TaskID
	From     wire.Location
	To       wire.Location
	Status   wire.Status
	Cause    Cause
	Delivery int
}

// move says where a task goes and why. transition reads only the fields that its
// target needs.
type move struct {
	to     wire.Location
	status wire.Status
	cause  Cause
	// ended is why the delivery in progress ended, if that is not cause.
	ended Cause
	// toOldPlace keeps the sequence of the task; without it the task gets a new
	// one, at the tail.
	toOldPlace bool
	dueAtMs    int64
	// moves sets the priority of the task to priority.
	moves    bool
	priority int
	// lease is set for a grant.
	lease *record.Lease
	// result is set for a terminal status.
	result *wire.ResultRecord
	// dead is set for wire.LocationDead.
	dead wire.DeadCause
	// only is set for removed: the keys that the task is known not to have.
	only store.Only
	// closeCode is the close code of the socket over which a delivery did not
	// arrive, 0 if unknown.
	closeCode uint16
	// reason and exit are what the worker stated when it ended the delivery.
	reason string
	exit   wire.Exit
}

// leavesLine reports whether a delivery that ends so gets a line in the history. A
// success gets none: the result says as much. A removed task has no history.
func (m *move) leavesLine() bool {
	return m.to != removed && (m.cause != CauseResult || m.status == wire.StatusFailed)
}

// transition moves one task: it deletes the entry of its old place and writes that
// of the new one, with index keys, counters, record, history, result and event in
// the open batch. No other function moves a task. The caller has already changed
// the fields of the record that say what happened (attempts, error, tokens). A task
// that has expired ends instead of waiting.
func (s *Shard) transition(t *record.Task, m move) {
	from := t.Location
	if waits(m.to) && t.Expires(s.now) {
		m = s.expired(t, m)
	}
	s.moveExpiring(t, from, m.to)
	s.leave(t, &m)
	if m.moves {
		t.Priority = m.priority
	}
	t.Location, t.Status, t.UpdatedAtMs = m.to, m.status, s.now
	// A task has no history line before its first delivery, or if that ends now and
	// writes none.
	bare := t.Deliveries == 0 || t.Deliveries == 1 && from == wire.LocationInProgress && !m.leavesLine()
	s.enter(t, m, bare)
	if m.to == removed {
		s.forget(t, m.only)
		s.record(t, from, m)
		return
	}
	if m.to != wire.LocationInProgress {
		s.span.Batch().PutTask(t)
	}
	if m.status.Terminal() {
		s.tellWatchers(t.ID)
	}
	s.record(t, from, m)
}

func (s *Shard) record(t *record.Task, from wire.Location, m move) {
	s.marks.Event++
	delivery := t.Deliveries
	if m.lease != nil {
		delivery = m.lease.Delivery
	}
	s.out.Events = append(s.out.Events, Event{
		Number: s.marks.Event, AtMs: s.now, Tenant: t.Tenant, Command: t.Command, TaskID: t.ID,
		From: from, To: m.to, Status: m.status, Cause: m.cause, Delivery: delivery,
	})
}

// leave deletes the entry of the place that the record names. A new task has no
// place.
func (s *Shard) leave(t *record.Task, m *move) {
	key, batch := t.Queue(), s.span.Batch()
	switch t.Location {
	case "":
	case wire.LocationPending:
		k := record.PendingKey{Seq: t.Seq, ID: t.ID}
		s.queueOf(key).index.RemoveReady(t.Priority, k)
		batch.DeletePending(key, t.Priority, k)
	case wire.LocationDelayed:
		k := record.TimedKey{AtMs: t.DueAtMs, ID: t.ID}
		if m.cause != CauseDue {
			s.leavesAside(t.ID)
		}
		s.queueOf(key).index.RemoveDelayed(k)
		batch.DeleteDelayed(key, k)
		t.DueAtMs = 0
	case wire.LocationInProgress:
		s.leaveInProgress(t, m)
	case wire.LocationDead, wire.LocationNone:
		s.leaveEnded(t)
	default:
		panic(fmt.Sprintf("shard %d: task %v leaves %q", s.shard, t.ID, t.Location))
	}
}

// leaveInProgress ends a delivery: it copies number and holder from the lease to
// the record, and writes a history line if the delivery did not succeed.
func (s *Shard) leaveInProgress(t *record.Task, m *move) {
	e := s.leases.Get(t.ID)
	s.leases.Remove(e)
	s.queueOf(t.Queue()).index.RemoveLeased()
	batch := s.span.Batch()
	batch.DeleteLease(t.Queue(), t.ID, !e.PutAgain)
	t.Deliveries = e.Lease.Delivery
	t.LastSubject, t.LastWorkerID, t.LastOverHTTP = e.Lease.Subject, e.Lease.WorkerID, e.Lease.OverHTTP
	if !m.leavesLine() {
		return
	}
	batch.AddHistory(t.ID, wire.HistoryLine{
		Delivery: e.Lease.Delivery, WorkerID: e.Lease.WorkerID,
		FromMs: e.Lease.GrantedAtMs, ToMs: s.now, Cause: string(cmp.Or(m.ended, m.cause)), CloseCode: int(m.closeCode),
		Error: wire.Head(m.reason, wire.MaxLineErrorBytes), Exit: m.exit,
	})
}

// enter writes the entry of the place that the move names. A bare task has no
// history.
func (s *Shard) enter(t *record.Task, m move, bare bool) {
	key, batch := t.Queue(), s.span.Batch()
	q := s.queueOf(key)
	switch m.to {
	case wire.LocationPending:
		if !m.toOldPlace {
			s.marks.Seq++
			t.Seq = s.marks.Seq
		}
		k := record.PendingKey{Seq: t.Seq, ID: t.ID}
		q.index.AddReady(t.Priority, k, s.now)
		batch.PutPending(key, t.Priority, k, s.now)
		s.ready(q)
	case wire.LocationDelayed:
		t.DueAtMs = m.dueAtMs
		k := record.TimedKey{AtMs: t.DueAtMs, ID: t.ID}
		q.index.AddDelayed(k)
		batch.PutDelayed(key, k)
	case wire.LocationInProgress:
		q.index.AddLeased(t.ID)
		batch.PutLease(key, t.ID, m.lease)
		s.leases.Grant(&lease.Entry{
			Task: t, Lease: *m.lease, AckedUntilMs: s.now + m.lease.LeaseForMs,
			// Over HTTP a delivery counts as confirmed from its grant on;
			// Undelivered undoes that.
			Confirmed: m.lease.OverHTTP,
			HasCredit: !m.lease.OverHTTP,
		}, s.now+m.lease.LeaseForMs)
	case wire.LocationDead, wire.LocationNone:
		s.enterEnded(t, m, bare)
	case removed:
	default:
		panic(fmt.Sprintf("shard %d: task %v enters %q", s.shard, t.ID, m.to))
	}
}

func (s *Shard) enterEnded(t *record.Task, m move, bare bool) {
	if !m.status.Terminal() || m.result == nil || (m.dead != 0) != (m.to == wire.LocationDead) {
		panic(fmt.Sprintf("shard %d: task %v ends as %q in %q because of %q with the result %v", s.shard, t.ID, m.status, m.to, m.dead, m.result))
	}
	t.EndedAtMs = s.now
	k := record.TimedKey{AtMs: s.now, ID: t.ID}
	q, batch := s.queueOf(t.Queue()), s.span.Batch()
	batch.GiveResult(t, m.result)
	ended := record.Ended{
		Status: m.status, Deliveries: t.Deliveries, Cause: m.dead, Keyed: t.IdempotencyKey != "", Bare: bare, Whole: t.Whole(),
	}
	if m.to == wire.LocationDead {
		t.DeadCause = m.dead
		q.index.AddDead(s.now, m.dead)
		batch.PutDead(t.Queue(), k, ended)
		q.mayHavePassed(k)
	} else {
		q.index.AddDone(s.now)
		batch.PutDone(t.Queue(), k, ended)
	}
	s.planEnded(q)
}

// waits reports whether tasks in this place still wait for a grant.
func waits(place wire.Location) bool {
	return place == wire.LocationPending || place == wire.LocationDelayed
}

// expired returns the move that ends an expired task. It replaces instead, which
// would let the task wait; the history line of the delivery keeps cause, reason and
// exit of instead, which is empty if there was no delivery.
func (s *Shard) expired(t *record.Task, instead move) move {
	endedByWorker(t)
	t.Expired = true
	return move{
		to: wire.LocationNone, status: wire.StatusCancelled, cause: CauseTaskExpired,
		ended: instead.cause, closeCode: instead.closeCode, reason: instead.reason, exit: instead.exit,
		result: &wire.ResultRecord{
			TaskID: t.ID, Status: wire.StatusCancelled, Error: t.Error, CancelCause: wire.CancelExpired, CompletedAtMs: s.now,
		},
	}
}

// moveExpiring writes the expiry entry of a task when it begins to wait, and
// deletes it when the task leaves: only waiting tasks expire.
func (s *Shard) moveExpiring(t *record.Task, from, to wire.Location) {
	if t.ExpiresAtMs == 0 || waits(from) == waits(to) {
		return
	}
	q, k := s.queueOf(t.Queue()), record.TimedKey{AtMs: t.ExpiresAtMs, ID: t.ID}
	if waits(to) {
		q.index.AddExpiring(k)
		s.span.Batch().PutExpiring(q.key, k)
		return
	}
	q.index.RemoveExpiring(k)
	s.span.Batch().DeleteExpiring(q.key, k)
}
