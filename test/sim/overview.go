package sim

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"codeq/internal/needs"
	"codeq/record"
	"codeq/wire"
)

const (
	// waitsMs is how long a task must have been ready until its queue needs something.
	waitsMs = 10_000
	// seenMs is how much later a client must have been seen for its row to come again.
	seenMs = 5000
	// secret is the text of an error in what is told of dead letters.
	secret = "the card of the customer"
)

// served is what the board has looked up for kind server: figures, and what queues need, each with
// the tenant of its queue and without the sentence.
type served struct {
	atMs    int64
	figures wire.ServerFigures
	needs   []wire.Need
}

// sessions are the sessions of a tenant, as a registry lists them, held against what the model
// knows of each.
func (a *audience) sessions(tenant string) (list []wire.SessionFigures) {
	for _, c := range a.world.conns {
		if c.known == nil || c.client.tenant != tenant || c.talk.Over() || a.world.newest[c.consumer.ID] != c {
			continue
		}
		f := c.talk.Figures()
		if f.ID != c.known.ID || f.WorkerID != c.client.name || f.Subject != c.client.subject || f.Window != c.known.window || f.Held < 0 {
			violate("a session is shown as it is", "%s of %s with a window of %d is %+v", c.client.name, c.client.subject, c.known.window, f)
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b wire.SessionFigures) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	a.rosters[tenant] = slices.Clone(list)
	return list
}

// serverFigures are figures of the server. The board asks for them when it looks at what is needed.
func (a *audience) serverFigures(nowMs int64) wire.ServerFigures {
	guard := a.world.server.store.Guard()
	f := wire.ServerFigures{
		Version: "sim", Durability: "fsync", StartedAtMs: epochMs, Sessions: len(a.world.conns), Subscribers: len(a.viewers),
		DiskGuard: guard.Level().String(), DiskFreeBytes: guard.FreeBytes(), CommitsPer: int64(a.world.rounds),
	}
	for shard := range a.world.shape.shards {
		f.Shards = append(f.Shards, wire.ShardFigures{Messages: a.world.server.engine.MailboxFigures(shard).Depth})
	}
	a.served = &served{atMs: nowMs, figures: f, needs: a.needs(nowMs)}
	return f
}

// needs are what the board as of its last refresh says that people should look at, but for trends.
func (a *audience) needs(nowMs int64) (list []wire.Need) {
	if level := a.world.server.store.Guard().Level(); level > 0 {
		list = append(list, wire.Need{Severity: wire.NeedCritical, Reason: wire.NeedDisk})
	}
	for q, row := range a.shown.rows {
		x, ready, oldest := a.paces.queues[q], row[wire.FigureReady], row[wire.FigureOldestReadyAt]
		n := wire.Need{Tenant: q.Tenant, Command: q.Command, State: wire.StateReady, Count: ready, SinceMs: oldest}
		switch waits := ready > 0 && oldest != 0 && nowMs >= oldest+waitsMs; {
		case waits && row[wire.FigurePaused] != 0:
			n.Severity, n.Reason = wire.NeedNotice, wire.NeedPaused
			list = append(list, n)
		case waits && row[wire.FigureStartedPer] == 0 && x.started == 0:
			n.Severity, n.Reason = wire.NeedCritical, wire.NeedNoWorker
			list = append(list, n)
		}
		n.State, n.Count, n.SinceMs, n.Severity = wire.StateDead, row[wire.FigureDead], 0, wire.NeedWarning
		if n.Reason = wire.NeedDead; n.Count > 0 {
			list = append(list, n)
		}
		n.State, n.Reason, n.Count = "", wire.NeedSetAside, x.unreadable+x.suspect
		if n.Count > 0 {
			list = append(list, n)
		}
	}
	return list
}

// deadLetters tells of the dead letters of a queue.
func (a *audience) deadLetters(wire.SlotName) needs.DeadLetters {
	return needs.DeadLetters{SinceMs: epochMs, Reason: secret, Of: 3, Same: 2}
}

// slow tells of deliveries that run for long. Which ones do is a matter of package needs.
func (a *audience) slow(_ wire.SlotName, beforeMs int64) needs.Slow {
	return needs.Slow{Count: 1, SinceMs: beforeMs}
}

// takesSessions takes rows of sessions.
func (v *viewer) takesSessions(w *view, state *wire.WatchState, m *message, begins bool) {
	if begins && (w.whole || w.sessions == nil) {
		w.sessions = make(map[wire.SessionID]wire.SessionFigures)
	}
	if !begins {
		if !w.whole {
			violate("a snapshot comes before its ticks", "%s has a tick of %s", v.name, w.ask.ID)
		}
		if w.tickedMs != 0 && m.atMs < w.tickedMs+wire.MinWatchEveryMs {
			violate("a client gets no more than it asks for", "%s got sessions at %d and %d", v.name, w.tickedMs, m.atMs)
		}
		w.tickedMs = m.atMs
	}
	for _, text := range state.Left {
		id, ok := wire.ParseSessionID(text)
		if _, had := w.sessions[id]; !ok || begins {
			violate("sessions that end are said", "%s is told that %s has left, and had it: %v", v.name, text, had)
		}
		delete(w.sessions, id)
	}
	for _, s := range state.Sessions {
		w.sessions[s.ID] = s
	}
}

// differsInSessions compares the sessions of a client with those that the board was told of last.
func (v *viewer) differsInSessions(w *view) bool {
	want := v.audience.rosters[v.tenant]
	if len(want) != len(w.sessions) {
		return true
	}
	for _, s := range want {
		got, had := w.sessions[s.ID]
		if !had || s.LastSeenAtMs < got.LastSeenAtMs || s.LastSeenAtMs >= got.LastSeenAtMs+seenMs {
			return true
		}
		got.LastSeenAtMs = s.LastSeenAtMs
		if got.Commands == nil {
			got.Commands = []string{}
		}
		if s.Commands == nil {
			s.Commands = []string{}
		}
		if !reflect.DeepEqual(got, s) {
			return true
		}
	}
	return false
}

// takesServer holds the figures of the server, and what is needed, against what the board was told
// and shows.
func (v *viewer) takesServer(w *view, state *wire.WatchState, m *message) {
	want := m.served
	if state.Server == nil || !reflect.DeepEqual(*state.Server, want.figures) {
		violate("the server is shown as it is", "%s got %+v, want %+v", v.name, state.Server, want.figures)
	}
	if w.servedMs != 0 && m.atMs < w.servedMs+secondMs {
		violate("a client gets no more than it asks for", "%s got the server at %d and %d", v.name, w.servedMs, m.atMs)
	}
	w.servedMs = want.atMs
	left := slices.DeleteFunc(slices.Clone(want.needs), func(n wire.Need) bool { return n.Command != "" && !v.rights.sees(n.Tenant) })
	for _, n := range state.Needs {
		// Since when is known once the server has looked at the dead letters.
		mayTell := n.Reason == wire.NeedDead && n.SinceMs != 0 && v.rights.admin()
		if strings.Contains(n.Sentence, secret) != mayTell {
			violate("a need is told as the rights say", "%s of %s is told %+v", v.name, v.rights.scope, n)
		}
		if n.Reason == wire.NeedSlow && (n.SinceMs > m.atMs-60_000 || n.Count != 1) {
			violate("a need is told as the rights say", "%s is told %+v at %d", v.name, n, m.atMs)
		}
		if n.Reason == wire.NeedGrowing || n.Reason == wire.NeedSlow {
			continue
		}
		if n.Command != "" && n.Tenant == "" {
			n.Tenant = v.tenant
		}
		if n.Reason == wire.NeedDead {
			n.SinceMs = 0
		}
		n.Sentence = ""
		i := slices.Index(left, n)
		if i < 0 {
			violate("what is needed is said", "%s of %+v is told %+v, want one of %+v", v.name, v.rights, n, left)
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		violate("what is needed is said", "%s of %+v is not told %+v", v.name, v.rights, left)
	}
}

// row is what a board must show of a queue.
func (a *audience) row(q record.QueueKey, tasks wire.Figures) wire.Figures {
	row := a.paces.queues[q].row
	copy(row[:wire.FigureInPer], tasks[:wire.FigureInPer])
	row[wire.FigureLimited] = tasks[wire.FigureLimited]
	return row
}
