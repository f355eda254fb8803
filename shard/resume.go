package shard

import "codeq/wire"

// resume gives a session a new socket. The end of the one before may not have
// been heard of yet, so it is assumed here; what had arrived over it is in flight
// again, to the end of its lease.
func (s *Shard) resume(m *Resume) {
	if mb := s.bySession[m.Consumer.ID]; mb != nil && mb.consumer.Epoch > m.Consumer.Epoch {
		// An even newer socket has come in between; nobody waits for this answer.
		s.tell(m.Sink, &Resumed{Ref: m.Ref})
		return
	}
	s.unseat(m.Consumer.ID)
	s.socketEnded(m.Consumer, 0)
	s.bySession[m.Consumer.ID] = &subscriber{consumer: m.Consumer}
	answer := &Resumed{Ref: m.Ref}
	for _, e := range s.leases.OfSession(m.Consumer.ID, nil) {
		if !e.Confirmed {
			// It is on its way back and only waits for the disk.
			continue
		}
		e.Gone, e.HasCredit = false, true
		s.leases.Move(e, e.AckedUntilMs)
		answer.Held = append(answer.Held, wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token})
	}
	s.tell(m.Sink, answer)
}
