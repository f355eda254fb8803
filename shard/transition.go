package shard

import (
	"cmp"
	"fmt"

	"codeq/lease"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// How a task moves: transition takes it out of one place and puts it into another, with
// everything that goes with that in the same batch.

// Cause says why a task moved. It is part of its event and of the history
// line that a delivery without a result leaves.
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

// move is where a task goes and why. Exactly the fields of its target count.
type move struct {
	to     wire.Location
	status wire.Status
	cause  Cause
	// ended is why the delivery in progress ended, if that is not cause.
	ended Cause
	// toOldPlace keeps the sequence the task had; otherwise it goes to the
	// tail.
	toOldPlace bool
	dueAtMs    int64
	// moves gives the task another priority on its way.
	moves    bool
	priority int
	// lease and expiresAtMs go with a grant.
	lease *record.Lease
	// result goes with a terminal status.
	result *wire.ResultRecord
	// dead goes with wire.LocationDead.
	dead wire.DeadCause
	// only goes with a task that goes for good.
	only store.Only
	// closeCode is what the socket was closed with over which a delivery did not
	// arrive, 0 if that is not known.
	closeCode uint16
	// reason and exit are what a worker said of the delivery that it ended.
	reason string
	exit   wire.Exit
}

// leavesLine reports whether a delivery that ends so has a line in the history:
// all have but those that succeeded, and those of which nothing is kept.
func (m *move) leavesLine() bool {
	return m.to != removed && (m.cause != CauseResult || m.status == wire.StatusFailed)
}

// transition moves one task: it takes it out of where it is and puts it where
// it goes, with index keys, counters, record, history, result and event in the
// open batch. Nothing else moves a task. The caller has already changed the
// fields of the record that say what happened (attempts, error, tokens). A task
// whose time is over ends instead of waiting.
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
	// So there is no history if the first delivery succeeded, or if there was none.
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

// leave takes a task out of the place its record names. A new task is nowhere.
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

// leaveInProgress ends a delivery: the record takes over its number and
// holder, and a delivery that did not succeed leaves a line of history.
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

// enter puts a task where its move says. A bare one has no history.
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
			// What HTTP hands out has arrived unless the claim says otherwise.
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

// waits reports a place from which a task is handed out, sooner or later.
func waits(place wire.Location) bool {
	return place == wire.LocationPending || place == wire.LocationDelayed
}

// expired is the move in place of one that would let a task wait though its time is
// over, or of none: it ends. What a delivery leaves in the history is that of the
// move which ended it.
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

// moveExpiring gives a task that expires an entry for that when it begins to wait,
// and takes it away when it no longer does.
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
