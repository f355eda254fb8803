package shard

import (
	"bytes"
	"cmp"
	"fmt"

	"codeq/internal/heap"
	"codeq/record"
	"codeq/wire"
)

// Retention: findRemovals reads the entries of ended tasks to remove at the
// beginning of a round, doRemovals removes them at its end.

// removalEveryMs: the times of scans are rounded up to multiples of this, so that one
// scan removes all tasks whose retention ended in between. At full rate one ends every
// millisecond, and each would cost a scan.
const removalEveryMs = 200

// Retention is the server's default for how long ended tasks stay, in milliseconds;
// 0 is for ever. The settings of a queue come before it.
type Retention struct {
	DoneForMs int64
	DeadForMs int64
}

// given is what the queues of the shard do not say themselves.
type given struct {
	retention Retention
	publicURL string
	// traceParent is that of Config, nil if nobody traces.
	traceParent func(id wire.TaskID, parent string, delivery int) string
}

// traceOf is the trace context of a task for its event, nil if nobody traces.
func (s *Shard) traceOf(t *record.Task) *Trace {
	if s.traceParent == nil {
		return nil
	}
	return &Trace{Parent: t.TraceParent, State: t.TraceState}
}

// traceAfter is the traceparent of what the newest delivery of a task is the cause of.
func (s *Shard) traceAfter(t *record.Task, delivery int) string {
	if s.traceParent == nil {
		return t.TraceParent
	}
	return s.traceParent(t.ID, t.TraceParent, delivery)
}

// removalBatch is one scan of the ended tasks of a queue. After the round no key
// before lowMs is left.
type removalBatch struct {
	queue *queue
	place wire.Location
	lowMs int64
	ended []record.EndedEntry
	// failed restricts the scan of dead letters to those with cause
	// wire.DeadFailed; passed is the last key that it read.
	failed bool
	passed record.TimedKey
	// cut reports that the scan stopped at its limit: more may be left.
	cut bool
	// cleanup is the cleanup that the scan belongs to, nil for retention.
	cleanup *cleanupRun
}

// retentionOf is how long ended tasks of a queue stay in that place, in
// milliseconds.
func (s *Shard) retentionOf(q *queue, place wire.Location) int64 {
	if place == wire.LocationDead {
		return cmp.Or(q.settings.DLQRetentionSeconds*1000, s.retention.DeadForMs)
	}
	return cmp.Or(q.settings.RetentionSeconds*1000, s.retention.DoneForMs)
}

// failedForMs is how long dead letters with cause wire.DeadFailed stay: as long as
// the others, but wire.FailedForSeconds where those stay for ever.
func (s *Shard) failedForMs(q *queue) int64 {
	return cmp.Or(s.retentionOf(q, wire.LocationDead), wire.FailedForSeconds*1000)
}

// failedOver is how many dead letters with cause wire.DeadFailed exceed
// limits.Failed. A queue with a retention of its own for dead letters has no such
// limit.
func (s *Shard) failedOver(q *queue) int64 {
	if q.settings.DLQRetentionSeconds != 0 {
		return 0
	}
	count, _ := q.index.Failed()
	return max(0, count-int64(s.limits.Failed))
}

// removalAtMs is when the queue must be scanned for ended tasks to remove, 0 for
// never. The low watermarks that it is computed from may be too low, never too
// high, so a scan comes too early at worst.
func (s *Shard) removalAtMs(q *queue) int64 {
	if q.settings.Deleting {
		return 0 // all of them go, see findDeleted
	}
	var at int64
	if count, lowMs := q.index.Done(); count > 0 {
		if keep := s.retentionOf(q, wire.LocationNone); keep > 0 {
			at = lowMs + keep
		}
	}
	if count, lowMs := q.index.Dead(); count > 0 {
		if keep := s.retentionOf(q, wire.LocationDead); keep > 0 && (at == 0 || lowMs+keep < at) {
			at = lowMs + keep
		}
	}
	if count, lowMs := q.index.Failed(); count > 0 {
		if due := lowMs + s.failedForMs(q); at == 0 || due < at {
			at = due
		}
		if s.failedOver(q) > 0 {
			at = min(at, s.now)
		}
	}
	return (at + removalEveryMs - 1) / removalEveryMs * removalEveryMs
}

