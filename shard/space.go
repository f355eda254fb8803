package shard

import (
	"codeq/store"
	"codeq/wire"
)

const storageFull = "the disk is nearly full; repeat when space has been freed"

// refuseNoSpace refuses messages that would write, while the disk has space for
// deletions only. The sender can repeat each, so nothing is lost.
func (s *Shard) refuseNoSpace(m Message) bool {
	switch m := m.(type) {
	case *Result:
		s.refuseEnding(m.Asker, m.Owner, m.TaskRef)
	case *End:
		s.refuseEnding(m.Asker, m.Owner, m.TaskRef)
	case *Heartbeat:
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeStorageFull, storageFull)
	case *Freeze:
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeStorageFull, storageFull)
	case *Configure:
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeStorageFull, storageFull)
	case *Replay:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Cancel:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *RunNow:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Prioritize:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Extend:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Undelivered:
		// The deliveries lapse when leases may again; see noteStall.
		for _, ref := range m.Tasks {
			if e := s.notArrived(m.Consumer, ref); e != nil {
				s.leases.Move(e, s.now)
			}
		}
	default:
		return false
	}
	return true
}

// refuseEnding refuses a message that would end a delivery.
func (s *Shard) refuseEnding(to Asker, owner Owner, ref wire.TaskRef) {
	s.answersFor(to, owner, ref, s.leases.Get(ref.TaskID))
	s.refuse(to, ref.TaskID, wire.CodeStorageFull, storageFull)
}

// hasSpace refuses a new task while the disk is nearly full.
func (s *Shard) hasSpace(m *Enqueue) bool {
	if s.space >= store.NoEnqueue {
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeStorageFull, storageFull)
		return false
	}
	return true
}
