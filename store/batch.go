package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// Batch collects everything one round of a shard writes; Span.Apply commits
// it whole. Reads through the Span see it at once. It belongs to the
// goroutine of its shard, and each Span has exactly one, reused for ever.
//
// Putting the same thing twice overwrites, deleting what is not there does
// nothing: the caller decides, the batch records. An entry in an order of a queue
// is put once before it is deleted, whenever that is: see removeOnce.
type Batch struct {
	span    *Span
	pebble  *pebble.Batch
	overlay *overlay
	pending *pendingInBatch
	ended   *endedInBatch
	// counters are those that were put or deleted, for Span.published.
	counters []QueueState
	// removals are the tasks whose deletions are written at the end of the batch.
	removals []removedTask
	// labels are the keys of labels that are written at the end of the batch, one behind the
	// other in labelBytes.
	labels     [][]byte
	labelBytes []byte
	// maybeEmptyQueues are the queues that have lost their counters or settings, marksDue says
	// that a number was given since the marks were written.
	maybeEmptyQueues []record.QueueKey
	marksDue         bool
	// err is the first reading error of AddHistory; Apply reports it.
	err   error
	key   []byte
	value []byte
}

// retainedBatchBytes is the buffer a batch keeps from one round to the next.
const retainedBatchBytes = 4 << 20

func newBatch(sp *Span, db *pebble.DB) *Batch {
	return &Batch{
		span:    sp,
		pebble:  db.NewBatch(pebble.WithMaxRetainedSizeBytes(retainedBatchBytes)),
		overlay: newOverlay(),
		pending: newPendingInBatch(),
		ended:   newEndedInBatch(),
	}
}

// Empty reports that nothing has been written since the last Apply.
func (b *Batch) Empty() bool {
	return b.pebble.Empty() && b.pending.empty() && b.ended.empty() && len(b.labels)+len(b.removals) == 0
}

// Bytes is the size of what has been written since the last Apply.
func (b *Batch) Bytes() int {
	if b.Empty() {
		return 0
	}
	return b.pebble.Len() + b.pending.bytes() + b.ended.bytes() + len(b.labelBytes) + len(b.removals)*removedTaskBytes
}

// close writes what was held back for the end of the batch.
func (b *Batch) close() {
	for i := range b.pending.entries {
		e := &b.pending.entries[i]
		if e.taken {
			continue
		}
		b.setPending(e.queue, e.priority, e.key, e.readyAtMs)
	}
	b.flushEnded()
	b.flushLabels()
	b.forgetQueues()
	if b.marksDue {
		b.PutMarks(b.span.marks)
	}
	b.flushRemovals()
}

func (b *Batch) reset() {
	b.pebble.Reset()
	b.overlay.reset()
	b.pending.reset()
	b.ended.reset()
	clear(b.counters)
	b.counters = b.counters[:0]
	b.removals = b.removals[:0]
	b.labels, b.labelBytes = b.labels[:0], b.labelBytes[:0]
	clear(b.maybeEmptyQueues)
	b.maybeEmptyQueues = b.maybeEmptyQueues[:0]
}

// set and remove write through b.key. Pebble's batch fails only after it has
// been committed or closed, which is a mistake of this package.
func (b *Batch) set(key, value []byte) {
	b.key = key
	if err := b.pebble.Set(key, value, nil); err != nil {
		panic(fmt.Sprintf("store: write into a closed batch of shard %d: %v", b.span.shard, err))
	}
}

func (b *Batch) remove(key []byte) {
	b.key = key
	if err := b.pebble.Delete(key, nil); err != nil {
		panic(fmt.Sprintf("store: delete in a closed batch of shard %d: %v", b.span.shard, err))
	}
}

// removeOnce removes a key that has been set once since it was removed last, or
// never was there. Pebble drops the pair where the two meet first, in the next
// flush mostly, instead of carrying a tombstone to the bottom of the tree: a queue
// would leave as many behind as it hands out tasks. Of a key that was set twice
// the older value could come back.
func (b *Batch) removeOnce(key []byte) {
	b.key = key
	if err := b.pebble.SingleDelete(key, nil); err != nil {
		panic(fmt.Sprintf("store: delete in a closed batch of shard %d: %v", b.span.shard, err))
	}
}

