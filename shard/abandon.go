package shard

// abandon ends a delivery the worker gives up: a failed attempt, back to the
// tail at once.
func (s *Shard) abandon(m *Abandon) {
	e := s.holderEnding(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	endedByWorker(e.Task)
	s.retry(e.Task, s.placeAt(s.now, CauseAbandon), "")
	s.requeued(m.Asker, e.Task, 0)
}
