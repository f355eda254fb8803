package sim

import (
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// cancel is what must follow when somebody cancels a task: it ends wherever it
// is, its worker is told, and what ended before stands.
func (m *model) cancel(a *shard.Manage, t *task) wire.Code {
	switch {
	case a.Only != "" && a.Only.State() != t.place.State():
		return wire.CodeNotWaiting
	case t.status == wire.StatusCancelled:
	case !t.open():
		return wire.CodeAlreadyTerminal
	default:
		m.cancelOpen(t)
	}
	return ""
}

func (m *model) cancelOpen(t *task) {
	from, worker, ref := t.place, m.sockets[t.shard][t.session], wire.TaskRef{TaskID: t.id, Token: t.token}
	m.end(t, &wire.ResultRecord{TaskID: t.id, Status: wire.StatusCancelled, CompletedAtMs: m.at.NowMs})
	t.place, t.ended = wire.LocationNone, true
	m.moved(t, from, record.CauseCancel)
	if from == wire.LocationInProgress && !t.gone {
		m.toldOf(worker, ref, wire.RevokedCancelled)
	}
}

// toldOf expects that a session which is still there hears that it lost a
// delivery.
func (m *model) toldOf(worker *consumer, ref wire.TaskRef, reason string) {
	if worker == nil {
		return
	}
	r := expect[*shard.Revoked](m, shard.Asker{Sink: worker.Sink})
	if r.TaskRef != ref || r.Reason != reason {
		violate("a worker is told what it lost", "%v, %s, told %+v", ref, reason, r)
	}
}

// someTask is mostly one of the newest, nil if there is none.
func (w *world) someTask() *task {
	all := w.model.all
	if len(all) == 0 {
		return nil
	}
	if !w.chance.oneIn(4) {
		all = all[max(0, len(all)-30):]
	}
	return pick(w.chance, all)
}

// cancelSome is a producer that takes a task back over HTTP.
func (w *world) cancelSome() {
	if t := w.someTask(); t != nil {
		w.trace.say("  POST cancel of %s", w.name(t.id))
		(&request{world: w, cancel: t.id}).post()
	}
}
