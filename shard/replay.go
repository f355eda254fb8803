package shard

import (
	"codeq/record"
	"codeq/wire"
)

// replay gives one dead letter all its attempts back.
func (s *Shard) replay(m *Replay) {
	t, _ := s.managed(m.Asker, m.TaskID, m.Tenant, m.Commands)
	switch {
	case t == nil:
	case t.Location != wire.LocationDead:
		refusal := wire.Refuse(wire.CodeNotInDLQ, "task is no dead letter, it is "+string(t.Status)+"; only a dead letter can be replayed")
		refusal.Status = t.Status
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: t.ID, Err: refusal})
	case m.EndedAtMs != 0 && t.EndedAtMs != m.EndedAtMs:
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: t.ID, Err: anotherLetter(t)})
	default:
		s.revive(t)
		s.tell(m.Sink, &Replayed{Ref: m.Ref, TaskID: t.ID})
	}
}

// revive is the only way out of a terminal state. The number of deliveries goes
// on, so that no token of before is the newest again, and the error stays until
// another replaces it. LastToken stays: the late result of a delivery that ended
// without a word counts while nobody took the task. ResultToken goes: the result
// that it stands for is taken back. So does the expiry: whoever replays a letter
// wants it to run.
func (s *Shard) revive(t *record.Task) {
	s.passOver(t)
	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}
	t.ExpiresAtMs = 0
	s.span.Batch().TakeResult(t)
	s.transition(t, move{to: wire.LocationPending, status: wire.StatusPending, cause: CauseReplay})
}
