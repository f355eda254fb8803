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

// List is one page of the open sessions of a tenant, by id: at most limit of
// those behind the id after, the zero one for the first page. more says that
// there are further ones. A session that comes or goes while pages are read is
// on one of them or on none.
func (r *Registry) List(tenant string, after wire.SessionID, limit int) (page []wire.SessionFigures, more bool) {
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
