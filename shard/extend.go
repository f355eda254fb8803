package shard

// extend is a heartbeat for one delivery over HTTP. Whose session ended goes on
// over HTTP, and no longer depends on it.
func (s *Shard) extend(m *Extend) {
	e := s.holder(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	if !m.OnItsWay {
		s.confirm(e)
	}
	s.prolong(e, m.ExtendForMs, nil)
	answer := &Extended{Ref: m.Ref}
	answer.LeaseUntilMs, answer.RunUntilMs = e.Promise()
	s.tell(m.Sink, answer)
}
