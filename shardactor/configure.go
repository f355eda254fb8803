package shardactor

import "codeq/store"

// configure decides a change of settings in the home shard of the queue. A
// change that changes nothing makes no new version; its asker learns what holds
// all the same, and brings it to the other shards again.
func (s *Shard) configure(m *Configure) {
	q := s.queueOf(m.Queue)
	next := q.settings
	if m.Change.Paused != nil {
		next.Paused = *m.Change.Paused
	}
	if m.Change.Settings != nil {
		next.QueueSettings = *m.Change.Settings
	}
	if next != q.settings || next.Version == 0 {
		next.Version++
		s.settle(q, next)
	}
	s.tell(m.Sink, &Configured{Ref: m.Ref, Settings: next})
}

// settle gives a queue other settings.
func (s *Shard) settle(q *queue, next store.Settings) {
	q.settings = next
	s.span.Batch().PutSettings(q.key, &next)
	s.ready(q)
	s.planReap(q)
}
