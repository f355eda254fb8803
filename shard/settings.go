package shard

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"codeq/index"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Settings of queues: the home shard decides a change and the others copy it. A
// change may put a spread queue into one order, or delete a queue.

// configure decides a change of settings in the home shard of the queue. A change
// without a difference makes no new version; its answer has the settings in force,
// and the asker copies them to the other shards again.
func (s *Shard) configure(m *Configure) {
	q := s.queueOf(m.Queue)
	next := q.settings
	if q.settings.Deleting {
		// A second copy could restore the mark in a shard that has dropped it.
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeQueueDeleted, beingDeleted)
		return
	}
	if d := m.Change.Delete; d != nil {
		if refusal := d.mayDelete(q); refusal != nil {
			s.tell(m.Sink, &Refused{Ref: m.Ref, Err: refusal})
			s.mayBeEmpty(q)
			return
		}
		next.Paused, next.Deleting = true, true
	}
	if m.Change.Paused != nil {
		next.Paused = *m.Change.Paused
	}
	if m.Change.Settings != nil {
		next.QueueSettings = *m.Change.Settings
	}
	if next != q.settings || next.Version == 0 {
		next.Version++
		s.applySettings(q, next)
	}
	s.tell(m.Sink, &Configured{Ref: m.Ref, Settings: next})
}

// applySettings replaces the settings of a queue.
func (s *Shard) applySettings(q *queue, next record.Settings) {
	before := q.settings.PerKey
	q.settings = next
	s.span.Batch().PutSettings(q.key, &next)
	s.setLimiter(q)
	s.setPerKey(q, before)
	s.joinRings(q)
	s.planRemoval(q)
	s.noteDeleted(q)
}

// copySettings applies the settings that the home of a queue has decided, unless
// the shard has newer ones.
func (s *Shard) copySettings(m *CopySettings) {
	q := s.queueOf(m.Queue)
	if m.Settings.Version > q.settings.Version {
		s.applySettings(q, m.Settings)
	}
	if m.Thaw {
		s.thaw(q)
	}
	s.tell(m.Sink, &Configured{Ref: m.Ref, Settings: q.settings})
}

// restoreSettings sets the settings that recovery found, before the first grant.
func (s *Shard) restoreSettings(found []store.SettingsState) {
	for i := range found {
		q := s.queueOf(found[i].Key)
		q.settings = found[i].Settings
		q.rateSinceMs = s.now
		s.setLimiter(q)
		s.noteDeleted(q)
		if found[i].Unsaved {
			s.unsaved = append(s.unsaved, q)
		}
	}
}

// saveSettings writes the settings that recovery copied from another shard.
func (s *Shard) saveSettings() {
	if len(s.unsaved) == 0 || s.space >= store.OnlyDelete {
		return
	}
	for _, q := range s.unsaved {
		s.span.Batch().PutSettings(q.key, &q.settings)
	}
	s.unsaved = nil
}

const (
	// notEmpty refuses to put a queue with tasks into one order.
	notEmpty = "a spread queue can be put into one order only while no shard but its home holds a task of it, " +
		"ended ones included, and another does; let them end and remove them with POST /v1/codeq/admin/tasks/cleanup"

	// inOneShard refuses a task that was routed to another shard than the home just
	// before its queue was put into one order. A retry is routed to the home.
	inOneShard = "the queue is being put into one order; post the task again after a second"
)

// acceptsNew reports whether this shard may make a new task of the queue: the home
// always, another shard while the queue is spread and not frozen there. The shard
// decides by its own copy of the settings, since those of the router may be older.
func (s *Shard) acceptsNew(m *Enqueue, key record.QueueKey, q *queue) bool {
	here := false
	if q != nil && q.settings.Deleting {
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeQueueDeleted, beingDeleted)
		return false
	}
	if q == nil {
		here = wire.ShardOfQueue(key.Tenant, key.Command, s.shards) == s.shard
	} else {
		here = q.atHome || q.settings.Spread && q.freezes == 0
	}
	if !here {
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeOverloaded, inOneShard)
	}
	return here
}

