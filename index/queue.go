package index

import (
	"fmt"

	"codeq/record"
	"codeq/wire"
)

// Queue is the order and the figures of one queue in one shard. The goroutine of its
// Index uses it. A key is added when a task comes to a location and removed when it
// leaves. To add a key twice or to remove a missing one panics, if the keys in memory
// show it.
type Queue struct {
	index    *Index
	key      record.QueueKey
	counters record.Counters
	ready    [record.Priorities]run
	delayed  byTime
	expiring byTime

	// leasedGone and deadGone count the removals from these orders since their
	// watermarks were recomputed.
	leasedGone int
	deadGone   int

	dirty     bool
	forgotten bool
}

func newQueue(x *Index, key record.QueueKey) *Queue {
	q := &Queue{index: x, key: key}
	for prio := range q.ready {
		q.ready[prio].queue = q
		q.ready[prio].priority = prio
	}
	c := &q.counters
	q.delayed = byTime{order: Delayed, total: &c.Delayed, watermarkMs: &c.DelayedWatermarkMs}
	q.expiring = byTime{order: Expiring, total: &c.Expiring, watermarkMs: &c.ExpiringWatermarkMs}
	for _, o := range []*byTime{&q.delayed, &q.expiring} {
		o.queue, o.timed = q, o
	}
	return q
}

// Key names the queue.
func (q *Queue) Key() record.QueueKey { return q.key }

// Counters is a copy of the figures and watermarks for the store.
func (q *Queue) Counters() record.Counters { return q.counters }

// InProgress is how many tasks are in progress. It copies no counters, as Done.
func (q *Queue) InProgress() int64 { return q.counters.InProgress }

// Done is how many ended tasks are no dead letters, and a lower bound of their end
// times in Unix milliseconds. It runs at every end of a task, so it copies no counters.
func (q *Queue) Done() (count, watermarkMs int64) { return q.counters.Done, q.counters.DoneWatermarkMs }

// Dead is Done for the dead letters.
func (q *Queue) Dead() (count, watermarkMs int64) { return q.counters.Dead, q.counters.DeadWatermarkMs }

// HasReady reports whether a task is ready, in memory or only in the store. It runs at
// every turn of a grant, so it copies no counters.
func (q *Queue) HasReady() bool { return q.counters.ReadyTotal() > 0 }

// AddReady adds a task that became ready at readyAtMs: a new one, a retried one, or
// one that goes back to its old sequence.
func (q *Queue) AddReady(prio int, k record.PendingKey, readyAtMs int64) {
	q.add(&q.ready[prio], entry{place{k.Seq, k.ID}, readyAtMs})
}

// RemoveReady removes a task, whether its key is in memory or only in the store.
func (q *Queue) RemoveReady(prio int, k record.PendingKey) {
	q.remove(&q.ready[prio], place{k.Seq, k.ID})
}

// HeadReady returns the first ready task: the lowest key of the highest priority that
// has one. ok is false if no task is ready, or if the keys of that priority are all in
// the store: a lower priority must not overtake, so the caller waits, and that
// priority gets the next refill.
func (q *Queue) HeadReady() (prio int, k record.PendingKey, ok bool) {
	for prio := record.Priorities - 1; prio >= 0; prio-- {
		if q.counters.Ready[prio] == 0 {
			continue
		}
		r := &q.ready[prio]
		if r.len() == 0 {
			q.index.refills.hurry(r)
			return 0, record.PendingKey{}, false
		}
		return prio, record.PendingKey{Seq: r.first().rank, ID: r.first().id}, true
	}
	return 0, record.PendingKey{}, false
}

// AddDelayed adds a task that waits for its due time, above 0.
func (q *Queue) AddDelayed(k record.TimedKey) {
	q.add(&q.delayed.run, entry{place: q.timedPlace(k)})
}

// RemoveDelayed removes a task, whether its key is in memory or only in the store.
func (q *Queue) RemoveDelayed(k record.TimedKey) { q.remove(&q.delayed.run, q.timedPlace(k)) }

// AddExpiring adds a ready or delayed task that expires at a time above 0.
func (q *Queue) AddExpiring(k record.TimedKey) {
	q.add(&q.expiring.run, entry{place: q.timedPlace(k)})
}

// RemoveExpiring removes a task, whether its key is in memory or only in the store.
func (q *Queue) RemoveExpiring(k record.TimedKey) { q.remove(&q.expiring.run, q.timedPlace(k)) }

// timedPlace panics unless the time is above 0: ranks are unsigned, and a watermark of
// 0 means none.
func (q *Queue) timedPlace(k record.TimedKey) place {
	if k.AtMs <= 0 {
		panic(fmt.Sprintf("index: queue %v: time %d for task %s", q.key, k.AtMs, k.ID))
	}
	return place{uint64(k.AtMs), k.ID}
}

// Waiting is how many tasks wait in the queue, and the bytes of their payloads.
func (q *Queue) Waiting() (tasks, bytes int64) { return q.counters.Waiting(), q.counters.WaitingBytes }

// AddWaitingBytes counts payloads of tasks that begin to wait, or with a minus of tasks that
// cease to.
func (q *Queue) AddWaitingBytes(bytes int64) {
	q.changing()
	q.counters.WaitingBytes += bytes
}

