package shard

import (
	"slices"

	"codeq/record"
	"codeq/wire"
)

// purge removes one dead letter with everything that is kept of it, its result
// too. Whoever waits for the result has been answered when it died. It only
// removes, so it goes on while the disk is full.
func (s *Shard) purge(m *Purge) {
	t, _ := s.managed(m.Asker, m.TaskID, m.Tenant, m.Commands)
	switch {
	case t == nil:
	case t.Location != wire.LocationDead || t.EndedAtMs != m.EndedAtMs:
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: t.ID, Err: anotherLetter(t)})
	default:
		s.passOver(t)
		s.transition(t, move{to: removed, status: t.Status, cause: CausePurge})
		s.tell(m.Sink, &Purged{Ref: m.Ref, TaskID: m.TaskID})
	}
}

// anotherLetter refuses a task that is no dead letter, or died again since.
func anotherLetter(t *record.Task) *wire.Error {
	refusal := wire.Refuse(wire.CodeNotInDLQ, "task is not the dead letter that was meant, it is "+string(t.Status)+"; look again")
	refusal.Status = t.Status
	return refusal
}

// passOver takes a dead letter out of what this round found to be past its time:
// it is replayed or goes now, and nothing goes twice.
func (s *Shard) passOver(t *record.Task) {
	k := record.TimedKey{AtMs: t.EndedAtMs, ID: t.ID}
	for i := range s.batches {
		if l := &s.batches[i]; l.place == wire.LocationDead && l.queue.key == t.Queue() {
			l.expired = slices.DeleteFunc(l.expired, func(found record.EndedEntry) bool { return found.TimedKey == k })
		}
	}
}