// start is the span's prefix in the reused key buffer.
func (b *Batch) start() []byte { return append(b.key[:0], b.span.prefix...) }

func (b *Batch) idKey(f record.Family, id wire.TaskID) []byte {
	return record.AppendIDKey(b.start(), f, id)
}

// PutTask writes the record of a task. It is copied; the caller may go on changing it.
func (b *Batch) PutTask(r *record.Task) {
	b.flushRemovalsBefore(r.ID)
	b.value = record.AppendTask(b.value[:0], r)
	b.set(b.idKey(record.FamilyTask, r.ID), b.value)
	b.overlay.putRecord(r)
}

// smallBytes is up to how many bytes a payload, or a result, stands within the
// record. A key costs as much as some hundred bytes more in a value that is
// written anyway, and a record is written about twice in the life of a task.
const smallBytes = 256

// GivePayload keeps the payload of a new task: within the record, if it is
// small, which the caller has yet to put, else under a key of its own.
func (b *Batch) GivePayload(r *record.Task, payload []byte) {
	r.PayloadBytes = len(payload)
	if len(payload) <= smallBytes {
		r.Payload = string(payload)
	}
	if r.Payload == "" {
		b.PutPayload(r.ID, payload)
	}
}

// GiveResult keeps the outcome of a task that has ended: within the record,
// which the caller has yet to put, if that says all of it and what the worker
// returned is small, else under a key of its own.
func (b *Batch) GiveResult(r *record.Task, outcome *wire.ResultRecord) {
	r.OutcomeHere = len(outcome.Result) <= smallBytes && outcome.Error == "" && len(outcome.Artifacts) == 0 &&
		outcome.Status == r.Status && outcome.CompletedAtMs == r.EndedAtMs
	if !r.OutcomeHere {
		b.PutResult(outcome)
		return
	}
	r.Result = string(outcome.Result)
}

// TakeResult removes the outcome of a task that is to run again. The caller has
// yet to put the record.
func (b *Batch) TakeResult(r *record.Task) {
	if !r.OutcomeHere {
		b.remove(b.idKey(record.FamilyResult, r.ID))
		b.overlay.dropValue(record.FamilyResult, r.ID)
	}
	r.OutcomeHere, r.Result = false, ""
}

// PutPayload writes the payload of a new task.
func (b *Batch) PutPayload(id wire.TaskID, payload []byte) {
	b.putValue(record.FamilyPayload, id, payload)
}

// PutResult writes the outcome of a task.
func (b *Batch) PutResult(r *wire.ResultRecord) {
	b.value = wire.AppendResultRecord(b.value[:0], r)
	b.putValue(record.FamilyResult, r.TaskID, b.value)
}

// AddHistory adds a line to the history of a task and keeps the newest
// record.MaxHistory lines. A history that cannot be decoded moves to bad/ and a new
// one begins; an error of the database is reported by Apply.
func (b *Batch) AddHistory(id wire.TaskID, line wire.HistoryLine) {
	found, err := b.span.view.value(record.FamilyHistory, id, func(old []byte) (err error) {
		b.value, err = record.AppendHistory(b.value[:0], old, &line)
		return err
	})
	if isDamaged(err) {
		err = b.span.quarantineValue(b.idKey(record.FamilyHistory, id))
	}
	if err == nil && !found {
		b.value, err = record.AppendHistory(b.value[:0], nil, &line)
	}
	if err != nil {
		b.err = cmp.Or(b.err, fmt.Errorf("read history of %v: %w", id, err))
		return
	}
	b.putValue(record.FamilyHistory, id, b.value)
}

func (b *Batch) putValue(f record.Family, id wire.TaskID, value []byte) {
	b.flushRemovalsBefore(id)
	b.set(b.idKey(f, id), value)
	b.overlay.putValue(f, id, value)
}

