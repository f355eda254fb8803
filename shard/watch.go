package shard

import "codeq/wire"

// watch registers for the end of a task. A task that already ended answers at
// once, so a watcher that registers first and reads second misses nothing.
func (s *Shard) watch(m *Watch) {
	t, _ := s.find(m.TaskID, m.Tenant)
	switch {
	case t == nil:
		s.refuse(m.Asker, m.TaskID, wire.CodeTaskNotFound, "task does not exist")
	case t.Status.Terminal():
		s.tell(m.Sink, &Ended{Ref: m.Ref, TaskID: m.TaskID})
	default:
		s.watchers[m.TaskID] = append(s.watchers[m.TaskID], m.Asker)
	}
}

// unwatch forgets a watcher that no longer waits.
func (s *Shard) unwatch(m *Unwatch) {
	left := s.watchers[m.TaskID][:0]
	for _, w := range s.watchers[m.TaskID] {
		if w != m.Asker {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		delete(s.watchers, m.TaskID)
		return
	}
	s.watchers[m.TaskID] = left
}

func (s *Shard) tellWatchers(id wire.TaskID) {
	for _, w := range s.watchers[id] {
		s.tell(w.Sink, &Ended{Ref: w.Ref, TaskID: id})
	}
	delete(s.watchers, id)
}
