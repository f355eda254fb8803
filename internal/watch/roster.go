package watch

import (
	"bytes"
	"reflect"
	"slices"

	"codeq/wire"
)

const (
	// goneForMs is how long a roster knows that a session has left.
	goneForMs = 60_000
	// seenStepMs is how much later a client must have been seen for its row to be another one.
	seenStepMs = 5000
)

// roster has the sessions of a tenant as of its last look, by id.
type roster struct {
	lookedAtMs int64
	// version counts the changes; a row has the version of its last one. Sessions that left up
	// to the version forgotten have no row.
	version, forgotten uint64
	rows               []member
}

type member struct {
	wire.SessionFigures
	changed uint64
	// bytes is how long the row is as JSON.
	bytes int
	// leftAtMs is when the session was gone, 0 for one that is there.
	leftAtMs int64
}

// rosterOf are the sessions of a tenant, at most refreshForMs old.
func (b *Board) rosterOf(tenant string, nowMs int64) *roster {
	r := b.rosters[tenant]
	if r == nil {
		b.forgetRosters(nowMs)
		r = &roster{version: b.forgotten, forgotten: b.forgotten}
		b.rosters[tenant] = r
	}
	if r.rows == nil || nowMs >= r.lookedAtMs+refreshForMs {
		r.lookedAtMs = nowMs
		r.take(b.Sessions(tenant), nowMs)
	}
	return r
}

// forgetRosters drops the rosters that nobody has looked at for long.
func (b *Board) forgetRosters(nowMs int64) {
	for tenant, r := range b.rosters {
		if nowMs > r.lookedAtMs+goneForMs {
			b.forgotten = max(b.forgotten, r.version+1)
			delete(b.rosters, tenant)
		}
	}
}

// take takes the sessions of now, which are in the order of their ids.
func (r *roster) take(now []wire.SessionFigures, nowMs int64) {
	version := r.version + 1
	rows := make([]member, 0, len(now))
	add := func(m member) {
		if n := len(rows); n > 0 && rows[n-1].ID == m.ID {
			return // it was resumed while the list was made
		}
		rows = append(rows, m)
		r.version = max(r.version, m.changed)
	}
	for i := range r.rows {
		old := &r.rows[i]
		for len(now) > 0 && bytes.Compare(now[0].ID[:], old.ID[:]) < 0 {
			add(memberOf(now[0], version))
			now = now[1:]
		}
		switch {
		case len(now) > 0 && now[0].ID == old.ID:
			if old.leftAtMs != 0 || differs(&old.SessionFigures, &now[0]) {
				*old = memberOf(now[0], version)
			}
			now = now[1:]
		case old.leftAtMs == 0:
			old.leftAtMs, old.changed = nowMs, version
		case nowMs > old.leftAtMs+goneForMs:
			r.forgotten = max(r.forgotten, old.changed)
			continue
		}
		add(*old)
	}
	for i := range now {
		add(memberOf(now[i], version))
	}
	r.rows = rows
}

func memberOf(f wire.SessionFigures, version uint64) member {
	return member{SessionFigures: f, changed: version, bytes: len(wire.AppendSessionFigures(nil, &f)) + len(",")}
}

// differs reports whether a row is sent again.
func differs(old, now *wire.SessionFigures) bool {
	seen := *old
	if now.LastSeenAtMs < old.LastSeenAtMs+seenStepMs {
		seen.LastSeenAtMs = now.LastSeenAtMs
	}
	return !reflect.DeepEqual(&seen, now)
}

// takers counts the live sessions that take tasks of a command.
func (r *roster) takers(command string) (n int) {
	for i := range r.rows {
		m := &r.rows[i]
		if m.leftAtMs != 0 || m.State != wire.SessionLive || m.Window == 0 {
			continue
		}
		if slices.Contains(m.Commands, command) || slices.Contains(m.Commands, wire.AllCommands) {
			n++
		}
	}
	return n
}

// putWorkers puts sessions that changed or left into the message, of a snapshot all that are there.
func (s *Subscriber) putWorkers(nowMs int64, w *subscription) {
	r, t := s.board.rosterOf(s.rights.tenant, nowMs), &w.tables
	knows := t.sent
	if t.snapshot {
		knows = t.upTo
	}
	if knows < r.forgotten {
		t.snapshot, t.underWay = true, false
	}
	if !t.underWay {
		if !t.snapshot && (nowMs < t.tickAt || t.sent == r.version) {
			return
		}
		t.underWay, t.upTo, t.session = true, r.version, wire.SessionID{}
		t.tickAt = nowMs + wire.MinWatchEveryMs
	}
	state, done := r.rowsFor(t, s.room-fixedBytes, len(s.message) == 0)
	switch {
	case t.snapshot && (done || len(state.Sessions) > 0):
		s.put(&wire.WatchSnapshot{ID: w.ask.ID, More: !done, WatchState: state})
	case len(state.Sessions)+len(state.Left) > 0:
		s.put(&wire.WatchTick{ID: w.ask.ID, AtMs: nowMs, WatchState: state})
	}
	if done {
		t.snapshot, t.underWay, t.sent = false, false, t.upTo
	}
}

// rowsFor are the next rows for a subscription, and whether those were all. The first one comes
// also without room if it is alone in its message.
func (r *roster) rowsFor(t *tables, room int, alone bool) (state wire.WatchState, done bool) {
	if t.snapshot {
		state.Sessions = []wire.SessionFigures{}
	}
	for i := range r.rows {
		m := &r.rows[i]
		if bytes.Compare(m.ID[:], t.session[:]) <= 0 || m.changed <= t.sent && !t.snapshot || m.leftAtMs != 0 && t.snapshot {
			continue
		}
		if room -= m.bytes; room < 0 && !alone {
			return state, false
		}
		t.session, alone = m.ID, false
		if m.leftAtMs != 0 {
			state.Left = append(state.Left, m.ID.String())
		} else {
			state.Sessions = append(state.Sessions, m.SessionFigures)
		}
	}
	return state, true
}
