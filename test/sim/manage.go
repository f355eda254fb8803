package sim

import (
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// hand is a person who moves a task, as its history has it.
type hand struct {
	by    string
	cause record.Cause
	atMs  int64
}

var handCauses = map[shard.Verb]record.Cause{
	shard.Cancel: record.CauseCancel, shard.Replay: record.CauseReplay, shard.RunNow: record.CauseRunNow,
	shard.Prioritize: record.CauseMove, shard.TakeBack: record.CauseTakenBack,
}

// noteHand: the history of a task has every person who moved it.
func (t *task) noteHand(h hand, nowMs int64) {
	if h.by != "" && t.place != "" {
		h.atMs = nowMs
		t.hands = append(slices.Clip(t.hands), h)
	}
}

// checkHands compares them with the history, which keeps the last lines.
func (t *task) checkHands(history []wire.HistoryLine) {
	var got []hand
	for _, line := range history {
		if line.By != "" {
			got = append(got, hand{line.By, causeOf(line.Cause), line.ToMs})
		}
	}
	missing := len(t.hands) - len(got)
	if missing < 0 || missing > 0 && len(history) < record.MaxHistory || !slices.Equal(got, t.hands[missing:]) {
		violate("the history says who did what", "%v of task %v, the history has %+v", t.hands, t.id, history)
	}
}

// causeOf is the cause of a word, 0 for none.
func causeOf(word string) record.Cause {
	for c := record.Cause(1); c < record.Causes; c++ {
		if c.String() == word {
			return c
		}
	}
	return 0
}

// manage is what must follow when somebody who is not its worker changes a task.
func (m *model) manage(a *shard.Manage) {
	t := m.tasks[a.TaskID]
	m.hand = hand{by: a.By, cause: handCauses[a.Do]}
	defer func() { m.hand = hand{} }()
	var code wire.Code
	switch {
	case m.at.Space >= store.OnlyDelete && a.Do != shard.Purge:
		code = wire.CodeStorageFull
	case t == nil || t.removed || t.tenant != a.Tenant:
		code = wire.CodeTaskNotFound
	case a.Commands != nil && !slices.Contains(a.Commands, t.command):
		code = wire.CodeForbidden
	case a.Do == shard.Cancel:
		code = m.cancel(a, t)
	case a.Do == shard.Replay:
		code = m.replay(t)
	case a.Do == shard.Purge:
		code = m.purge(a, t)
	case a.Do == shard.RunNow:
		code = m.runNow(t)
	case a.Do == shard.TakeBack:
		code = m.takenFromWorker(t)
	default:
		code = m.prioritize(a, t)
	}
	if code != "" {
		m.refused(a.Asker, code)
		return
	}
	if e := expect[*shard.Managed](m, a.Asker); a.Sink != nil && (e.TaskID != a.TaskID || e.Did != a.Do) {
		violate("a request is answered as the protocol says", "request %d of %v: want %d, got %+v", a.Ref, a.TaskID, a.Do, e)
	}
}

// runNow: a delayed task becomes ready, at the tail, before its time.
func (m *model) runNow(t *task) wire.Code {
	if t.place != wire.LocationDelayed {
		return wire.CodeNotWaiting
	}
	if !m.tooLate(t) {
		m.toTail(t)
		t.aside = false
		m.moved(t, wire.LocationDelayed, record.CauseRunNow)
	}
	return ""
}

// takenFromWorker: a task in progress is ready at its old place, no attempt counts, and
// its worker is told.
func (m *model) takenFromWorker(t *task) wire.Code {
	if t.place != wire.LocationInProgress {
		return wire.CodeNotInProgress
	}
	worker, gone, ref := m.sockets[t.shard][t.session], t.gone, wire.TaskRef{TaskID: t.id, Token: t.token}
	m.touch(t)
	t.ended = true
	m.putBack(t, record.CauseTakenBack)
	if !gone {
		m.toldOf(worker, ref, wire.RevokedTakenBack)
	}
	return ""
}

// prioritize: a waiting task has another priority, and keeps its place by age and its
// time.
func (m *model) prioritize(a *shard.Manage, t *task) wire.Code {
	if !t.waits() || a.Only != "" && a.Only.State() != t.place.State() {
		return wire.CodeNotWaiting
	}
	if from := t.place; t.prio != a.Priority && !m.tooLate(t) {
		m.leave(t)
		t.prio = a.Priority
		if from == wire.LocationPending {
			t.place = ""
			m.toOldPlace(t)
		}
		m.moved(t, from, record.CauseMove)
	}
	return ""
}

// mayDelete says whether what a shard has of a queue may go with it.
func (m *model) mayDelete(q record.QueueKey, d *shard.QueueDelete) bool {
	for _, t := range m.all {
		if t.removed || t.queue() != q || t.shard != m.at.Shard {
			continue
		}
		if !d.Purge || t.place == wire.LocationInProgress && !d.CancelRunning {
			return false
		}
	}
	return true
}

// goWithQueue judges the tasks that were removed because their queue is deleted. The
// ended ones are removed before these, among the expired; see removing.
func (m *model) goWithQueue() {
	for m.at.event < len(m.at.Outcome.Events) && m.peek().Cause == record.CauseDelete {
		m.goesWithQueue()
	}
}

// goesWithQueue judges one task that was removed because its queue is deleted.
func (m *model) goesWithQueue() {
	t := m.tasks[m.peek().TaskID]
	if t == nil || t.removed || !m.settings.of(t).Deleting {
		violate("tasks go with a queue that is deleted", "%+v of %+v", m.peek(), t)
	}
	from, worker, ref := t.place, m.sockets[t.shard][t.session], wire.TaskRef{TaskID: t.id, Token: t.token}
	wasOpen := t.open()
	m.leave(t)
	if t.place, t.removed = "", true; wasOpen {
		t.status = wire.StatusCancelled
	}
	m.moved(t, from, record.CauseDelete)
	if from == wire.LocationInProgress && !t.gone {
		m.toldOf(worker, ref, wire.RevokedCancelled)
	}
}

// dropped takes the answers of those who wait until a queue is empty.
func (m *model) dropped() {
	left := m.drops[m.at.Shard][:0]
	for _, a := range m.drops[m.at.Shard] {
		if m.settings[m.at.Shard][a.Queue].Deleting {
			if m.has(a.Queue, m.at.Shard) {
				left = append(left, a)
				continue
			}
			m.forgetsSettings(a.Queue)
		}
		expect[*shard.Dropped](m, a.Asker)
	}
	m.drops[m.at.Shard] = left
}

// forgetsSettings: the shard drops those of a deleted queue. Nothing that was answered
// before has to hold from here on, even if a crash kept the deletion from its answer.
func (m *model) forgetsSettings(q record.QueueKey) {
	for shard := range m.shards {
		if m.at.Shard == m.home(q) && shard != m.at.Shard && m.settings[shard][q].Deleting {
			violate("the home forgets a deleted queue last", "shard %d still has %v", shard, q)
		}
	}
	delete(m.settings[m.at.Shard], q)
	delete(m.told, q)
	if m.at.Shard == m.home(q) {
		m.rateIsSet(q, &record.Settings{})
	}
}

// deletes reports a queue that is being deleted in some shard.
func (w *world) deletes() (some bool) {
	for shard := range w.model.settings {
		eachQueue(func(q record.QueueKey) { some = some || w.model.settings[shard][q].Deleting })
	}
	return some
}

// manageSome is an admin who has a task run now or gives it another priority, takes it
// from its worker, or cancels it if it waits still.
func (w *world) manageSome() {
	t := w.someTask()
	if t == nil || w.model.tasks[t.id] == nil {
		return
	}
	c := w.chance
	by := pick(c, []string{"ops", "night"})
	kind, only, prio := c.IntN(4), pick(c, []wire.Location{"", wire.LocationPending, wire.LocationDelayed}), pick(c, []int{0, 5, 9})
	wanted := map[int]wire.Location{0: wire.LocationDelayed, 3: wire.LocationInProgress}[kind]
	for _, other := range w.model.all {
		if wanted != "" && other.place == wanted && c.oneIn(3) {
			t = other
		}
	}
	w.trace.say("  manage %s: %d, only %q, priority %d", w.name(t.id), kind, only, prio)
	call := func(to shard.Asker) shard.Message {
		switch kind {
		case 0:
			return &shard.Manage{Do: shard.RunNow, Asker: to, By: by, Tenant: t.tenant, TaskID: t.id}
		case 1:
			return &shard.Manage{Do: shard.Prioritize, Asker: to, By: by, Tenant: t.tenant, TaskID: t.id, Only: only, Priority: prio}
		case 3:
			return &shard.Manage{Do: shard.TakeBack, Asker: to, By: by, Tenant: t.tenant, TaskID: t.id}
		}
		return &shard.Manage{Do: shard.Cancel, Asker: to, By: by, Tenant: t.tenant, TaskID: t.id, Only: only}
	}
	(&request{world: w, call: call, about: t.id}).post()
}

// deleteSome is an admin who deletes a queue, mostly the quiet one, while tasks are
// on their way to it.
func (w *world) deleteSome() {
	c := w.chance
	q := record.QueueKey{Command: quiet, Tenant: pick(c, w.shape.tenants)}
	if c.oneIn(4) {
		q.Command = pick(c, commands)
	}
	w.postTo(q)
	w.configure(q, shard.SettingsChange{Delete: &shard.QueueDelete{Purge: !c.oneIn(4), CancelRunning: c.oneIn(2)}})
	if c.oneIn(3) {
		w.run(c.IntN(w.shape.shards))
	}
	w.postTo(q)
}