// PutPending makes a task claimable since readyAtMs. The key must not be in the
// database, unless this batch has deleted it.
func (b *Batch) PutPending(q record.QueueKey, prio int, k record.PendingKey, readyAtMs int64) {
	if b.pending.put(&pendingPut{queue: q, priority: prio, key: k, readyAtMs: readyAtMs}) {
		return
	}
	b.setPending(q, prio, k, readyAtMs)
}

func (b *Batch) setPending(q record.QueueKey, prio int, k record.PendingKey, readyAtMs int64) {
	n := b.number(q)
	b.value = record.AppendReadyAt(b.value[:0], readyAtMs)
	b.set(record.AppendPendingKey(b.start(), n, prio, k), b.value)
}

// DeletePending takes a task out of the pending order. A key that this batch
// has put is never written.
func (b *Batch) DeletePending(q record.QueueKey, prio int, k record.PendingKey) {
	if b.pending.take(&pendingPut{queue: q, priority: prio, key: k}) {
		return
	}
	n := b.number(q)
	b.removeOnce(record.AppendPendingKey(b.start(), n, prio, k))
}

// PutLimited makes a task wait for its concurrency key.
func (b *Batch) PutLimited(q record.QueueKey, e *record.LimitedEntry) {
	n := b.number(q)
	b.set(record.AppendLimitedKey(b.start(), n, e), nil)
}

// DeleteLimited takes a task from those that wait for its concurrency key.
func (b *Batch) DeleteLimited(q record.QueueKey, e *record.LimitedEntry) {
	n := b.number(q)
	b.removeOnce(record.AppendLimitedKey(b.start(), n, e))
}

// PutLease puts a task into the in-progress set, or replaces its lease.
func (b *Batch) PutLease(q record.QueueKey, id wire.TaskID, l *record.Lease) {
	n := b.number(q)
	b.value = record.AppendLease(b.value[:0], l)
	b.set(record.AppendLeaseKey(b.start(), n, id), b.value)
}

// DeleteLease takes a task out of the in-progress set. It was put once if its
// lease has not been replaced since, as far as the caller knows.
func (b *Batch) DeleteLease(q record.QueueKey, id wire.TaskID, once bool) {
	n := b.number(q)
	key := record.AppendLeaseKey(b.start(), n, id)
	if once {
		b.removeOnce(key)
		return
	}
	b.remove(key)
}

// PutTimed puts a task into the order of due times, or into that of when waiting tasks
// expire.
func (b *Batch) PutTimed(q record.QueueKey, f record.Family, k record.TimedKey) {
	b.putTimed(q, f, k, nil)
}

// PutEnded puts a task among the dead letters, or among the other ended ones, by the time
// it ended.
func (b *Batch) PutEnded(q record.QueueKey, f record.Family, k record.TimedKey, e record.Ended) {
	if f == record.FamilyDone {
		b.ended.put(endedName{b.number(q), k.AtMs, e}, k.ID)
		return
	}
	b.value = record.AppendEnded(b.value[:0], e)
	b.putTimed(q, f, k, b.value)
}

func (b *Batch) putTimed(q record.QueueKey, f record.Family, k record.TimedKey, value []byte) {
	n := b.number(q)
	b.set(record.AppendTimedKey(b.start(), n, f, k), value)
}

// DeleteTimed takes a task out of an order by time.
func (b *Batch) DeleteTimed(q record.QueueKey, f record.Family, k record.TimedKey) {
	n := b.number(q)
	if f == record.FamilyDone {
		b.deleteDone(n, k)
		return
	}
	b.removeOnce(record.AppendTimedKey(b.start(), n, f, k))
}

// PutIdempotencyKey maps a key of the queue to the task that took it.
func (b *Batch) PutIdempotencyKey(q record.QueueKey, key string, id wire.TaskID) {
	n := b.number(q)
	b.set(record.AppendIdempotencyKey(b.start(), n, key), id[:])
	b.overlay.keys[idempotencyName{q, key}] = idempotencyValue{state: written, id: id}
}

