package session

import (
	"bytes"
	"slices"

	"codeq/wire"
)

// profile is what is only shown of a conversation.
type profile struct {
	openedAtMs int64
	// heardAtMs is when the client last sent anything, in Unix milliseconds.
	heardAtMs int64
	window    int
	// leaving: the client said drain and has asked for nothing since.
	leaving bool
}

// hears notes a sign of life.
func (p *profile) hears(nowMs int64, e Event) {
	switch e.(type) {
	case *ClientMessage, *Ping, *Pong:
		p.heardAtMs = nowMs
	}
}

// Figures are what an admin sees of an open conversation. Who it is, the seat
// knows.
func (c *Conversation) Figures() wire.SessionFigures {
	f := wire.SessionFigures{
		Commands: slices.Clone(c.subscribed), Window: c.profile.window, Held: c.tasks.inHand(), State: wire.SessionLive,
		ConnectedAtMs: c.profile.openedAtMs, LastSeenAtMs: c.profile.heardAtMs,
	}
	if c.draining || c.profile.leaving {
		f.State = wire.SessionDraining
	}
	return f
}

// lateSession is one that lost its socket with tasks in hand and may come back.
type lateSession struct {
	tenant  string
	figures wire.SessionFigures
	untilMs int64
}

// maxLate bounds how many are remembered, for the list alone.
const maxLate = 10_000

// late remembers a session for as long as it may come back. r.mu is held.
func (r *Registry) late(s *session) {
	if s.seat == nil || r.newest[s.id] != s {
		return
	}
	f := s.talk.Figures()
	f.Held, f.State = s.talk.tasks.arrived(), wire.SessionGrace
	if f.Held == 0 {
		return
	}
	f.ID, f.WorkerID, f.Subject = s.seat.ID, s.seat.WorkerID, s.seat.Subject
	nowMs := r.o.NowMs()
	r.forgetLate(nowMs)
	if len(r.lately) < maxLate {
		r.lately[s.id] = lateSession{s.seat.Tenant, f, nowMs + wire.ResumeGraceSeconds*1000}
	}
}

// forgetLate drops whose grace is over, not more often than once a second: that
// is a look at each of them. r.mu is held.
func (r *Registry) forgetLate(nowMs int64) {
	if nowMs < r.lookLateAtMs {
		return
	}
	r.lookLateAtMs = nowMs + 1000
	for id, l := range r.lately {
		if l.untilMs <= nowMs {
			delete(r.lately, id)
		}
	}
}

// lateOf are the sessions of a tenant that may come back.
func (r *Registry) lateOf(tenant string) []wire.SessionFigures {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []wire.SessionFigures
	nowMs := r.o.NowMs()
	for _, l := range r.lately {
		if l.tenant == tenant && l.untilMs > nowMs {
			all = append(all, l.figures)
		}
	}
	return all
}

// figures are those of the session, if it is open and of the tenant.
func (s *session) figures(tenant string) (wire.SessionFigures, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seat == nil || s.seat.Tenant != tenant || s.talk.Over() {
		return wire.SessionFigures{}, false
	}
	f := s.talk.Figures()
	f.ID, f.WorkerID, f.Subject = s.seat.ID, s.seat.WorkerID, s.seat.Subject
	return f, true
}

// List is one page of the sessions of a tenant, by id, those in their grace
// included: at most limit of
// those behind the id after, the zero one for the first page. more says that
// there are further ones. A session that comes or goes while pages are read is
// on one of them or on none.
func (r *Registry) List(tenant string, after wire.SessionID, limit int) (page []wire.SessionFigures, more bool) {
	for _, f := range r.lateOf(tenant) {
		if compareIDs(f.ID, after) > 0 {
			page = append(page, f)
		}
	}
	for _, s := range r.running() {
		f, ok := s.figures(tenant)
		if ok && compareIDs(f.ID, after) > 0 {
			page = append(page, f)
		}
	}
	slices.SortFunc(page, func(a, b wire.SessionFigures) int { return compareIDs(a.ID, b.ID) })
	if len(page) > limit {
		return page[:limit], true
	}
	return page, false
}

func compareIDs(a, b wire.SessionID) int { return bytes.Compare(a[:], b[:]) }