// planRemoval sets the time of a queue in the removal queue.
func (s *Shard) planRemoval(q *queue) { s.setRemoval(q, s.removalAtMs(q)) }

// setRemoval is planRemoval to a given time; 0 takes the queue out.
func (s *Shard) setRemoval(q *queue, atMs int64) {
	if atMs == 0 {
		s.removalQueue.Remove(&q.removal)
		return
	}
	s.removalQueue.Put(&q.removal, q, heap.Key{AtMs: atMs})
}

// planEnded is planRemoval after a task of the queue has ended. It never sets a
// later time: a queue whose scan was cut keeps the earlier one.
func (s *Shard) planEnded(q *queue) {
	if at := s.removalAtMs(q); !q.removal.IsIn() || at < s.removalQueue.AtMs(&q.removal) {
		s.setRemoval(q, at)
	}
}

// findRemovals reads which ended tasks must be removed. It runs at the start of a
// round only, like refill: a scan does not see the open batch.
func (s *Shard) findRemovals() {
	clear(s.batches)
	s.batches, s.doomed = s.batches[:0], s.doomed[:0]
	s.findCleanup()
	if len(s.batches) > 0 {
		// A scan for retention would return the entries of the cleanup again.
		return
	}
	for left := s.limits.Removals - s.findDeleted(); left > 0; {
		q, atMs := s.removalQueue.Top()
		if q == nil || atMs > s.now {
			return
		}
		found := 0
		for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
			if keep := s.retentionOf(q, place); keep > 0 && found < left {
				found += s.scanEnded(q, place, s.now-keep, left-found)
			}
		}
		if found == 0 {
			// A scan for failed letters would return the dead letters found above
			// again.
			found = s.scanFailed(q, left)
		}
		left -= found
		// Scan each queue once per round: entries found here are deleted only in
		// doRemovals, so a second scan would return them again.
		s.setRemoval(q, s.now+1)
	}
}

// scanEnded adds a batch of up to limit tasks that ended at or before untilMs, and
// returns how many it found.
func (s *Shard) scanEnded(q *queue, place wire.Location, untilMs int64, limit int) int {
	l := removalBatch{queue: q, place: place}
	// Even an empty batch makes doRemovals plan the queue anew.
	defer func() { s.batches = append(s.batches, l) }()
	count, lowMs := q.index.Done()
	if place == wire.LocationDead {
		count, lowMs = q.index.Dead()
	}
	if count == 0 || lowMs > untilMs {
		return 0
	}
	found := s.readEnded(q, place, justBefore(lowMs), int(min(int64(limit), count)))
	if len(found) == 0 {
		panic(fmt.Sprintf("shard %d: queue %v has %d ended tasks from %d on, none is found", s.shard, q.key, count, lowMs))
	}
	for _, e := range found {
		l.lowMs = e.AtMs
		if e.AtMs > untilMs {
			break
		}
		l.ended = append(l.ended, e)
	}
	l.cut = len(l.ended) == limit
	return len(l.ended)
}

// scanFailed adds a batch of the dead letters with cause wire.DeadFailed to remove,
// oldest first. It reads at most limit dead letters, as others lie between, and
// returns how many it read.
func (s *Shard) scanFailed(q *queue, limit int) int {
	l := removalBatch{queue: q, place: wire.LocationDead, failed: true, passed: q.failedAfter}
	defer func() { s.batches = append(s.batches, l) }()
	count, lowMs := q.index.Failed()
	over, untilMs := s.failedOver(q), s.now-s.failedForMs(q)
	if count == 0 || over == 0 && lowMs > untilMs {
		return 0
	}
	after := justBefore(lowMs)
	if q.failedAfter.AtMs >= lowMs {
		after = q.failedAfter
	}
	all, _ := q.index.Dead()
	limit = int(min(int64(limit), all))
	found := s.readEnded(q, l.place, after, limit)
	if len(found) == 0 {
		panic(fmt.Sprintf("shard %d: queue %v has %d failed tasks from %d on, none is found", s.shard, q.key, count, lowMs))
	}
	l.cut = len(found) == limit
	for _, e := range found {
		l.lowMs = e.AtMs
		if e.AtMs > untilMs && int64(len(l.ended)) >= over {
			l.cut = false
			break
		}
		if e.AtMs < s.now { // one that ends in this round may stand before those of now
			l.passed = e.TimedKey
		}
		if e.Cause == wire.DeadFailed {
			l.ended = append(l.ended, e)
		}
	}
	return len(found)
}

