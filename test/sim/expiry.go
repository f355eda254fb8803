package sim

import (
	"cmp"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// Two limits of a task. Its expiry: from then on it is not handed out, so it ends
// when it waits, or as soon as it would. The end of a run: of the newest delivery,
// counted from when it was confirmed, whatever its worker says.

// waits says that the task is handed out sooner or later.
func (t *task) waits() bool {
	return t.place == wire.LocationPending || t.place == wire.LocationDelayed || t.place == wire.LocationLimited
}

// isPast says that the time of a task is over.
func (t *task) isPast(nowMs int64) bool { return t.expiresMs != 0 && t.expiresMs <= nowMs }

// expires notes when a new task expires, or expects that it is refused because it
// could not begin before.
func (m *model) expires(t *task, a *shard.Enqueue, dueMs int64) bool {
	t.timeoutMs = a.TimeoutSeconds * 1000
	t.expiresMs = a.ExpiresAtMs
	if ttl := cmp.Or(a.TTLSeconds, m.settings.of(t).TTLSeconds); t.expiresMs == 0 && ttl > 0 {
		t.expiresMs = m.at.NowMs + ttl*1000
	}
	if t.expiresMs == 0 || t.expiresMs > dueMs {
		return true
	}
	m.refused(a.Asker, wire.CodeInvalidTime)
	return false
}

// tooLate ends a task that would wait and whose time is over, and reports whether
// that is so.
func (m *model) tooLate(t *task) bool {
	if !t.isPast(m.at.NowMs) {
		return false
	}
	from := t.place
	m.end(t, &wire.ResultRecord{
		TaskID: t.id, Status: wire.StatusCancelled, Error: t.reason, CancelCause: "expired", CompletedAtMs: m.at.NowMs,
	})
	t.place, t.ended, t.aside = wire.LocationNone, true, false
	m.moved(t, from, record.CauseTaskExpired)
	return true
}

// ranOut judges a task that ended because of its time.
func (m *model) ranOut(t *task) {
	if t == nil || !t.waits() || !t.isPast(m.at.NowMs) {
		violate("a task expires when its time is over, where it waits", "%+v at %d", t, m.at.NowMs)
	}
	m.tooLate(t)
}

// until cuts a time to the end of the run.
func (t *task) until(ms int64) int64 {
	if t.runMs == 0 {
		return ms
	}
	return min(ms, t.runMs)
}

// promised is what the worker was told of lease and run; of a run that has not begun
// it is told as if it had with the grant.
func (t *task) promised() (leaseMs, runMs int64) {
	runMs = t.runMs
	if runMs == 0 && t.runForMs > 0 {
		runMs = t.grantedMs + t.runForMs
	}
	if runMs == 0 {
		return t.ackedMs, 0
	}
	return min(t.ackedMs, runMs), runMs
}

// isOver says that a delivery ended because its run did. How much longer than was
// promised a lease is after a restart only what happened tells.
func (m *model) isOver(t *task, e shard.Event) bool {
	switch {
	case !t.confirmed || t.runMs == 0 || t.runMs > m.at.NowMs:
		return false
	case t.lapseMs == t.runMs || !t.restored:
		return t.lapseMs == t.runMs
	case e.Cause == record.CauseTaskExpired:
		return m.saysTimeout(t)
	}
	return e.Cause == record.CauseTimeout
}

// saysTimeout says why a delivery ended that has ended its task: as its worker is told, else as
// the record says.
func (m *model) saysTimeout(t *task) bool {
	for _, a := range m.at.Outcome.Effects {
		if told, is := a.Effect.(*shard.Revoked); is && told.Token == t.token {
			return told.Reason == wire.RevokedTimeout
		}
	}
	m.after(func() {
		if seen := m.look(t); seen != nil && t.result != nil && seen.Error == wire.ErrorTimeout {
			t.reason, t.result.Error = seen.Error, seen.Error
		}
	})
	return false
}

// overran is a run that came to its end: a failed attempt.
func (m *model) overran(t *task) {
	m.touch(t)
	t.undelivered = 0
	m.retry(t, m.backoff(t, t.attempts+1), wire.ErrorTimeout, record.CauseTimeout)
}

// checkPromise holds what a worker is told of a delivery, or of several, against
// what was promised.
func checkPromise(e *shard.Extended, leaseMs, runMs int64, restored bool) {
	if e.LeaseUntilMs < leaseMs || e.LeaseUntilMs > leaseMs && !restored || e.RunUntilMs != runMs {
		violate("a heartbeat extends as promised", "until %d, run until %d, said %d and %d", leaseMs, runMs, e.LeaseUntilMs, e.RunUntilMs)
	}
}

// limitsOf are the limits that somebody gives a new task.
func (w *world) limitsOf(r *wire.EnqueueRequest) {
	c := w.chance
	if c.oneIn(5) {
		r.TimeoutSeconds = int64(pick(c, []int{1, 2, 8, 40}))
	}
	switch c.IntN(12) {
	case 0, 1:
		r.TTLSeconds = int64(pick(c, []int{1, 2, 5, 30, 400}))
	case 2:
		r.ExpiresAtMs = w.nowMs + int64(c.IntN(8000)) - 500
	}
}
