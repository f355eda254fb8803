package shard

// drain barrier says that everything granted to a consumer so far has been said, which it is
// by its place behind that. Nothing follows while the window is 0: every credit
// that is out leaves the credit in debt, and with a credit in debt nothing is
// granted.
func (s *Shard) drainBarrier(m *DrainBarrier) {
	s.tell(m.Sink, &Drained{Ref: m.Ref})
}
