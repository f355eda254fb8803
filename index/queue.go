package index

import (
	"fmt"

	"codeq/record"
	"codeq/wire"
)

// Queue is the order and the figures of one queue in one shard. It belongs to
// its Index and to the same goroutine. Keys are added when a task comes to a
// place and removed when it leaves; a key that is added twice or removed
// without being there is a broken invariant and panics as far as it can be
// seen from memory.
type Queue struct {
	index    *Index
	key      record.QueueKey
	counters record.Counters
	ready    [record.Priorities]run
	delayed  byTime
	expiring byTime

	// leasedGone and deadGone are how many have left these orders since their
	// watermarks were looked for.
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

// Counters is a copy of the figures and watermarks, as they are to be stored.
func (q *Queue) Counters() record.Counters { return q.counters }

// Done is how many tasks have ended other than as dead letters, and a lower bound
// of when, in Unix milliseconds. It copies nothing, as every end asks it.
func (q *Queue) Done() (count, watermarkMs int64) { return q.counters.Done, q.counters.DoneWatermarkMs }

// Dead is Done for the dead letters.
func (q *Queue) Dead() (count, watermarkMs int64) { return q.counters.Dead, q.counters.DeadWatermarkMs }

// HasReady reports that a task is ready, in memory or only in the store. It is
// asked at every turn of a grant, so it copies nothing.
func (q *Queue) HasReady() bool { return q.counters.ReadyTotal() > 0 }

// AddReady counts a task that became ready at readyAtMs, as a new one, a
// retried one or one that goes back to its old place.
func (q *Queue) AddReady(prio int, k record.PendingKey, readyAtMs int64) {
	q.add(&q.ready[prio], entry{place{k.Seq, k.ID}, readyAtMs})
}

// RemoveReady takes out a task that is no longer ready, whether memory has its
// key or only the store.
func (q *Queue) RemoveReady(prio int, k record.PendingKey) {
	q.remove(&q.ready[prio], place{k.Seq, k.ID})
}

// HeadReady is the first ready task: the lowest key of the highest priority
// that has any. ok is false when nothing is ready, and also when memory has no
// key of that priority: a refill comes first, or a lower priority would
// overtake, and it goes before all other refills.
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

// AddDelayed counts a task that waits for its due time, above 0.
func (q *Queue) AddDelayed(k record.TimedKey) {
	q.add(&q.delayed.run, entry{place: q.timedPlace(k)})
}

// RemoveDelayed takes out a task that no longer waits, whether memory has its
// key or only the store.
func (q *Queue) RemoveDelayed(k record.TimedKey) { q.remove(&q.delayed.run, q.timedPlace(k)) }

// AddExpiring counts a task that waits, ready or delayed, and expires at a time
// above 0.
func (q *Queue) AddExpiring(k record.TimedKey) {
	q.add(&q.expiring.run, entry{place: q.timedPlace(k)})
}

// RemoveExpiring takes out a task that waits no longer, whether memory has its key
// or only the store.
func (q *Queue) RemoveExpiring(k record.TimedKey) { q.remove(&q.expiring.run, q.timedPlace(k)) }

// timedPlace refuses times that have no place in an unsigned order.
func (q *Queue) timedPlace(k record.TimedKey) place {
	if k.AtMs <= 0 {
		panic(fmt.Sprintf("index: queue %v: time %d for task %s", q.key, k.AtMs, k.ID))
	}
	return place{uint64(k.AtMs), k.ID}
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

// RemoveLeased takes one off the tasks in progress.
func (q *Queue) RemoveLeased() {
	q.changing()
	q.decrement(&q.counters.InProgress, "in progress")
	q.leavesGap(&q.leasedGone, true)
}

// AdvanceLeaseWatermark says that a scan found no task in progress whose id is of a
// lower rank.
func (q *Queue) AdvanceLeaseWatermark(watermark uint64) {
	if watermark > q.counters.LeaseWatermark {
		q.changing()
		q.counters.LeaseWatermark = watermark
	}
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

// RemoveDead takes out a dead letter.
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

// AdvanceDeadWatermark says that a scan found no dead letter that ended before
// watermarkMs. Removals alone cannot know that: memory has none of these keys.
func (q *Queue) AdvanceDeadWatermark(watermarkMs int64) {
	q.raise(&q.counters.DeadWatermarkMs, watermarkMs)
}

// AdvanceFailedWatermark is AdvanceDeadWatermark for those with the cause wire.DeadFailed.
func (q *Queue) AdvanceFailedWatermark(watermarkMs int64) {
	q.raise(&q.counters.FailedWatermarkMs, watermarkMs)
}

// AddDone counts any other ended task, that ended at atMs.
func (q *Queue) AddDone(atMs int64) {
	q.changing()
	addEnded(&q.counters.Done, &q.counters.DoneWatermarkMs, atMs)
}

// RemoveDone takes out an ended task.
func (q *Queue) RemoveDone(k record.TimedKey) {
	q.changing()
	q.decrement(&q.counters.Done, "done")
	raiseIfNone(q.counters.Done, &q.counters.DoneWatermarkMs, k.AtMs)
}

// AdvanceDoneWatermark is AdvanceDeadWatermark for the other ended tasks.
func (q *Queue) AdvanceDoneWatermark(watermarkMs int64) {
	q.raise(&q.counters.DoneWatermarkMs, watermarkMs)
}

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

func (q *Queue) raise(watermarkMs *int64, to int64) {
	if to > *watermarkMs {
		q.changing()
		*watermarkMs = to
	}
}

func (q *Queue) decrement(count *int64, what string) {
	*count--
	if *count < 0 {
		panic(fmt.Sprintf("index: queue %v: %d tasks %s", q.key, *count, what))
	}
}

// changing puts the queue on the list of those whose figures must be written.
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