// DeleteIdempotencyKey frees a key of the queue.
func (b *Batch) DeleteIdempotencyKey(q record.QueueKey, key string) {
	n := b.number(q)
	b.remove(record.AppendIdempotencyKey(b.start(), n, key))
	b.overlay.keys[idempotencyName{q, key}] = idempotencyValue{state: deleted}
}

// PutLabels writes the keys of the labels of a new task, at the end of the batch.
func (b *Batch) PutLabels(r *record.Task) {
	b.eachLabel(r, func(key []byte) {
		b.key, b.labelBytes = key, append(b.labelBytes, key...)
		b.labels = append(b.labels, b.labelBytes[len(b.labelBytes)-len(key):])
	})
}

// DeleteLabels deletes the keys of the labels of a task that is removed.
func (b *Batch) DeleteLabels(r *record.Task) {
	if r.Labels != "" {
		b.flushLabels()
	}
	b.eachLabel(r, b.removeOnce)
}

func (b *Batch) eachLabel(r *record.Task, do func(key []byte)) {
	for label, rest := "", r.Labels; rest != ""; {
		label, rest = rest.Next()
		n := b.number(r.Queue())
		do(record.AppendLabelKey(b.start(), r.Tenant, label, n, r.ID))
	}
}

// flushLabels writes the keys of labels in their order, for the reason of flushRemovals.
func (b *Batch) flushLabels() {
	slices.SortFunc(b.labels, bytes.Compare)
	for _, key := range b.labels {
		b.set(append(b.key[:0], key...), nil)
	}
	b.labels, b.labelBytes = b.labels[:0], b.labelBytes[:0]
}

// PutCounters writes the figures of a queue.
func (b *Batch) PutCounters(q record.QueueKey, c *record.Counters) {
	n := b.number(q)
	b.span.keeps(q, record.FamilyCounters, true)
	b.value = record.AppendCounters(b.value[:0], c)
	b.set(record.AppendQueue(b.start(), n, record.FamilyCounters), b.value)
	b.counters = append(b.counters, QueueState{Key: q, Counters: *c})
}

// DeleteCounters forgets a queue that has no task left.
func (b *Batch) DeleteCounters(q record.QueueKey) {
	n := b.number(q)
	b.noteDropped(q, record.FamilyCounters)
	b.remove(record.AppendQueue(b.start(), n, record.FamilyCounters))
	b.counters = append(b.counters, QueueState{Key: q})
}

// PutSettings writes the shard's copy of the settings of a queue.
func (b *Batch) PutSettings(q record.QueueKey, s *record.Settings) {
	n := b.number(q)
	b.span.keeps(q, record.FamilySettings, true)
	b.value = record.AppendSettings(b.value[:0], s)
	b.set(record.AppendQueue(b.start(), n, record.FamilySettings), b.value)
}

// DeleteSettings forgets the settings of a queue.
func (b *Batch) DeleteSettings(q record.QueueKey) {
	n := b.number(q)
	b.noteDropped(q, record.FamilySettings)
	b.remove(record.AppendQueue(b.start(), n, record.FamilySettings))
}

// PutNamed writes the shard's copy of a named record, or deletes one that has no value.
func (b *Batch) PutNamed(n *record.Named) {
	key := record.AppendNamedKey(b.start(), n.NamedKey)
	if n.Value == "" {
		b.remove(key)
		return
	}
	b.value = record.AppendNamed(b.value[:0], n)
	b.set(key, b.value)
}

// PutMarks writes the high-water marks of the shard.
func (b *Batch) PutMarks(m record.Marks) {
	m.Queues, m.Newer = b.span.marks.Queues, b.span.marks.Newer
	b.span.marks, b.marksDue = m, false
	b.value = record.AppendMarks(b.value[:0], m)
	b.set(append(b.start(), byte(record.FamilyMarks)), b.value)
}
