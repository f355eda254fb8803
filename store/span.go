package store

import (
	"fmt"
	"sync/atomic"

	"codeq/record"
	"codeq/wire"
)

// Span is the part of the database that one shard owns, and its open batch.
// Reads see the open batch first, then what has been applied. Everything is
// for the goroutine of the shard; only the last part is read by others.
type Span struct {
	// Static.
	store  *Store
	shard  int
	prefix []byte

	// Owned by the goroutine of the shard.
	view  view
	batch *Batch
	watch *watchdog
	// marks are the newest that were written, or loaded.
	marks record.Marks

	// Read by others, with a lock of its own.
	published published

	// Read by others. submitted is raised before a batch is applied, so that a
	// reader who saw some of it waits for it; applied is raised after, so that
	// a sync is never said to cover a batch that was not yet in the log;
	// synced follows applied.
	submitted atomic.Uint64
	applied   atomic.Uint64
	synced    atomic.Uint64
}

func newSpan(s *Store, shard int) *Span {
	sp := &Span{store: s, shard: shard, prefix: record.AppendSpan(nil, shard)}
	sp.view = view{reader: s.db, prefix: sp.prefix, span: sp, newest: true, steps: s.figures.scanSteps}
	sp.published.counters = make(map[record.QueueKey]record.Counters)
	sp.published.numbers = make(map[record.QueueKey]queueNumber)
	sp.batch = newBatch(sp, s.db)
	sp.view.overlay = sp.batch.overlay
	sp.watch = newWatchdog(fmt.Sprintf("commit of shard %d", shard), &s.pipe.failed, s.die)
	return sp
}

// Shard is the number of the shard.
func (sp *Span) Shard() int { return sp.shard }

// Batch is the open batch.
func (sp *Span) Batch() *Batch { return sp.batch }

// Task is the newest record of a task, nil if there is none. The caller may
// change it. A record that cannot be decoded is a *DamagedError; see Quarantine.
func (sp *Span) Task(id wire.TaskID) (*record.Task, error) { return sp.view.task(id) }

// PayloadOf is a copy of the payload of a task whose record the caller has, nil
// if there is none.
func (sp *Span) PayloadOf(r *record.Task) ([]byte, error) { return sp.view.payloadOf(r) }

// ResultOf is a copy of the outcome of a task whose record the caller has, nil
// if there is none.
func (sp *Span) ResultOf(r *record.Task) (*wire.ResultRecord, error) { return sp.view.resultOf(r) }

// IdempotencyKey is the task that holds a key of the queue.
func (sp *Span) IdempotencyKey(q record.QueueKey, key string) (wire.TaskID, bool, error) {
	v := sp.batch.overlay.keys[idempotencyName{q, key}]
	if v.state != untouched {
		return v.id, v.state == written, nil
	}
	return sp.view.idempotencyKey(q, key)
}

// mustBeClosed guards the scans: the open batch is not in the database, so a
// scan in mid-round would find what the round has taken and miss what it put.
func (sp *Span) mustBeClosed() {
	if !sp.batch.Empty() {
		panic(fmt.Sprintf("store: scan of shard %d while its batch holds %d bytes", sp.shard, sp.batch.Bytes()))
	}
}

// ScanPending reads up to limit entries of one priority, strictly behind after,
// in order. It panics unless the open batch is empty. Of a value that cannot be
// decoded the time is 0: the task itself is whole.
func (sp *Span) ScanPending(q record.QueueKey, prio int, after record.PendingKey, limit int) (found []record.PendingEntry, err error) {
	sp.mustBeClosed()
	n := sp.published.numbers[q].n
	prefix := record.AppendPriority(append([]byte(nil), sp.prefix...), n, prio)
	lower := append(record.AppendPendingKey(append([]byte(nil), sp.prefix...), n, prio, after), 0)
	err = sp.scanOrder(lower, record.UpperBound(prefix), limit, func(p *record.Key, value []byte) {
		readyAtMs, _ := record.ParseReadyAt(value)
		found = append(found, record.PendingEntry{PendingKey: record.PendingKey{Seq: p.Seq, ID: p.ID}, ReadyAtMs: readyAtMs})
	})
	return found, err
}

// ScanLimited reads up to limit tasks that wait for a concurrency key, from a place on, in
// their order. It panics unless the open batch is empty.
func (sp *Span) ScanLimited(q record.QueueKey, from *record.LimitedEntry, limit int) ([]record.LimitedEntry, error) {
	n := sp.published.numbers[q].n
	prefix := record.AppendLimited(append([]byte(nil), sp.prefix...), n, from.Key)
	first := *from
	first.ID = wire.TaskID{}
	return sp.scanLimited(record.AppendLimitedKey(append([]byte(nil), sp.prefix...), n, &first), prefix, limit)
}

