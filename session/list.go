package session

import (
	"bytes"
	"slices"

	"codeq/wire"
)

// profile is what a conversation only shows in lists.
type profile struct {
	openedAtMs int64
	// heardAtMs is when the client last sent anything, Unix milliseconds.
	heardAtMs int64
	window    int
	// leaving: the client has sent drain and asked for no task since.
	leaving bool
	// pingedAtMs is the time of the last ping, roundTripMs that until its pong.
	pingedAtMs, roundTripMs int64
	// completed and failed count ends of deliveries.
	completed, failed int64
}

// ended counts the end of a delivery that a shard took.
func (p *profile) ended(failed bool) {
	if failed {
		p.failed++
	} else {
		p.completed++
	}
}

// hears sets heardAtMs after an event of the client.
func (p *profile) hears(nowMs int64, e Event) {
	switch e.(type) {
	case *ClientMessage, *Ping, *Pong:
		p.heardAtMs = nowMs
	}
}

// Figures are what an admin sees of a conversation with a welcome. Whoever may Step may ask.
func (c *Conversation) Figures() wire.SessionFigures {
	f := wire.SessionFigures{
		ID: c.consumer.ID, WorkerID: c.consumer.WorkerID, Subject: c.consumer.Subject,
		Commands: slices.Clone(c.subscribed), Window: c.profile.window, Held: c.tasks.inFlight(), State: wire.SessionLive,
		ConnectedAtMs: c.profile.openedAtMs, LastSeenAtMs: c.profile.heardAtMs,
		RoundTripMs: c.profile.roundTripMs, Completed: c.profile.completed, Failed: c.profile.failed,
	}
	switch {
	case c.over:
		f.State, f.GraceUntilMs = wire.SessionGrace, c.nowMs+wire.ResumeGraceSeconds*1000
	case c.noTasks() != nil || c.profile.leaving:
		f.State = wire.SessionDraining
	}
	return f
}

// lateSession is a session that lost its socket with tasks in flight and can be resumed.
type lateSession struct {
	tenant  string
	figures wire.SessionFigures
}

// maxLate bounds the late sessions; they are kept for lists only.
const maxLate = 10_000

// late keeps a session for lists until its grace is over. r.mu is held.
func (r *Registry) late(s *session) {
	if s.consumer == nil || r.newest[s.id] != s {
		return
	}
	nowMs := r.o.NowMs()
	f := s.talk.Figures()
	if f.Held = s.talk.tasks.arrived(); f.Held == 0 {
		return
	}
	r.forgetLate(nowMs)
	if len(r.lately) < maxLate {
		r.lately[s.id] = lateSession{s.consumer.Tenant, f}
	}
}

// forgetLate removes the sessions whose grace is over, at most once a second, because it checks
// each of them. r.mu is held.
func (r *Registry) forgetLate(nowMs int64) {
	if nowMs < r.lookLateAtMs {
		return
	}
	r.lookLateAtMs = nowMs + 1000
	for id, l := range r.lately {
		if l.figures.GraceUntilMs <= nowMs {
			delete(r.lately, id)
		}
	}
}

// lateOf are the late sessions of a tenant.
func (r *Registry) lateOf(tenant string) []wire.SessionFigures {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []wire.SessionFigures
	nowMs := r.o.NowMs()
	for _, l := range r.lately {
		if l.tenant == tenant && l.figures.GraceUntilMs > nowMs {
			all = append(all, l.figures)
		}
	}
	return all
}

// figures are the figures of the session; false if it is not open or of another tenant.
func (s *session) figures(tenant string) (wire.SessionFigures, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.consumer == nil || s.consumer.Tenant != tenant || s.talk.Over() {
		return wire.SessionFigures{}, false
	}
	return s.talk.Figures(), true
}

// Drain keeps further tasks from an open session of a tenant for as long as its socket
// lasts, and returns its figures; false if there is no such session. Any goroutine.
func (r *Registry) Drain(tenant string, id wire.SessionID) (f wire.SessionFigures, ok bool) {
	return r.byAdmin(tenant, id, &adminDrains{})
}

// Disconnect closes the socket of an open session of a tenant, and returns its figures;
// false if there is no such session. Any goroutine.
func (r *Registry) Disconnect(tenant string, id wire.SessionID) (f wire.SessionFigures, ok bool) {
	return r.byAdmin(tenant, id, &adminCloses{})
}

// byAdmin steps a session by what an admin wants, and returns its figures after that.
func (r *Registry) byAdmin(tenant string, id wire.SessionID, e Event) (f wire.SessionFigures, ok bool) {
	r.mu.Lock()
	s := r.newest[id]
	r.mu.Unlock()
	if s == nil {
		return f, false
	}
	s.mu.Lock()
	if ok = s.talk.isOf(tenant); ok {
		s.step(e)
		f = s.talk.Figures()
	}
	s.wakeWriter()
	s.mu.Unlock()
	return f, ok
}

// List is one page of the sessions of a tenant, by id, with those in their grace: at most limit
// sessions after the id after, which is zero for the first page. more says that there are
// further ones. A session that begins or ends while pages are read is on one page or on none.
// Any goroutine.
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
