package shard

import (
	"codeq/store"
	"codeq/wire"
)

const storageFull = "the disk is nearly full; repeat when space has been freed"

// SetSpace sets what the disk allows from the next round on. From store.NoEnqueue
// on new tasks are refused, from store.NoGrant on nothing is granted, at
// store.OnlyDelete tasks are only removed.
func (s *Shard) SetSpace(level store.Level) { s.space = level }

// refuseNoSpace refuses messages that would write, while the disk has space for
// deletions only. The sender can repeat each, so nothing is lost.
func (s *Shard) refuseNoSpace(m Message) bool {
	switch m := m.(type) {
	case *Result:
		s.refuseEnding(&m.Holder)
	case *End:
		s.refuseEnding(&m.Holder)
	case *Report:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Upload:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Extend:
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Manage:
		if m.Do == Purge {
			return false // it only deletes
		}
		s.refuse(m.Asker, m.TaskID, wire.CodeStorageFull, storageFull)
	case *Heartbeat, *Freeze, *Configure, *Name:
		s.refuse(m.message(), wire.TaskID{}, wire.CodeStorageFull, storageFull)
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
func (s *Shard) refuseEnding(h *Holder) {
	s.answersFor(h, s.leases.Get(h.TaskID))
	s.refuse(h.Asker, h.TaskID, wire.CodeStorageFull, storageFull)
}

// refuse answers a message that the shard does not carry out.
func (s *Shard) refuse(to Asker, id wire.TaskID, code wire.Code, sentence string) {
	s.tell(to.Sink, &Refused{Ref: to.Ref, TaskID: id, Err: wire.Refuse(code, sentence)})
}
