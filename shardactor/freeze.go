package shardactor

import (
	"fmt"

	"codeq/wire"
)

// notEmpty is why a queue keeps its order, or goes without one.
const notEmpty = "ordered can be changed only while the queue has no task, ended ones included, and it has some; " +
	"let them end and remove them with POST /v1/codeq/admin/tasks/cleanup"

// freeze answers that the queue has no task in this shard, and keeps it so: new
// ones wait from here on, until the same change brings its copy of the settings,
// or the word that it failed. So the home may decide over a queue that is empty
// everywhere.
func (s *Shard) freeze(m *Freeze) {
	q := s.queueOf(m.Queue)
	if counters := q.index.Counters(); !counters.IsZero() {
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
		panic(fmt.Sprintf("shardactor: shard %d: queue %v has %d freezes", s.shard, q.key, q.freezes))
	}
	s.mayBeEmpty(q)
}
