package sim

import (
	"slices"

	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// answerExplains holds every answer of the round against what the model knows of
// the task behind all that the round did.
func (m *model) answerExplains() {
	for _, a := range m.explains {
		e := expect[*shard.Explained](m, a.Asker)
		t := m.tasks[a.TaskID]
		if t == nil || t.removed || t.tenant != a.Tenant || !t.waits() {
			if e.Waiting != nil {
				violate("what does not wait has no reason to", "%v: %+v", a.TaskID, *e.Waiting)
			}
			continue
		}
		if e.Waiting == nil {
			violate("a task that waits has its reason", "%+v", t)
		}
		m.checkWaiting(t, e.Waiting)
	}
	m.explains = m.explains[:0]
}

func (m *model) checkWaiting(t *task, w *wire.Waiting) {
	ahead := m.aheadOf(t)
	if w.BehindKnown && w.Behind != ahead {
		violate("what comes before a task is counted", "%v has %d before it, said %d", t.id, ahead, w.Behind)
	}
	want := ""
	switch taken := m.isTaken(t); {
	case t.place == wire.LocationDelayed:
		if want = wire.WaitingDelayed; t.isSuspect() {
			want = wire.WaitingSuspect
		}
		m.after(func() {
			if w.UntilMs != t.dueMs {
				violate("a reason is the one that holds", "%v is due at %d, said %d", t.id, t.dueMs, w.UntilMs)
			}
		})
	case m.settings.of(t).Paused:
		want = wire.WaitingPaused
	case m.at.Space >= store.NoGrant:
		want = wire.WaitingStorageFull
	case w.Reason == wire.WaitingLimit && w.Key != "":
		want = w.Reason
		m.explainsKey(t, w)
	case w.Reason == wire.WaitingLimit:
		want = w.Reason
		m.explainsLimit(t, w)
	case !taken:
		want = wire.WaitingNoWorker
	case ahead > 0:
		want = wire.WaitingBehind
	case w.Reason == wire.WaitingBehind:
		// It is next in its queue, and others had their turn before it.
		want = w.Reason
	default:
		if want = wire.WaitingNoCredit; m.hasCreditFor(t) {
			violate("no ready task sits beside an open session with credit", "%v of shard %d is said to wait for credit", t.id, t.shard)
		}
	}
	if w.Reason != want {
		violate("a reason is the one that holds", "%v with %d before it: want %s, said %+v", t.id, ahead, want, *w)
	}
}

// aheadOf is how many ready tasks are handed out before one.
func (m *model) aheadOf(t *task) (n int64) {
	if t.place != wire.LocationPending {
		return 0
	}
	name := t.ordered()
	n = int64(slices.Index(m.pending[name], t))
	for name.prio = t.prio + 1; name.prio <= wire.MaxPriority; name.prio++ {
		n += int64(len(m.pending[name]))
	}
	return n
}

// isTaken reports whether anybody takes the command of a task in its shard.
func (m *model) isTaken(t *task) bool {
	for _, s := range m.sockets[t.shard] {
		if s.Tenant == t.tenant && s.takes(t.shard, t.command) {
			return true
		}
	}
	for _, c := range m.claims[t.shard] {
		if c.consumer.Tenant == t.tenant && c.consumer.takes(t.shard, t.command) {
			return true
		}
	}
	return false
}

// hasCreditFor reports whether a consumer of the task in its shard has a free credit and
// fewer unconfirmed bytes than its bound. A credit that is on its way to the shard does
// not count: the shard does not know it yet.
func (m *model) hasCreditFor(t *task) bool {
	has := func(s *consumer) bool {
		return s.Tenant == t.tenant && s.takes(t.shard, t.command) && !s.closed && s.untaken < s.bound &&
			s.InFlight() < s.window && s.InFlight() == len(s.out) && !s.alone && m.isShared(s)
	}
	for _, s := range m.sockets[t.shard] {
		if has(s) {
			return true
		}
	}
	return slices.ContainsFunc(m.claims[t.shard], func(c claimant) bool { return has(c.consumer) })
}

// tellLeases holds what is told of leases against what their workers were promised:
// not one more and not one less is told, and after a restart a lease may be longer.
func (m *model) tellLeases(a *shard.TellLeases) {
	e := expect[*shard.LeasesTold](m, a.Asker)
	told := e.Leases
	for _, id := range a.Tasks {
		t := m.tasks[id]
		if t == nil || t.removed || t.tenant != a.Tenant || t.place != wire.LocationInProgress {
			continue
		}
		if len(told) == 0 || told[0].TaskID != id || told[0].Delivery != t.deliveries {
			violate("the lease of what is in progress is told", "%v, delivery %d: %+v", id, t.deliveries, e.Leases)
		}
		leaseMs, runMs := t.promised()
		if g := told[0]; g.LeaseUntilMs < leaseMs || g.LeaseUntilMs > leaseMs && !t.restored || g.RunUntilMs != runMs {
			violate("a lease is told as it was promised", "%v until %d, run until %d, told %+v", id, leaseMs, runMs, g)
		} else if last := t.saidOf(); progressText(g.Progress) != last.progress || g.Printed != last.printed && !(t.restored && t.before.printed) {
			// Whether it has printed before a start does not show if an earlier delivery has.
			violate("the newest report is shown", "%v said %+v, told %+v", id, last, g)
		}
		told = told[1:]
	}
	if len(told) > 0 {
		violate("the lease of what is in progress is told", "%+v besides", told)
	}
}

// explainSome is somebody who asks why a task waits.
func (w *world) explainSome() {
	t := w.someTask()
	if i := slices.IndexFunc(w.model.all, (*task).isSuspect); i >= 0 && w.chance.oneIn(2) {
		t = w.model.all[i]
	}
	if t == nil || w.model.tasks[t.id] == nil {
		return
	}
	tenant := t.tenant
	if w.chance.oneIn(10) {
		tenant = pick(w.chance, w.shape.tenants)
	}
	call := func(to shard.Asker) shard.Message {
		if t.place == wire.LocationInProgress {
			m := &shard.TellLeases{Asker: to, Tenant: tenant}
			for _, l := range w.model.leased[t.shard] {
				m.Tasks = append(m.Tasks, l.id)
			}
			return m
		}
		return &shard.Explain{Asker: to, Tenant: tenant, TaskID: t.id}
	}
	(&request{world: w, call: call, about: t.id}).post()
}
