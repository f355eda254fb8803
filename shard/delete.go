package shard

import (
	"bytes"
	"fmt"
	"slices"

	"codeq/index"
	"codeq/record"
	"codeq/wire"
)

// A queue is deleted by a change of its settings, which marks it: from then on it
// takes no task, hands out none, and each shard removes what it has of it, a slice a
// round, whatever it is, as retention does with ended tasks. The mark is on disk, so
// a start goes on with it. A shard that has nothing left is asked to drop the mark
// with the other settings, the home last: as long as it is there, a start brings it
// to every shard again, and no task can have been made that it would take along.

// beingDeleted refuses what a queue that is deleted does not take.
const beingDeleted = "the queue is being deleted; once that is done its name makes a new queue"

// QueueDelete says what may be lost with a queue. Without Purge the queue must have
// no task, ended ones included; without CancelRunning none in progress.
type QueueDelete struct {
	Purge         bool
	CancelRunning bool
}

// mayDelete judges a queue by what this shard has of it, nil if it may go.
func (d *QueueDelete) mayDelete(q *queue) *wire.Error {
	c := q.index.Counters()
	switch {
	case !d.Purge && !c.IsZero():
		return wire.Refuse(wire.CodeQueueNotEmpty,
			"the queue has tasks, ended ones included; have them purged with it, or let them end and be removed first")
	case !d.CancelRunning && c.InProgress > 0:
		return wire.Refuse(wire.CodeQueueNotEmpty,
			"the queue has tasks in progress; wait for their end, or have them cancelled with it")
	}
	return nil
}

// noteDeleted puts a queue on the list of those to empty, when its settings say so.
func (s *Shard) noteDeleted(q *queue) {
	if q.settings.Deleting && !slices.Contains(s.deleting, q) {
		s.deleting = append(s.deleting, q)
	}
}

// findDeleted notes what is removed in this round of queues that are deleted, and
// says how many. Like refill it may only be done at the start of a round.
func (s *Shard) findDeleted() (found int) {
	for _, q := range s.deleting {
		found += s.findOpen(q, s.limits.Expiries-found)
		for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
			if found < s.limits.Expiries {
				found += s.scanEnded(q, place, s.now, s.limits.Expiries-found)
			}
		}
	}
	return found
}

// doomed is an entry of a task that goes with its queue.
type doomed struct {
	queue *queue
	id    wire.TaskID
	// prio and seq are those of a ready one, due is where another one waits for its
	// time; both are empty for one in progress.
	prio int
	seq  uint64
	due  index.Due
}

// findOpen notes up to limit tasks that have not ended.
func (s *Shard) findOpen(q *queue, limit int) int {
	c, before := q.index.Counters(), len(s.doomed)
	left := func(count int64) int { return int(min(count, int64(limit-(len(s.doomed)-before)))) }
	for prio := range c.Ready {
		found, err := s.span.ScanPending(q.key, prio, justBeforeSeq(c.ReadyFloor[prio]), left(c.Ready[prio]))
		s.mustRead(err)
		for i := range found {
			s.doomed = append(s.doomed, doomed{queue: q, id: found[i].ID, prio: prio, seq: found[i].Seq})
		}
	}
	delayed, err := s.span.ScanDelayed(q.key, justBefore(c.DelayedFloorMs), left(c.Delayed))
	s.mustRead(err)
	for _, k := range delayed {
		s.doomed = append(s.doomed, doomed{queue: q, id: k.ID, due: index.Due{Queue: q.index, Order: index.Delayed, Key: k}})
	}
	if c.ReadyTotal() == 0 && c.Delayed == 0 {
		// What is left here had a record that could not be read.
		expiring, err := s.span.ScanExpiring(q.key, justBefore(c.ExpiringFloorMs), left(c.Expiring))
		s.mustRead(err)
		for _, k := range expiring {
			s.doomed = append(s.doomed, doomed{queue: q, id: k.ID, due: index.Due{Queue: q.index, Order: index.Expiring, Key: k}})
		}
	}
	leased, err := s.span.ScanLeases(q.key, c.LeaseFloor, left(c.InProgress))
	s.mustRead(err)
	for _, id := range leased {
		s.doomed = append(s.doomed, doomed{queue: q, id: id})
	}
	return len(s.doomed) - before
}

// justBeforeSeq is the last place before all that have a sequence.
func justBeforeSeq(seq uint64) record.PendingKey {
	k := record.PendingKey{Seq: max(seq, 1) - 1}
	copy(k.ID[:], bytes.Repeat([]byte{0xff}, len(k.ID)))
	return k
}

// removeDoomed removes what findOpen noted, wherever it is by now: a message of this
// round may have moved it on. Whoever waits for its result hears that it ended.
func (s *Shard) removeDoomed() {
	for i := range s.doomed {
		d := &s.doomed[i]
		if s.span.Batch().Removed(d.id) {
			continue
		}
		t, e := s.find(d.id, d.queue.key.Tenant)
		if t == nil {
			s.setDoomedAside(d)
			continue
		}
		status := wire.StatusCancelled
		if t.Status.Terminal() {
			status = t.Status // It ended in this round.
		}
		s.transition(t, move{to: removed, status: status, cause: CauseDelete})
		s.tellWatchers(d.id)
		if e != nil {
			s.revoke(e, wire.RevokedCancelled)
		}
	}
}

// setDoomedAside takes a task whose record cannot be read out of the way. One in
// progress has its record in memory.
func (s *Shard) setDoomedAside(d *doomed) {
	switch {
	case d.seq > 0:
		s.setAside(d.queue, d.prio, record.PendingKey{Seq: d.seq, ID: d.id})
	case d.due.Queue != nil:
		s.setDueAside(d.due)
	default:
		panic(fmt.Sprintf("shard %d: task %v of %v is in progress and has no record", s.shard, d.id, d.queue.key))
	}
}

// drop is asked to forget the settings of a queue once nothing of it is left.
func (s *Shard) drop(m *Drop) { s.drops = append(s.drops, m) }

// answerDrops forgets the settings of the queues that are empty by now.
func (s *Shard) answerDrops() {
	left := s.drops[:0]
	for _, m := range s.drops {
		q := s.queues[m.Queue]
		if q != nil && q.settings.Deleting {
			if counters := q.index.Counters(); !counters.IsZero() {
				left = append(left, m)
				continue
			}
			s.forgetSettings(q)
		}
		s.tell(m.Sink, &Dropped{Ref: m.Ref})
	}
	clear(s.drops[len(left):])
	s.drops = left
}

func (s *Shard) forgetSettings(q *queue) {
	s.span.Batch().DeleteSettings(q.key)
	q.settings = record.Settings{}
	isIt := func(other *queue) bool { return other == q }
	s.deleting = slices.DeleteFunc(s.deleting, isIt)
	s.unsaved = slices.DeleteFunc(s.unsaved, isIt)
	s.mayBeEmpty(q)
}

// removesSome reports whether a queue that is deleted has anything left.
func (s *Shard) removesSome() bool {
	return slices.ContainsFunc(s.deleting, func(q *queue) bool {
		counters := q.index.Counters()
		return !counters.IsZero()
	})
}
