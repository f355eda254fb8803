package shard

import (
	"slices"

	"codeq/store"
	"codeq/wire"
)

// A queue may have limits over all shards: how many of its tasks are in progress, and
// how many start in a second. They are in a limiter, which the shards share. Before a
// grant a shard needs a place of the limiter, which the delivery keeps until its end is
// durable, and a start.

// Limiter is the limits of one queue, as one shard uses them. credit.Window and
// credit.Rate implement it. Its methods may be called from any goroutine, and none
// blocks. As a sink it takes Freed.
type Limiter interface {
	Sink
	// Take takes a place, or notes that the shard waits for one: HandedPlaces brings
	// it. Hold takes places for what is in progress already. OthersWait reports whether
	// another shard waits, InFlight how many places are taken.
	Take(shard, payloadBytes int) bool
	Hold(places int)
	OthersWait(shard int) bool
	InFlight() int
	// InDebt reports that more are taken than there are, since the limit shrank.
	InDebt() bool
	// Start takes a start and returns 0, or the time of the next one. Unstart gives one
	// back.
	Start(nowMs int64) (againAtMs int64)
	Unstart()
	// Set sets both limits; 0 is none. Only the home of the queue calls it.
	Set(maxInProgress, startsPerSecond int, nowMs int64)
}

// limited is what a queue has of its limiter in this shard.
type limited struct {
	// limiter is nil for a queue without limits.
	limiter Limiter
	// places are those that the shard has: one for each task in progress, and for a
	// moment those of deliveries that have ended and those that HandedPlaces brought.
	places int64
	// started are starts that no grant has used yet.
	started int
	// inRow is how many places of ended deliveries were used again in a row while
	// another shard waited.
	inRow int
	// shut: the limiter had no place or no start; the queue has no turns until it opens.
	// opensAtMs is the time of the next start, 0 if it lacks a place.
	shut      bool
	opensAtMs int64
	// listed: the queue is in Shard.limited.
	listed bool
}

// spare are the places that no task in progress has.
func (q *queue) spare() int64 {
	return q.places - q.index.InProgress()
}

// setLimiter gives the queue its limiter, or takes it away, as its settings say.
func (s *Shard) setLimiter(q *queue) {
	set := &q.settings
	is := set.MaxInProgress != 0 || set.StartsPerSecond != 0
	if is && q.limiter == nil {
		q.limiter = s.limiterOf(q.key)
		q.places = -q.spare()
		q.limiter.Hold(int(q.places))
	}
	if q.limiter != nil && q.atHome {
		q.limiter.Set(set.MaxInProgress, set.StartsPerSecond, s.now)
	}
	if !is && q.limiter != nil {
		s.tell(q.limiter, &Freed{Places: int(q.places)})
		q.limited = limited{listed: q.listed}
	}
	q.shut, q.opensAtMs = false, 0
}

// mayStart takes what a grant of the queue needs of its limiter. Without it the queue has
// no turns until it opens. Places are used again within a shard, without a sync
// between, unless others have waited for too long.
func (s *Shard) mayStart(q *queue) bool {
	if q.limiter == nil {
		return true
	}
	s.noteLimited(q)
	reuses := q.spare() > 0 && !q.limiter.InDebt()
	switch {
	case reuses && !q.limiter.OthersWait(s.shard):
		q.inRow = 0
	case reuses && q.inRow < s.limits.ReusedInRow:
		q.inRow++
	case q.limiter.Take(s.shard, 0):
		q.places++
		q.inRow = 0
	default:
		q.shut, q.opensAtMs = true, 0
		return false
	}
	if q.started > 0 {
		return true
	}
	if at := q.limiter.Start(s.now); at != 0 {
		q.shut, q.opensAtMs = true, at
		s.slowed = append(s.slowed, q)
		return false
	}
	q.started = 1
	return true
}

// noteLimited notes a queue that may have places or starts left at the end of the round.
func (s *Shard) noteLimited(q *queue) {
	if !q.listed {
		q.listed = true
		s.limited = append(s.limited, q)
	}
}

// freePlace notes that a delivery of the queue has ended: another may begin.
func (s *Shard) freePlace(q *queue) {
	if q.limiter == nil {
		return
	}
	s.noteLimited(q)
	s.open(q)
}

// open lets the queue have turns again, unless it waits for its next start.
func (s *Shard) open(q *queue) {
	if q.opensAtMs <= s.now {
		q.shut = false
		s.joinRings(q)
	}
}

// handedPlaces are places that this shard waited for.
func (s *Shard) handedPlaces(m *HandedPlaces) {
	q := s.queues[m.Queue]
	if q == nil || q.limiter == nil {
		s.tell(m.Limiter, &Freed{Places: m.Places})
		return
	}
	q.places += int64(m.Places)
	s.freePlace(q)
}

// openSlowed opens the queues whose next start may be now.
func (s *Shard) openSlowed() {
	s.slowed = slices.DeleteFunc(s.slowed, func(q *queue) bool {
		if q.opensAtMs <= s.now {
			s.open(q)
			return true
		}
		return false
	})
}

// nextStartMs is when the first of them opens, or a concurrency key may start its next
// task, 0 for none.
func (s *Shard) nextStartMs() int64 {
	_, at := s.keyStarts.Top()
	for _, q := range s.slowed {
		if at == 0 || q.opensAtMs < at {
			at = q.opensAtMs
		}
	}
	return at
}

// returnPlaces gives back what no grant of the round has used: starts at once, places
// when the batch is durable in which their deliveries ended. A queue that only lacks a
// credit keeps one place until it has it, or no task for it. A shard without a place
// takes no credit. If it kept a credit and another shard a place, neither would grant;
// if both gave back what they have, place and credit could go round and never meet.
func (s *Shard) returnPlaces() {
	keeps := s.limited[:0]
	for _, q := range s.limited {
		if q.limiter == nil {
			q.listed = false
			continue
		}
		for ; q.started > 0; q.started-- {
			q.limiter.Unstart()
		}
		n := q.spare()
		if n > 0 && q.hasTurns() && s.space < store.NoGrant {
			keeps = append(keeps, q)
			n--
		} else {
			q.listed = false
		}
		if n > 0 {
			q.places -= n
			q.inRow = 0
			s.tell(q.limiter, &Freed{Places: int(n)})
		}
	}
	clear(s.limited[len(keeps):])
	s.limited = keeps
}

// addLimit says which limit keeps the queue from its next grant.
func (s *Shard) addLimit(q *queue, w *wire.Waiting) {
	w.Reason, w.Limit, w.Of = wire.WaitingLimit, wire.LimitInProgress, int64(q.settings.MaxInProgress)
	w.Used = int64(q.limiter.InFlight())
	if q.opensAtMs != 0 {
		w.Limit, w.Used, w.Of = wire.LimitStarts, 0, int64(q.settings.StartsPerSecond)
	}
}
