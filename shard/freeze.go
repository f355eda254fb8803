package shard

import (
	"fmt"

	"codeq/record"
	"codeq/wire"
)

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
