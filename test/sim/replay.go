package sim

import (
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// replay is what must follow when somebody replays a task: a dead letter is as
// new but for its deliveries and its error, anything else stays as it is.
func (m *model) replay(t *task) wire.Code {
	if t.place != wire.LocationDead {
		return wire.CodeNotInDLQ
	}
	m.touch(t)
	t.attempts, t.releases, t.losses, t.expiresMs = 0, 0, 0, 0
	t.replays++
	if !t.resultToken.IsZero() {
		t.tookBack = t.resultToken
	}
	t.result, t.resultToken, t.cause = nil, wire.Token{}, 0
	m.toTail(t)
	m.moved(t, wire.LocationDead, record.CauseReplay)
	return ""
}

// repeatTakenBack is a worker that says once more what a replay has taken back, of a
// task that is dead again.
func (w *world) repeatTakenBack() bool {
	for _, t := range w.model.all {
		if t.place != wire.LocationDead || t.tookBack.IsZero() || !w.chance.oneIn(4) {
			continue
		}
		call := func(to shard.Asker) shard.Message {
			return &shard.Result{
				Holder: shard.Holder{
					Asker: to, Owner: shard.Owner{Tenant: t.tenant, Subject: t.speaker()},
					TaskRef: wire.TaskRef{TaskID: t.id, Token: t.tookBack},
				},
				ResultRequest: wire.ResultRequest{Status: wire.StatusFailed, Error: "taken back"},
			}
		}
		w.trace.say("  POST result of %s once more, which was taken back", w.name(t.id))
		(&request{world: w, call: call, about: t.id}).post()
		return true
	}
	return false
}

// replaySome is an admin who replays a dead letter, or what is none.
func (w *world) replaySome() {
	if w.repeatTakenBack() {
		return
	}
	t := w.someDeadLetter()
	if t != nil && w.model.tasks[t.id] != nil {
		w.trace.say("  POST replay of %s", w.name(t.id))
		(&request{world: w, replay: t.id}).post()
	}
}
