package sim

import (
	"cmp"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// The numbers of the lifecycle, written down once more on purpose.
const (
	graceMs        = 15_000
	stallMs        = 1_000
	baseMs         = 5_000
	longestMs      = 900_000
	mostUndeliverd = 3
	asideMs        = 10_000
	failedMs       = 7 * 24 * 3600_000
	checkAsideMs   = 1_000
)

// reading is a round with a cursor on what it said.
type reading struct {
	*shardactor.Observed
	event, effect int
	note          int
}

// round judges one round.
func (m *model) round(o *shardactor.Observed) {
	o = withoutFreed(o)
	m.at = reading{Observed: o}
	state := &m.shards[o.Shard]
	stalled := state.nextMs != 0 && o.NowMs > state.nextMs+stallMs
	spaceCame := state.wasFull && o.Space < store.OnlyDelete
	state.wasFull = o.Space >= store.OnlyDelete
	if (stalled || spaceCame) && o.NowMs >= state.holdMs {
		state.heardMs, state.holdMs = state.holdMs, o.NowMs+graceMs
	}
	m.keysFreed()
	for _, message := range o.Messages {
		m.message(message)
	}
	m.timeCame()
	m.removing()
	m.goWithQueue()
	m.dropped()
	m.grants()
	m.answerClaims()
	m.answerExplains()
	if m.at.event < len(o.Outcome.Events) {
		violate("every event has a cause", "no rule explains %+v", o.Outcome.Events[m.at.event])
	}
	if m.at.effect < len(o.Outcome.Effects) {
		violate("every effect has a cause", "no rule explains %#v", o.Outcome.Effects[m.at.effect].Effect)
	}
	m.keepsReports()
	m.fairlyShared()
	state.rounds++
	state.nextMs, state.lastMs = o.Outcome.NextAtMs, o.NowMs
}

// message says what must follow from one message.
func (m *model) message(message shard.Message) {
	switch a := message.(type) {
	case *shard.Enqueue:
		before := len(m.all)
		m.enqueue(a)
		m.doors.wasTaken(a, len(m.all) > before)
	case *shard.Subscribe:
		m.subscribe(a)
	case *shard.Result:
		m.answers(&a.Holder)
		m.finish(a)
	case *shard.End:
		m.answers(&a.Holder)
		m.gaveUp(a)
	case *shard.Heartbeat:
		m.heartbeat(a)
	case *shard.Report:
		m.report(a)
	case *shard.Upload:
		m.upload(a)
	case *shard.Received:
		for _, ref := range a.Tasks {
			if t := m.delivery(ref); t != nil && t.madeTo(a.Consumer) {
				m.confirm(t)
			}
		}
	case *shard.Claim:
		m.claim(a)
	case *shard.Extend:
		m.prolong(a)
	case *shard.Undelivered:
		m.undelivered(a)
	case *shard.SessionGone:
		m.sessionGone(a)
	case *shard.Resume:
		m.resume(a)
	case *shard.DrainBarrier:
		m.drainBarrier(a)
	case *shard.Watch:
		m.watch(a)
	case *shard.Unwatch:
		m.unwatch(a)
	case *shard.Manage:
		m.manage(a)
	case *shard.Explain:
		m.explains = append(m.explains, a)
	case *shard.TellLeases:
		m.tellLeases(a)
	case *shard.Drop:
		m.drops[m.at.Shard] = append(m.drops[m.at.Shard], a)
	case *shard.Cleanup:
		m.cleanings[m.at.Shard] = append(m.cleanings[m.at.Shard], &cleaning{Cleanup: a, sinceMs: m.at.NowMs})
	case *shard.Freeze:
		m.freeze(a)
	case *shard.Configure:
		m.configure(a)
	case *shard.CopySettings:
		m.copySettings(a)
	case *shard.Name:
		m.name(a)
	case *shard.CopyNamed:
		m.copyNamed(a)
	}
}

func (m *model) enqueue(a *shard.Enqueue) {
	if !m.takesNew(a) {
		return
	}
	if first := m.keys[keyName{a.Tenant, a.Command, a.IdempotencyKey}]; a.IdempotencyKey != "" && first != nil && !first.removed {
		if first.payload != string(a.Payload) || first.posted != a.Priority || first.maxAttempts != a.MaxAttempts || first.timeoutMs != a.TimeoutSeconds*1000 || first.webhook != a.Webhook {
			m.refused(a.Asker, wire.CodeIdempotencyConflict)
			return
		}
		if e := expect[*shard.Enqueued](m, a.Asker); e.TaskID != first.id || !e.Replayed {
			violate("one key makes one task", "key %q made %v before and gave %+v now", a.IdempotencyKey, first.id, e)
		}
		return
	}
	t := &task{
		id: a.ID, shard: m.at.Shard, shares: a.ConcurrencyKey, tenant: a.Tenant, command: a.Command, key: a.IdempotencyKey,
		payload: string(a.Payload), prio: a.Priority, posted: a.Priority, ended: true, webhook: hookOf(a.Payload), trace: traceOf(a.Payload),
	}
	due := max(a.RunAtMs, m.at.NowMs+a.DelaySeconds*1000)
	if !m.expires(t, a, due) {
		return
	}
	if m.at.Space >= store.NoEnqueue {
		m.refused(a.Asker, wire.CodeStorageFull)
		return
	}
	t.maxAttempts = cmp.Or(a.MaxAttempts, m.settings.of(t).MaxAttempts, 5)
	m.add(t)
	m.placed(t)
	if due > m.at.NowMs {
		m.toDelayed(t, due)
	} else {
		m.toTail(t)
	}
	m.moved(t, "", record.CauseEnqueue)
	if e := expect[*shard.Enqueued](m, a.Asker); e.TaskID != t.id || e.Replayed {
		violate("an enqueue is answered with its task", "%v got %+v", t.id, e)
	}
}

// known is a task that a worker of a tenant may know of.
func (m *model) known(o shard.Owner, id wire.TaskID) *task {
	if t := m.tasks[id]; t != nil && t.tenant == o.Tenant && !t.removed {
		return t
	}
	return nil
}

// delivery is the task in progress under a token.
func (m *model) delivery(ref wire.TaskRef) *task {
	t := m.tasks[ref.TaskID]
	if t == nil || t.place != wire.LocationInProgress || t.token != ref.Token {
		return nil
	}
	return t
}

// held is the delivery that a worker may end. Otherwise it must be refused, by
// the first reason in the promised order.
func (m *model) held(h *shard.Holder) *task {
	if m.at.Space >= store.OnlyDelete {
		m.refused(h.Asker, wire.CodeStorageFull)
		return nil
	}
	t := m.known(h.Owner, h.TaskID)
	if t != nil && t.place == wire.LocationInProgress && t.mayAct(h.Owner, h.Token) {
		return t
	}
	m.refusedDelivery(h, t)
	return nil
}

func (m *model) refusedDelivery(h *shard.Holder, t *task) {
	to := h.Asker
	switch {
	case t == nil:
		m.refused(to, wire.CodeTaskNotFound)
	case t.deliveries > 0 && !t.isOf(h.Subject, h.Token):
		m.refused(to, wire.CodeNotOwner)
	case !t.open():
		m.refused(to, wire.CodeNotInProgress)
	case t.place == wire.LocationInProgress && h.Token.IsZero():
		m.refused(to, wire.CodeNotOwner)
	default:
		m.refused(to, wire.CodeLeaseLost)
	}
}

// finish is a result: of the newest delivery, unless the worker ended that
// itself, whatever became of its lease; and once.
func (m *model) finish(a *shard.Result) {
	if m.at.Space >= store.OnlyDelete {
		m.refused(a.Asker, wire.CodeStorageFull)
		return
	}
	t := m.known(a.Owner, a.TaskID)
	mine := t != nil && t.mayAct(a.Owner, a.Token)
	switch {
	case mine && !t.open() && t.resultToken == t.token && t.status == a.Status:
		m.repeated(a.Asker, t)
	case mine && t.open() && (t.place == wire.LocationInProgress || !t.ended):
		from := t.place
		files, known := t.filesOf(a.Artifacts)
		if !known {
			m.refused(a.Asker, wire.CodeInvalidResult)
			return
		}
		m.end(t, &wire.ResultRecord{
			TaskID: t.id, Status: a.Status, Result: a.ResultRequest.Result, Error: a.Error, Artifacts: files, CompletedAtMs: m.at.NowMs,
		})
		t.place, t.ended, t.undelivered, t.resultToken = wire.LocationNone, true, 0, t.token
		if a.Status == wire.StatusFailed {
			t.place, t.cause, t.reason = wire.LocationDead, wire.DeadFailed, a.Error
		}
		m.moved(t, from, record.CauseResult)
		m.reusedCredit(a, m.completed(a.Asker, t))
	default:
		m.refusedDelivery(&a.Holder, t)
	}
}

func (m *model) completed(to shard.Asker, t *task) *shard.Completed {
	e := expect[*shard.Completed](m, to)
	if to.Sink == nil {
		return &shard.Completed{}
	}
	if !sameResult(e.Record, t.result) {
		violate("one completion stands", "task %v ended as %+v and answers %+v", t.id, t.result, e.Record)
	}
	return e
}

// repeated is the answer to a completion that was accepted before: its credit of
// room is not the shard's any more.
func (m *model) repeated(to shard.Asker, t *task) {
	if m.completed(to, t).CreditReused {
		violate("credit adds up", "a repeated completion of task %v reused a credit", t.id)
	}
}

// reusedCredit notes a credit that goes from the delivery that ended straight to
// another one.
func (m *model) reusedCredit(a *shard.Result, e *shard.Completed) {
	if !e.CreditReused {
		return
	}
	s := m.addressee(a.Sink)
	if s == nil || !a.HasCredit || !s.out[a.Token] {
		violate("credit adds up", "the unit of task %v was kept, of which none is out", a.TaskID)
	}
	delete(s.out, a.Token)
}

func (m *model) gaveUp(a *shard.End) {
	t := m.held(&a.Holder)
	if t == nil {
		return
	}
	switch a.How {
	case shard.Nack:
		m.nack(a, t)
	case shard.Abandon:
		m.ends(t)
		m.retry(t, span{}, "", record.CauseAbandon)
		m.requeued(a.Asker, t)
	case shard.Release:
		m.handBack(a, t)
	case shard.PutOff:
		m.putOff(a, t)
	}
}

func (m *model) nack(a *shard.End, t *task) {
	s := span{least: min(a.DelaySeconds*1000, m.longest(t))}
	s.most = s.least
	if a.DelaySeconds < 0 {
		s = m.backoff(t, t.attempts+1)
	}
	m.ends(t)
	m.retry(t, s, a.Reason, record.CauseNack)
	e := m.requeued(a.Asker, t)
	if a.Sink != nil && t.open() && (e.DelaySeconds*1000 < s.least || e.DelaySeconds*1000 > s.most+999) {
		violate("a retry waits as long as promised", "nack of %v says %d s, promised %+v", t.id, e.DelaySeconds, s)
	}
}

// charged: only a hand-back of work that began, by a worker that goes on, brings
// a task nearer to its end.
func (m *model) charged(a *shard.End) bool { return !a.NotStarted && !a.Stopping }

func (m *model) handBack(a *shard.End, t *task) {
	m.ends(t)
	if m.charged(a) {
		t.releases++
	}
	if t.releases > m.limits.Releases*t.maxAttempts {
		m.bury(t, wire.ErrorReleasedTooOften, record.CauseRelease, wire.DeadReleased)
		m.requeued(a.Asker, t)
		return
	}
	m.putBack(t, record.CauseRelease)
	m.requeued(a.Asker, t)
}

// ends notes that the worker itself ended its delivery.
func (m *model) ends(t *task) {
	m.touch(t)
	t.ended, t.undelivered = true, 0
}

func (m *model) putBack(t *task, cause record.Cause) {
	if m.tooLate(t) {
		return
	}
	m.toOldPlace(t)
	m.moved(t, wire.LocationInProgress, cause)
}

// span is how long a retry may wait; chance decides inside it.
type span struct{ least, most int64 }

// retry counts a failed delivery.
func (m *model) retry(t *task, s span, reason string, cause record.Cause) {
	m.touch(t)
	t.attempts++
	if reason != "" {
		t.reason = reason
	}
	if t.attempts >= t.maxAttempts {
		m.bury(t, reason, cause, wire.DeadExhausted)
		return
	}
	m.waits(t, s, cause)
}

// waits sends a task on that was with a worker: to wait, or to the tail.
func (m *model) waits(t *task, s span, cause record.Cause) {
	if m.tooLate(t) {
		return
	}
	if m.nextPlace() == wire.LocationDelayed && s.most > 0 {
		m.waitsAsLongAs(t, s)
	} else {
		if s.least > 0 {
			violate("a retry waits as long as promised", "task %v is ready at once, promised %+v", t.id, s)
		}
		m.toTail(t)
	}
	m.moved(t, wire.LocationInProgress, cause)
}

// waitsAsLongAs judges how long a task waits, which only its record says. Something
// later in the same round may have moved the task on, or removed it with its queue:
// goWithQueue finds the event of that.
func (m *model) waitsAsLongAs(t *task, s span) {
	nowMs := m.at.NowMs
	m.toDelayed(t, nowMs+s.least)
	m.after(func() {
		seen := m.look(t)
		if seen == nil {
			return
		}
		t.dueMs = seen.VisibleAtMs
		if wait := t.dueMs - nowMs; seen.Location == wire.LocationDelayed && (wait < s.least || wait > s.most) {
			violate("a retry waits as long as promised", "task %v waits %d ms, promised %+v", t.id, wait, s)
		}
	})
}

// after looks into the store when the batch of the round is applied.
func (m *model) after(look func()) { m.later[m.at.Shard] = append(m.later[m.at.Shard], look) }

func (m *model) bury(t *task, reason string, cause record.Cause, dead wire.DeadCause) {
	if reason == "" {
		reason = wire.ErrorMaxAttempts
	}
	m.end(t, &wire.ResultRecord{
		TaskID: t.id, Status: wire.StatusFailed, Error: reason, CompletedAtMs: m.at.NowMs,
	})
	t.place, t.cause, t.reason = wire.LocationDead, dead, reason
	m.moved(t, wire.LocationInProgress, cause)
}

// takeBack is for a delivery that never arrived: it does not count, but from the
// third in a row on the task is a suspect and waits.
func (m *model) takeBack(t *task) {
	m.touch(t)
	t.undelivered++
	if t.isSuspect() {
		m.waits(t, m.backoff(t, t.undelivered-mostUndeliverd+1), record.CauseUndelivered)
		return
	}
	m.putBack(t, record.CauseUndelivered)
}

// lost is a lost lease: the first is tried again at once.
func (m *model) lost(t *task, cause record.Cause) {
	m.touch(t)
	t.losses++
	t.undelivered = 0
	s := span{}
	if t.losses > 1 {
		s = m.backoff(t, t.losses-1)
	}
	m.retry(t, s, wire.ErrorLeaseExpired, cause)
}

func (m *model) confirm(t *task) {
	m.touch(t)
	t.confirmed, t.undelivered = true, 0
	if t.runForMs > 0 && t.runMs == 0 {
		t.runMs = m.at.NowMs + t.runForMs
		t.lapseMs = t.until(t.lapseMs)
	}
}
