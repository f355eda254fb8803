package shard

import (
	"codeq/record"
	"codeq/wire"
)

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

// settle gives a queue other settings.
func (s *Shard) applySettings(q *queue, next record.Settings) {
	q.settings = next
	s.span.Batch().PutSettings(q.key, &next)
	s.ready(q)
	s.planExpiry(q)
	s.noteDeleted(q)
}
