package shardactor

import (
	"bytes"
	"cmp"
	"fmt"

	"codeq/store"
	"codeq/wire"
)

// maxRoundReaps bounds how many ended tasks one round removes. The rest is the
// next one, which lets the mailbox be looked at in between.
const maxRoundReaps = 256

// Retention is how long ended tasks stay, in milliseconds, where their queue
// does not say; 0 is for ever.
type Retention struct {
	DoneForMs int64
	DeadForMs int64
}

// look is one scan of the ended tasks of a queue. No key before floorMs is left
// once the round is over.
type look struct {
	queue   *queue
	place   wire.Location
	floorMs int64
	expired []store.TimedKey
	// sweep is the cleanup it is for, nil for retention.
	sweep *sweep
}

// retentionOf is how long tasks of a queue stay that ended in that place.
func (s *Shard) retentionOf(q *queue, place wire.Location) int64 {
	if place == wire.LocationDead {
		return cmp.Or(q.settings.DLQRetentionSeconds*1000, s.retention.DeadForMs)
	}
	return cmp.Or(q.settings.RetentionSeconds*1000, s.retention.DoneForMs)
}

// reapAtMs is when the next ended task of a queue may have to go, 0 for never.
// The floors it stands on may be too low, never too high.
func (s *Shard) reapAtMs(q *queue) int64 {
	c := q.index.Counters()
	var at int64
	if keep := s.retentionOf(q, wire.LocationNone); c.Done > 0 && keep > 0 {
		at = c.DoneFloorMs + keep
	}
	if keep := s.retentionOf(q, wire.LocationDead); c.Dead > 0 && keep > 0 && (at == 0 || c.DeadFloorMs+keep < at) {
		at = c.DeadFloorMs + keep
	}
	return at
}

// planReap puts a queue where it belongs among those with something to remove.
func (s *Shard) planReap(q *queue) { s.reaps.put(q, s.reapAtMs(q)) }

// findExpired reads which ended tasks have to go. Like refill it may only be
// done at the start of a round: a scan does not see the open batch.
func (s *Shard) findExpired() {
	clear(s.looks)
	s.looks = s.looks[:0]
	s.findSwept()
	if len(s.looks) > 0 {
		// What a cleanup found must not be found again.
		return
	}
	for left := maxRoundReaps; left > 0; {
		q := s.reaps.top()
		if q == nil || q.reapAtMs > s.now {
			return
		}
		for _, place := range []wire.Location{wire.LocationNone, wire.LocationDead} {
			if keep := s.retentionOf(q, place); keep > 0 && left > 0 {
				left -= s.scanEnded(q, place, s.now-keep, left)
			}
		}
		// Once a round is enough: what is found stays in the store until reap, and
		// what is left, for the next round.
		s.reaps.put(q, s.now+1)
	}
}

// scanEnded notes up to limit tasks of a queue that ended at or before a time,
// and says how many.
func (s *Shard) scanEnded(q *queue, place wire.Location, untilMs int64, limit int) int {
	l := look{queue: q, place: place}
	// Whatever is found, the queue gets its time anew; see reap.
	defer func() { s.looks = append(s.looks, l) }()
	c := q.index.Counters()
	count, floorMs, scan := c.Done, c.DoneFloorMs, s.span.ScanDone
	if place == wire.LocationDead {
		count, floorMs, scan = c.Dead, c.DeadFloorMs, s.span.ScanDead
	}
	if count == 0 || floorMs > untilMs {
		return 0
	}
	limit = int(min(int64(limit), count))
	keys, err := scan(q.key, justBefore(floorMs), limit)
	s.mustRead(err)
	if len(keys) == 0 {
		panic(fmt.Sprintf("shardactor: shard %d: queue %v has %d ended tasks from %d on, none is found", s.shard, q.key, count, floorMs))
	}
	for _, k := range keys {
		l.floorMs = k.AtMs
		if k.AtMs > untilMs {
			break
		}
		l.expired = append(l.expired, k)
	}
	return len(l.expired)
}

// justBefore is the last place before all that ended at a time.
func justBefore(atMs int64) store.TimedKey {
	k := store.TimedKey{AtMs: max(atMs-1, 0)}
	copy(k.ID[:], bytes.Repeat([]byte{0xff}, len(k.ID)))
	return k
}

// reap removes what findExpired noted, if it may still go: a message of this
// round may have moved a task on, or may keep it for longer.
func (s *Shard) reap() {
	for _, l := range s.looks {
		keep := s.retentionOf(l.queue, l.place)
		for _, k := range l.expired {
			if l.sweep == nil && (keep == 0 || k.AtMs+keep > s.now) {
				l.floorMs = min(l.floorMs, k.AtMs)
				continue
			}
			s.reapOne(l, k)
		}
		if l.place == wire.LocationDead {
			l.queue.index.RaiseDeadFloor(l.floorMs)
		} else {
			l.queue.index.RaiseDoneFloor(l.floorMs)
		}
		s.planReap(l.queue)
	}
	s.endSwept()
}

func (s *Shard) reapOne(l look, k store.TimedKey) {
	t, err := s.span.Task(k.ID)
	switch {
	case t == nil || s.unreadable(err):
		s.setEndedAside(l, k)
	case t.Location == l.place && t.EndedAtMs == k.AtMs:
		cause := CauseRetention
		if l.sweep != nil {
			l.sweep.deleted++
			cause = CauseCleanup
		}
		s.transition(t, move{to: gone, status: t.Status, cause: cause})
	}
}

// gone is where a task is of which nothing is kept.
const gone wire.Location = ""

// forget removes all that is kept of a task, and its key if that still points
// to it.
func (s *Shard) forget(t *store.TaskRecord) {
	batch := s.span.Batch()
	if t.IdempotencyKey != "" {
		id, found, err := s.span.IdempotencyKey(t.Queue(), t.IdempotencyKey)
		s.mustRead(err)
		if found && id == t.ID {
			batch.DeleteIdempotencyKey(t.Queue(), t.IdempotencyKey)
		}
	}
	batch.DeleteTask(t.ID)
}

// leaveEnded takes a task out of the ended ones.
func (s *Shard) leaveEnded(t *store.TaskRecord) {
	q, k := s.queueOf(t.Queue()), store.TimedKey{AtMs: t.EndedAtMs, ID: t.ID}
	t.EndedAtMs = 0
	if t.Location == wire.LocationDead {
		q.index.RemoveDead(k)
		s.span.Batch().DeleteDead(t.Queue(), k)
		return
	}
	q.index.RemoveDone(k)
	s.span.Batch().DeleteDone(t.Queue(), k)
}

// setEndedAside takes an ended task whose record cannot be read out of the way.
func (s *Shard) setEndedAside(l look, k store.TimedKey) {
	batch := s.span.Batch()
	if l.place == wire.LocationDead {
		l.queue.index.RemoveDead(k)
		batch.DeleteDead(l.queue.key, k)
	} else {
		l.queue.index.RemoveDone(k)
		batch.DeleteDone(l.queue.key, k)
	}
	s.mustRead(s.span.SetAside(k.ID))
}

// planReaps is when the next ended task has to go. It is later than now, so that
// the mailbox is looked at before; 0 is never.
func (s *Shard) planReaps() int64 {
	if len(s.sweeps) > 0 {
		return s.now + 1
	}
	if q := s.reaps.top(); q != nil {
		return max(q.reapAtMs, s.now+1)
	}
	return 0
}
