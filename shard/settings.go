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

// The settings of queues: the home decides and the others copy; a queue may be put
// into one order, or deleted.

// configure decides a change of settings in the home shard of the queue. A
// change that changes nothing makes no new version; its asker learns what holds
// all the same, and brings it to the other shards again.
func (s *Shard) configure(m *Configure) {
	q := s.queueOf(m.Queue)
	next := q.settings
	if q.settings.Deleting {
		// To copy it once more might bring the mark back to a shard that has dropped it.
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

// applySettings gives a queue other settings.
func (s *Shard) applySettings(q *queue, next record.Settings) {
	q.settings = next
	s.span.Batch().PutSettings(q.key, &next)
	s.ready(q)
	s.planExpiry(q)
	s.noteDeleted(q)
}

// copySettings takes over what the home of a queue has decided. A copy that
// comes late, behind a newer one, changes nothing.
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

// restoreSettings takes what recovery found, before anything is granted.
func (s *Shard) restoreSettings(found []store.SettingsState) {
	for i := range found {
		q := s.queueOf(found[i].Key)
		q.settings = found[i].Settings
		s.noteDeleted(q)
		if found[i].Unsaved {
			s.unsaved = append(s.unsaved, q)
		}
	}
}

// saveSettings writes the settings that recovery took from another shard.
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
	// notEmpty is why a queue stays spread.
	notEmpty = "a spread queue can be put into one order only while no shard but its home holds a task of it, " +
		"ended ones included, and another does; let them end and remove them with POST /v1/codeq/admin/tasks/cleanup"

	// inOneShard refuses a task that was sent away from home just before its queue
	// was put into one order. Repeated, it goes home.
	inOneShard = "the queue is being put into one order; post the task again after a second"
)

// acceptsNew says whether a new task of the queue may be made in this shard: at home
// always, elsewhere while the queue is spread and no change needs it empty here.
// The shard judges that by its own copy of the settings, whatever the router knew
// when it drew the id.
func (s *Shard) acceptsNew(m *Enqueue, key record.QueueKey) bool {
	q, here := s.queues[key], false
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

// freeze answers that the queue has no task in this shard, and keeps it so: new
// ones are refused from here on, until the same change brings its copy of the
// settings, or the word that it failed. A task that was under way to this shard
// comes before the question, and counts, or behind it, and is refused. So the home
// may decide that all tasks of the queue lie with it.
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

// thaw takes one freeze back.
func (s *Shard) thaw(q *queue) {
	q.freezes--
	if q.freezes < 0 {
		panic(fmt.Sprintf("shard %d: queue %v has %d freezes", s.shard, q.key, q.freezes))
	}
	s.ready(q)
	s.mayBeEmpty(q)
}

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

// Effective is what holds for a queue with these settings: the server's default for
// each that is zero. A retention that stays zero has no end.
func (r Retention) Effective(set wire.QueueSettings) wire.QueueSettings {
	set.MaxAttempts = cmp.Or(set.MaxAttempts, wire.DefaultMaxAttempts)
	set.LeaseSeconds = cmp.Or(set.LeaseSeconds, wire.DefaultLeaseSeconds)
	set.Backoff = backoffInForce(set.Backoff)
	set.RetentionSeconds = cmp.Or(set.RetentionSeconds, wholeSeconds(r.DoneForMs))
	set.DLQRetentionSeconds = cmp.Or(set.DLQRetentionSeconds, wholeSeconds(r.DeadForMs))
	return set
}
