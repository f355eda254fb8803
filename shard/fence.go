package shard

// fence says that everything granted to a seat so far has been said, which it is
// by its place behind that. Nothing follows while the window is 0: every unit
// that is out leaves the room in debt, and with a room in debt nothing is
// granted.
func (s *Shard) fence(m *Fence) {
	s.tell(m.Sink, &Fenced{Ref: m.Ref})
}