// ScanAllLimited is ScanLimited over all concurrency keys of a queue.
func (sp *Span) ScanAllLimited(q record.QueueKey, limit int) ([]record.LimitedEntry, error) {
	prefix := record.AppendQueue(append([]byte(nil), sp.prefix...), sp.published.numbers[q].n, record.FamilyLimited)
	return sp.scanLimited(prefix, prefix, limit)
}

func (sp *Span) scanLimited(lower, prefix []byte, limit int) (found []record.LimitedEntry, err error) {
	sp.mustBeClosed()
	err = sp.scanOrder(lower, record.UpperBound(prefix), limit, func(p *record.Key, _ []byte) {
		found = append(found, record.LimitedEntry{
			Key: p.Name, LimitedPlace: record.LimitedPlace{Priority: p.Priority, PendingKey: record.PendingKey{Seq: p.Seq, ID: p.ID}},
		})
	})
	return found, err
}

// ScanTimed reads up to limit keys of the order of due times, or of when waiting tasks
// expire, strictly behind after. It panics unless the open batch is empty.
func (sp *Span) ScanTimed(q record.QueueKey, f record.Family, after record.TimedKey, limit int) (keys []record.TimedKey, err error) {
	err = sp.eachTimed(q, f, after, limit, func(k record.TimedKey, _ []byte) { keys = append(keys, k) })
	return keys, err
}

// ScanEnded is ScanTimed for the dead letters and for the other ended tasks. A value that
// cannot be decoded says nothing: the record does.
func (sp *Span) ScanEnded(q record.QueueKey, f record.Family, after record.TimedKey, limit int) (found []record.EndedEntry, err error) {
	if f == record.FamilyDone {
		sp.mustBeClosed()
		return sp.scanDone(sp.published.numbers[q].n, after, limit)
	}
	err = sp.eachTimed(q, f, after, limit, func(k record.TimedKey, value []byte) {
		ended, _ := record.ParseEnded(value)
		found = append(found, record.EndedEntry{TimedKey: k, Ended: ended})
	})
	return found, err
}

// FirstLease is the rank of the first id in progress that is not below watermark. It
// panics unless the open batch is empty.
func (sp *Span) FirstLease(q record.QueueKey, watermark uint64) (rank uint64, found bool, err error) {
	sp.mustBeClosed()
	err = sp.scanLeases(q, watermark, 1, func(p *record.Key, _ []byte) { rank, found = record.RankOf(p.ID), true })
	return rank, found, err
}

// ScanLeases reads up to limit ids in progress, from a rank on. It panics unless the
// open batch is empty.
func (sp *Span) ScanLeases(q record.QueueKey, watermark uint64, limit int) (ids []wire.TaskID, err error) {
	sp.mustBeClosed()
	err = sp.scanLeases(q, watermark, limit, func(p *record.Key, _ []byte) { ids = append(ids, p.ID) })
	return ids, err
}

func (sp *Span) scanLeases(q record.QueueKey, watermark uint64, limit int, take func(p *record.Key, value []byte)) error {
	n := sp.published.numbers[q].n
	lower := record.AppendLeaseWatermark(append([]byte(nil), sp.prefix...), n, watermark)
	upper := record.UpperBound(record.AppendQueue(append([]byte(nil), sp.prefix...), n, record.FamilyInProgress))
	return sp.scanOrder(lower, upper, limit, take)
}

func (sp *Span) eachTimed(q record.QueueKey, f record.Family, after record.TimedKey, limit int, take func(k record.TimedKey, value []byte)) error {
	sp.mustBeClosed()
	n := sp.published.numbers[q].n
	prefix := record.AppendQueue(append([]byte(nil), sp.prefix...), n, f)
	lower := append(record.AppendTimedKey(append([]byte(nil), sp.prefix...), n, f, after), 0)
	return sp.scanOrder(lower, record.UpperBound(prefix), limit, func(p *record.Key, value []byte) {
		take(record.TimedKey{AtMs: p.AtMs, ID: p.ID}, value)
	})
}

func (sp *Span) scanOrder(lower, upper []byte, limit int, take func(p *record.Key, value []byte)) error {
	if limit <= 0 {
		return nil
	}
	taken := 0
	return sp.view.scan(lower, upper, func(key, value []byte) (bool, error) {
		p, err := record.ParseKey(key)
		if err != nil {
			return false, &DamagedError{Key: append([]byte(nil), key...), Err: err}
		}
		take(&p, value)
		taken++
		return taken < limit, nil
	})
}