// mayHavePassed restarts the scans for failed letters if a new dead letter is at or
// before the last key that they read.
func (q *queue) mayHavePassed(k record.TimedKey) {
	if k.AtMs <= q.failedAfter.AtMs {
		q.failedAfter = record.TimedKey{}
	}
}

// readEnded reads ended tasks of a queue.
func (s *Shard) readEnded(q *queue, place wire.Location, after record.TimedKey, limit int) []record.EndedEntry {
	order := record.FamilyDone
	if place == wire.LocationDead {
		order = record.FamilyDead
	}
	found, err := s.span.ScanEnded(q.key, order, after, limit)
	s.mustRead(err)
	return found
}

// justBefore is the greatest key below those of a time.
func justBefore(atMs int64) record.TimedKey {
	k := record.TimedKey{AtMs: max(atMs-1, 0)}
	copy(k.ID[:], bytes.Repeat([]byte{0xff}, len(k.ID)))
	return k
}

// doRemovals removes the tasks that findRemovals read, if they still must go: a
// message of this round may have replayed a task or prolonged the retention.
func (s *Shard) doRemovals() {
	for _, l := range s.batches {
		for i := range l.ended {
			e := &l.ended[i]
			if cause := s.removalCause(&l, e); cause != 0 {
				s.removeEnded(&l, e, cause)
				continue
			}
			l.lowMs, l.passed = min(l.lowMs, e.AtMs), record.TimedKey{}
		}
		l.advanceWatermark()
		s.planRemoval(l.queue)
		if l.cut {
			s.setRemoval(l.queue, min(s.now+1, s.removalQueue.AtMs(&l.queue.removal)))
		}
	}
	s.endCleanup()
}

// removalCause is the cause why a task of a batch is removed, 0 if it stays.
func (s *Shard) removalCause(l *removalBatch, e *record.EndedEntry) record.Cause {
	keep := s.retentionOf(l.queue, l.place)
	if l.failed {
		keep = s.failedForMs(l.queue)
	}
	switch {
	case l.cleanup != nil:
		return record.CauseCleanup
	case l.queue.settings.Deleting:
		return record.CauseDelete
	case keep > 0 && e.AtMs+keep <= s.now:
		return record.CauseRetention
	case l.failed && s.failedOver(l.queue) > 0:
		return record.CauseBound
	}
	return 0
}

// advanceWatermark raises the low watermark of the scanned order to lowMs.
func (l *removalBatch) advanceWatermark() {
	q := l.queue.index
	switch {
	case l.failed:
		q.AdvanceFailedWatermark(l.lowMs)
		l.queue.failedAfter = l.passed
	case l.place == wire.LocationDead:
		q.AdvanceDeadWatermark(l.lowMs)
	default:
		q.AdvanceDoneWatermark(l.lowMs)
	}
}

func (s *Shard) removeEnded(l *removalBatch, e *record.EndedEntry, cause record.Cause) {
	t := s.fromEntry(l, e)
	if t == nil {
		var err error
		t, err = s.span.Task(e.ID)
		if t == nil || s.unreadable(err) {
			s.quarantineEnded(l, e)
			return
		}
		if t.Location != l.place || t.EndedAtMs != e.AtMs {
			return
		}
	}
	if l.cleanup != nil {
		l.cleanup.deleted++
	}
	s.transition(t, move{to: removed, status: t.Status, cause: cause, absent: e.Absent})
}

