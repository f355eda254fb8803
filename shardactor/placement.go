package shardactor

import (
	"codeq/store"
	"codeq/wire"
)

// belongsHere says whether a new task may be made in this shard. The shard
// judges that by its own copy of the settings, whatever whoever routed the task
// knew: one that belongs elsewhere goes back to the router, with the settings
// that say so, and one whose place is being decided waits.
func (s *Shard) belongsHere(m *Enqueue, key store.QueueKey) bool {
	q := s.queues[key]
	switch {
	case q == nil && m.RoutedBy == 0:
		// Nothing was ever set, so it was routed as it should.
		return true
	case q == nil || q.freezes > 0 || m.RoutedBy > q.settings.Version:
		s.park(m)
	case !s.placedHere(q, m):
		s.tell(s.router, &Misplaced{Enqueue: m, Settings: q.settings})
	default:
		return true
	}
	return false
}

// placedHere says whether the settings of a queue put a new task into this
// shard: those of an ordered one all go to its home, others to the place of their
// key, or anywhere without one.
func (s *Shard) placedHere(q *queue, m *Enqueue) bool {
	switch {
	case q.settings.Ordered:
		return q.atHome
	case q.settings.Version == 0 || m.IdempotencyKey == "":
		return true
	}
	return wire.ShardOfKey(m.Tenant, m.Command, m.IdempotencyKey, s.shards) == s.shard
}

// park lets a new task wait until the settings of its queue are known.
func (s *Shard) park(m *Enqueue) {
	if len(s.parked) >= s.limits.Parked || s.parkedBytes+len(m.Payload) > s.limits.ParkedBytes {
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeOverloaded,
			"the settings of the queue are being changed and too many tasks wait for that; post the task again after a second")
		return
	}
	s.parked = append(s.parked, m)
	s.parkedBytes += len(m.Payload)
}

// unpark judges the tasks of a queue that wait once more, in their order.
func (s *Shard) unpark(key store.QueueKey) {
	waiting := s.parked
	s.parked, s.parkedBytes = nil, 0
	for _, m := range waiting {
		if m.Command == key.Command && m.Tenant == key.Tenant {
			s.enqueue(m)
			continue
		}
		s.parked = append(s.parked, m)
		s.parkedBytes += len(m.Payload)
	}
}

// TurnAway refuses the tasks that still wait when the shard has run for the last
// time: the change they wait for does not come to its end any more.
func (s *Shard) TurnAway() []Addressed {
	s.out = Outcome{}
	for _, m := range s.parked {
		s.tell(m.Sink, &Refused{Ref: m.Ref, Err: stoppingError()})
	}
	s.parked, s.parkedBytes = nil, 0
	return s.out.Effects
}
