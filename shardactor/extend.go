package shardactor

// extend is a heartbeat for one delivery over HTTP. Whose session ended goes on
// over HTTP, and no longer depends on it.
func (s *Shard) extend(m *Extend) {
	e := s.holding(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	until := s.prolong(e, m.ExtendForMs, nil)
	if !m.OnItsWay {
		confirm(e)
	}
	s.tell(m.Sink, &Extended{Ref: m.Ref, LeaseUntilMs: until})
}