// fromEntry builds the task from its entry, or returns nil if the record must be
// read: for an entry without a status, or a task with an idempotency key, labels or files.
// Reading the record was the most expensive step of a removal. The entry still holds at the
// end of the round: only a dead letter can change, and dropFromBatches takes those out of
// the batch.
func (s *Shard) fromEntry(l *removalBatch, e *record.EndedEntry) *record.Task {
	if e.Status == "" || e.HasKey || e.Labelled || e.HasFiles {
		return nil
	}
	s.scratch = record.Task{
		ID: e.ID, Command: l.queue.key.Command, Tenant: l.queue.key.Tenant, Location: l.place,
		Status: e.Status, EndedAtMs: e.AtMs, Deliveries: e.Deliveries, DeadCause: e.Cause,
	}
	return &s.scratch
}

// removed is the location of a task whose keys are all deleted.
const removed wire.Location = ""

// forget deletes all keys of a task, and its idempotency key if that still names
// it.
func (s *Shard) forget(t *record.Task, absent record.Absent) {
	batch := s.span.Batch()
	if t.IdempotencyKey != "" {
		id, found, err := s.span.IdempotencyKey(t.Queue(), t.IdempotencyKey)
		s.mustRead(err)
		if found && id == t.ID {
			batch.DeleteIdempotencyKey(t.Queue(), t.IdempotencyKey)
		}
	}
	batch.DeleteLabels(t)
	batch.DeleteTask(t.ID, absent)
}

// leaveEnded deletes the entry of an ended task.
func (s *Shard) leaveEnded(q *queue, t *record.Task) {
	k := record.TimedKey{AtMs: t.EndedAtMs, ID: t.ID}
	t.EndedAtMs = 0
	if t.Location == wire.LocationDead {
		q.index.RemoveDead(k, t.DeadCause)
		t.DeadCause = 0
		s.span.Batch().DeleteTimed(q.key, record.FamilyDead, k)
		return
	}
	q.index.RemoveDone(k)
	s.span.Batch().DeleteTimed(q.key, record.FamilyDone, k)
}

// quarantineEnded is quarantineReady for the entry of an ended task.
func (s *Shard) quarantineEnded(l *removalBatch, e *record.EndedEntry) {
	s.leaveEnded(l.queue, &record.Task{ID: e.ID, Location: l.place, EndedAtMs: e.AtMs, DeadCause: e.Cause})
	s.mustRead(s.span.Quarantine(e.ID))
	s.eventUnreadable(l.queue, e.ID, l.place)
}

// nextRemovalMs is when the next ended task must be removed, 0 for never. It is at
// least now+1, so that the mailbox is read before the next slice.
func (s *Shard) nextRemovalMs() int64 {
	if len(s.cleanups) > 0 || s.deletionHasTasks() {
		return s.now + 1
	}
	if q, atMs := s.removalQueue.Top(); q != nil {
		return max(atMs, s.now+1)
	}
	return 0
}

// advanceWatermarks reads the first key of orders that lost many keys and are not
// cached in memory. Without it every listing, every replay of dead letters and the
// next start would scan all tombstones. It runs at the start of a round only, like
// refill.
func (s *Shard) advanceWatermarks() {
	for range s.limits.Watermarks {
		order, ok := s.index.NextLagging()
		if !ok {
			return
		}
		q := order.Queue
		counters := q.Counters()
		if order.Leased {
			rank, found, err := s.span.FirstLease(q.Key(), counters.LeaseWatermark)
			s.mustRead(err)
			if found {
				q.AdvanceLeaseWatermark(rank)
			}
			continue
		}
		keys, err := s.span.ScanEnded(q.Key(), record.FamilyDead, justBefore(counters.DeadWatermarkMs), 1)
		s.mustRead(err)
		if len(keys) > 0 {
			q.AdvanceDeadWatermark(keys[0].AtMs)
		}
	}
}