// freeze answers Frozen if the queue has no task in this shard, and refuses new
// ones until the CopySettings of the same change thaws it. A task on its way to
// this shard arrives before Freeze, and is counted, or after it, and is refused. So
// when all others are frozen, the home knows that it has every task of the queue.
func (s *Shard) freeze(m *Freeze) {
	q := s.queueOf(m.Queue)
	counters := q.index.Counters()
	switch {
	case m.Delete != nil && !q.settings.Deleting:
		if refusal := m.Delete.mayDelete(q); refusal != nil {
			s.tell(m.Sink, &Refused{Ref: m.Ref, Err: refusal})
			s.mayBeEmpty(q)
			return
		}
	case m.Delete == nil && !counters.IsZero():
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeQueueNotEmpty, notEmpty)
		return
	}
	q.freezes++
	s.tell(m.Sink, &Frozen{Ref: m.Ref})
}

// thaw ends one freeze.
func (s *Shard) thaw(q *queue) {
	q.freezes--
	if q.freezes < 0 {
		panic(fmt.Sprintf("shard %d: queue %v has %d freezes", s.shard, q.key, q.freezes))
	}
	s.joinRings(q)
	s.mayBeEmpty(q)
}

// A change of settings marks a queue as deleted. From then on each shard refuses
// new tasks of the queue, grants none, and removes all of its tasks, at most
// limits.Removals a round. The mark is on disk, so a start continues the removal.
// Drop then asks each shard to delete the mark and the other settings once it has
// no task left, the home last: while the home has the mark, a start copies it to
// every shard again, and no task can be made that this would delete.

// beingDeleted refuses new tasks and changes while a queue is being deleted.
const beingDeleted = "the queue is being deleted; once that is done its name makes a new queue"

// QueueDelete says which tasks may be deleted with the queue. Without Purge the
// queue must have no task, not even an ended one; without CancelRunning it must
// have none in progress.
type QueueDelete struct {
	Purge         bool
	CancelRunning bool
}

// mayDelete returns why the tasks in this shard forbid the deletion, nil if they do
// not.
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

// noteDeleted adds a queue to deleting if its settings have the mark.
func (s *Shard) noteDeleted(q *queue) {
	if q.settings.Deleting && !slices.Contains(s.deleting, q) {
		s.deleting = append(s.deleting, q)
	}
}

// findDeleted reads which tasks of deleted queues this round removes, and returns
// how many. It runs at the start of a round only, like refill.
func (s *Shard) findDeleted() (found int) {
	for _, q := range s.deleting {
		found += s.findOpen(q, s.limits.Removals-found)
		for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
			if found < s.limits.Removals {
				found += s.scanEnded(q, place, s.now, s.limits.Removals-found)
			}
		}
	}
	return found
}

// doomed is an entry of a task that is deleted with its queue.
type doomed struct {
	queue *queue
	id    wire.TaskID
	// prio and seq are set for a ready task, and key too if it waits for that; due is set for
	// a delayed or expiring one; a task in progress has none of them.
	prio int
	seq  uint64
	key  string
	due  index.Due
}

