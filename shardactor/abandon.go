package shardactor

// abandon ends a delivery the worker gives up: a failed attempt, back to the
// tail at once.
func (s *Shard) abandon(m *Abandon) {
	e := s.ending(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	endedByWorker(e.Task)
	again := s.retry(e.Task, s.placeAt(s.now, CauseAbandon), "")
	s.requeued(m.Asker, m.TaskID, again, 0)
}