// AddFileBytes counts files of tasks, or with a minus files that go.
func (q *Queue) AddFileBytes(bytes int64) {
	q.changing()
	q.counters.FileBytes += bytes
}

// TakeFileBytes takes what is left of a queue without a task: files of tasks that could not be read.
func (q *Queue) TakeFileBytes() (bytes int64) {
	bytes, q.counters.FileBytes = q.counters.FileBytes, 0
	return bytes
}

// AddLimited counts a task that waits for its concurrency key. No window is over these:
// their owner reads the first of a key when it needs it.
func (q *Queue) AddLimited() {
	q.changing()
	q.counters.Limited++
}

// RemoveLimited counts one less.
func (q *Queue) RemoveLimited() {
	q.changing()
	q.decrement(&q.counters.Limited, "limited")
}

// AddLeased counts a task that went in progress.
func (q *Queue) AddLeased(id wire.TaskID) {
	q.changing()
	c := &q.counters
	if rank := record.RankOf(id); c.InProgress == 0 || rank < c.LeaseWatermark {
		c.LeaseWatermark = rank
	}
	c.InProgress++
}

// RemoveLeased counts a task that is no longer in progress.
func (q *Queue) RemoveLeased() {
	q.changing()
	q.decrement(&q.counters.InProgress, "in progress")
	q.leavesGap(&q.leasedGone, true)
}

// AdvanceLeaseWatermark sets the watermark after a scan that found no task in progress
// with an id of a lower rank. A lower one than the present changes nothing.
func (q *Queue) AdvanceLeaseWatermark(rank uint64) {
	advance(q, &q.counters.LeaseWatermark, rank)
}

// Failed is Done for the dead letters with the cause wire.DeadFailed.
func (q *Queue) Failed() (count, watermarkMs int64) {
	return q.counters.DeadBy[wire.DeadFailed], q.counters.FailedWatermarkMs
}

// AddDead counts a dead letter that ended at atMs.
func (q *Queue) AddDead(atMs int64, cause wire.DeadCause) {
	q.changing()
	c := &q.counters
	addEnded(&c.Dead, &c.DeadWatermarkMs, atMs)
	if cause == wire.DeadFailed {
		addEnded(&c.DeadBy[cause], &c.FailedWatermarkMs, atMs)
		return
	}
	c.DeadBy[cause]++
}

// RemoveDead counts a dead letter less.
func (q *Queue) RemoveDead(k record.TimedKey, cause wire.DeadCause) {
	q.changing()
	c := &q.counters
	q.decrement(&c.Dead, "dead")
	raiseIfNone(c.Dead, &c.DeadWatermarkMs, k.AtMs)
	q.decrement(&c.DeadBy[cause], "dead because of "+cause.String())
	if cause == wire.DeadFailed {
		raiseIfNone(c.DeadBy[cause], &c.FailedWatermarkMs, k.AtMs)
	}
	q.leavesGap(&q.deadGone, false)
}

// AdvanceDeadWatermark sets the watermark after a scan that found no dead letter which
// ended before atMs. Removals do not advance it: these keys are only in the store. An
// earlier time than the present one changes nothing.
func (q *Queue) AdvanceDeadWatermark(atMs int64) { advance(q, &q.counters.DeadWatermarkMs, atMs) }

// AdvanceFailedWatermark is AdvanceDeadWatermark for those with the cause wire.DeadFailed.
func (q *Queue) AdvanceFailedWatermark(atMs int64) { advance(q, &q.counters.FailedWatermarkMs, atMs) }

// AddDone counts a task that ended at atMs and is no dead letter.
func (q *Queue) AddDone(atMs int64) {
	q.changing()
	addEnded(&q.counters.Done, &q.counters.DoneWatermarkMs, atMs)
}

// RemoveDone counts an ended task less.
func (q *Queue) RemoveDone(k record.TimedKey) {
	q.changing()
	q.decrement(&q.counters.Done, "done")
	raiseIfNone(q.counters.Done, &q.counters.DoneWatermarkMs, k.AtMs)
}

// AdvanceDoneWatermark is AdvanceDeadWatermark for the other ended tasks.
func (q *Queue) AdvanceDoneWatermark(atMs int64) { advance(q, &q.counters.DoneWatermarkMs, atMs) }

func addEnded(count, watermarkMs *int64, atMs int64) {
	if *count == 0 || atMs < *watermarkMs {
		*watermarkMs = atMs
	}
	*count++
}

func raiseIfNone(count int64, watermarkMs *int64, atMs int64) {
	if count == 0 {
		*watermarkMs = atMs
	}
}

func advance[T int64 | uint64](q *Queue, watermark *T, to T) {
	if to > *watermark {
		q.changing()
		*watermark = to
	}
}

func (q *Queue) decrement(count *int64, what string) {
	*count--
	if *count < 0 {
		panic(fmt.Sprintf("index: queue %v: %d tasks %s", q.key, *count, what))
	}
}

// changing notes that the figures of the queue must be written.
func (q *Queue) changing() {
	if q.forgotten {
		panic(fmt.Sprintf("index: queue %v was forgotten and is used", q.key))
	}
	if q.dirty {
		return
	}
	q.dirty = true
	q.index.dirty = append(q.index.dirty, q)
}