// findOpen adds up to limit tasks that have not ended to doomed.
func (s *Shard) findOpen(q *queue, limit int) int {
	c, before := q.index.Counters(), len(s.doomed)
	left := func(count int64) int { return int(min(count, int64(limit-(len(s.doomed)-before)))) }
	for prio := range c.Ready {
		found, err := s.span.ScanPending(q.key, prio, justBeforeSeq(c.ReadyWatermark[prio]), left(c.Ready[prio]))
		s.mustRead(err)
		for i := range found {
			s.doomed = append(s.doomed, doomed{queue: q, id: found[i].ID, prio: prio, seq: found[i].Seq})
		}
	}
	limited, err := s.span.ScanAllLimited(q.key, left(c.Limited))
	s.mustRead(err)
	for i := range limited {
		e := &limited[i]
		s.doomed = append(s.doomed, doomed{queue: q, id: e.ID, prio: e.Priority, seq: e.Seq, key: e.Key})
	}
	delayed, err := s.span.ScanTimed(q.key, record.FamilyDelayed, justBefore(c.DelayedWatermarkMs), left(c.Delayed))
	s.mustRead(err)
	for _, k := range delayed {
		s.doomed = append(s.doomed, doomed{queue: q, id: k.ID, due: index.Due{Queue: q.index, Order: index.Delayed, Key: k}})
	}
	if c.ReadyTotal() == 0 && c.Limited == 0 && c.Delayed == 0 {
		// Expiring entries that are left now belong to records that could not be
		// read.
		expiring, err := s.span.ScanTimed(q.key, record.FamilyExpiring, justBefore(c.ExpiringWatermarkMs), left(c.Expiring))
		s.mustRead(err)
		for _, k := range expiring {
			s.doomed = append(s.doomed, doomed{queue: q, id: k.ID, due: index.Due{Queue: q.index, Order: index.Expiring, Key: k}})
		}
	}
	leased, err := s.span.ScanLeases(q.key, c.LeaseWatermark, left(c.InProgress))
	s.mustRead(err)
	for _, id := range leased {
		s.doomed = append(s.doomed, doomed{queue: q, id: id})
	}
	return len(s.doomed) - before
}

// justBeforeSeq is the greatest key below those of a sequence.
func justBeforeSeq(seq uint64) record.PendingKey {
	k := record.PendingKey{Seq: max(seq, 1) - 1}
	copy(k.ID[:], bytes.Repeat([]byte{0xff}, len(k.ID)))
	return k
}

// removeDoomed removes the tasks that findOpen read, wherever a message of this
// round has moved them, and tells their watchers that they ended.
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
		s.transition(t, move{to: removed, status: status, cause: record.CauseDelete})
		s.tellWatchers(d.id)
		if e != nil {
			s.revoke(e, wire.RevokedCancelled)
		}
	}
}

// setDoomedAside deletes the entry of a task whose record cannot be read. A task in
// progress has its record in memory.
func (s *Shard) setDoomedAside(d *doomed) {
	switch place := (record.PendingKey{Seq: d.seq, ID: d.id}); {
	case d.key != "":
		s.quarantineLimited(d.queue, &record.LimitedEntry{Key: d.key, LimitedPlace: record.LimitedPlace{Priority: d.prio, PendingKey: place}})
	case d.seq > 0:
		s.quarantineReady(d.queue, d.prio, place)
	case d.due.Queue != nil:
		s.quarantineDue(d.due)
	default:
		panic(fmt.Sprintf("shard %d: task %v of %v is in progress and has no record", s.shard, d.id, d.queue.key))
	}
}

// answerDrops forgets the settings of queues that have no task any more, and answers
// their Drops.
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
	s.setLimiter(q)
	isIt := func(other *queue) bool { return other == q }
	s.deleting = slices.DeleteFunc(s.deleting, isIt)
	s.unsaved = slices.DeleteFunc(s.unsaved, isIt)
	s.mayBeEmpty(q)
}

// deletionHasTasks reports whether a queue being deleted has tasks; a round then follows at once.
func (s *Shard) deletionHasTasks() bool {
	return slices.ContainsFunc(s.deleting, func(q *queue) bool {
		counters := q.index.Counters()
		return !counters.IsZero()
	})
}

// Effective returns the settings in force: a zero becomes the server's default. A
// retention that stays zero is for ever.
func (r Retention) Effective(set wire.QueueSettings) wire.QueueSettings {
	set.MaxAttempts = cmp.Or(set.MaxAttempts, wire.DefaultMaxAttempts)
	set.LeaseSeconds = cmp.Or(set.LeaseSeconds, wire.DefaultLeaseSeconds)
	set.Backoff = backoffInForce(set.Backoff)
	set.Target = set.Target.InForce()
	set.RetentionSeconds = cmp.Or(set.RetentionSeconds, wholeSeconds(r.DoneForMs))
	set.DLQRetentionSeconds = cmp.Or(set.DLQRetentionSeconds, wholeSeconds(r.DeadForMs))
	return set
}
