package sim

import (
	"cmp"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// A suspect has not arrived three times in a row. It goes alone.
func (t *task) isSuspect() bool { return t.open() && t.undelivered >= mostUndeliverd }

// goesAlone holds a grant against what is on its way to who gets it.
func (s *consumer) goesAlone(t *task) {
	switch {
	case s.alone:
		violate("a suspect goes alone", "task %v went to %s beside one", t.id, s.WorkerID)
	case t.isSuspect() && s.untaken > 0:
		violate("a suspect goes alone", "%v went to %s, to whom %d bytes were on their way", t.id, s.WorkerID, s.untaken)
	}
}

// stepsAside is a suspect whose turn has come when something is on its way to
// everybody who could have it. It makes way for the others.
func (m *model) stepsAside(t *task) {
	switch {
	case t.place != wire.LocationPending || !t.isSuspect():
		violate("only a suspect makes way", "%+v", t)
	case m.head(t.shard, t.tenant, t.command) != t:
		violate("first in, first out, by priority", "%+v stepped aside", t)
	}
	for _, s := range m.sockets[t.shard] {
		if s.Tenant != t.tenant || !s.takes(t.shard, t.command) {
			continue
		}
		if m.limits == shard.DefaultLimits && s.untaken == 0 && !s.closed && s.InFlight() < s.window && m.isShared(s) && m.at.Space < store.NoGrant {
			violate("a suspect goes to who has nothing on its way", "task %v stepped aside, and %s has a free credit", t.id, s.WorkerID)
		}
		s.quietUntilMs = m.at.NowMs + asideMs
	}
	m.hadTurn(t)
	m.toDelayed(t, m.at.NowMs+asideMs)
	t.aside = true
	m.moved(t, wire.LocationPending, record.CauseSuspect)
}

// isShared says that no other shard can have the window of a session alone. A shard
// that reserved the session shares the window in its first round after quietUntilMs; a
// shard that granted it a suspect, in its first round after the client confirmed that.
func (m *model) isShared(s *consumer) bool {
	if s.aloneOn != m.at.Shard && m.shards[s.aloneOn].rounds < s.sharedAt {
		return false
	}
	for shard := range m.shards {
		if shard != m.at.Shard && m.shards[shard].lastMs < s.quietUntilMs {
			return false
		}
	}
	return s.quietUntilMs <= m.at.NowMs
}

// calledFromAside is a suspect that goes to somebody who has become idle.
func (m *model) calledFromAside(t *task) {
	m.toTail(t)
	t.aside = false
	m.moved(t, wire.LocationDelayed, record.CauseDue)
	if e := m.peek(); e.Cause != record.CauseGrant || e.TaskID != t.id {
		violate("nothing is delivered before it is due", "task %v was called from aside for %+v", t.id, e)
	}
}

// noSuspectStandsAsideBy says that no suspect stands aside for long beside an open
// session that could have it alone.
func (w *world) noSuspectStandsAsideBy(s *consumer) {
	if s.untaken > 0 || s.InFlight() >= s.window {
		s.idleSinceMs = 0
		return
	}
	s.idleSinceMs = cmp.Or(s.idleSinceMs, w.nowMs)
	for _, t := range w.model.all {
		sinceMs := max(s.idleSinceMs, t.dueMs-asideMs)
		if t.aside && t.place == wire.LocationDelayed && w.nowMs > sinceMs+checkAsideMs && t.tenant == s.Tenant && s.takes(t.shard, t.command) && !w.model.settings.of(t).Paused && !w.model.isFull(t, w.nowMs) && !w.model.mayBeHeld(t) {
			violate("a suspect goes to who has nothing on its way", "task %v has stood aside since %d, and %s has a free credit", t.id, sinceMs, s.WorkerID)
		}
	}
}

// isQuiet reports whether a session with a free credit may get nothing: a suspect is on
// its way to it, or waits until its deliveries are confirmed.
func (s *consumer) isQuiet(nowMs int64) bool {
	return s.alone || s.untaken > 0 && nowMs < s.quietUntilMs
}

// hasTaken notes what a client has confirmed.
func (m *model) hasTaken(s *consumer, bytes, bound int) {
	s.untaken, s.bound = s.untaken-bytes, min(bound, s.most)
	if s.untaken == 0 && s.alone {
		s.alone, s.sharedAt = false, m.shards[s.aloneOn].rounds+1
	}
}
