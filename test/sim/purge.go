package sim

import (
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// purge is what must follow when somebody purges a task: the dead letter that
// was meant is gone with all that was kept of it, anything else stays as it is,
// one that died again since too.
func (m *model) purge(a *shard.Manage, t *task) wire.Code {
	if t.place != wire.LocationDead || t.result.CompletedAtMs != a.EndedAtMs {
		return wire.CodeNotInDLQ
	}
	m.touch(t)
	t.place, t.removed = "", true
	m.moved(t, wire.LocationDead, record.CausePurge)
	return ""
}

// purgeSome is an admin who purges a dead letter as it was seen, now or some
// time ago, or what is none.
func (w *world) purgeSome() {
	t := w.someDeadLetter()
	if t == nil || w.model.tasks[t.id] == nil {
		return
	}
	m := &shard.Manage{Do: shard.Purge, Tenant: t.tenant, TaskID: t.id}
	if t.result != nil && !w.chance.oneIn(5) {
		m.EndedAtMs = t.result.CompletedAtMs
	}
	if w.chance.oneIn(10) {
		m.Tenant = pick(w.chance, w.shape.tenants)
	}
	if w.chance.oneIn(4) {
		// The round that finds what a cleanup is to remove has the purge in it.
		q := record.QueueKey{Command: t.command, Tenant: t.tenant}
		c := &shard.Cleanup{Queues: []record.QueueKey{q}, BeforeMs: w.nowMs, Limit: 1000}
		(&request{world: w, clean: c, shard: t.shard}).post()
		w.run(t.shard)
	}
	w.trace.say("  DELETE of %s by %s", w.name(t.id), m.Tenant)
	call := func(to shard.Asker) shard.Message {
		again := *m
		again.Asker = to
		return &again
	}
	(&request{world: w, call: call, about: t.id}).post()
}

// someDeadLetter is mostly a dead letter if there is any, nil if there is no
// task.
func (w *world) someDeadLetter() *task {
	for _, t := range w.model.all {
		if t.place == wire.LocationDead && w.chance.oneIn(3) {
			return t
		}
	}
	return w.someTask()
}
