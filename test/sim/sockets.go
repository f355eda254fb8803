package sim

import (
	"slices"

	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// subscribe is a word of the socket that the shard knows; one that was replaced
// has nothing to say any more.
func (m *model) subscribe(a *shard.Subscribe) {
	sockets := m.sockets[m.at.Shard]
	if sockets[a.Consumer.ID] == nil {
		sockets[a.Consumer.ID] = m.consumers[a.Consumer]
	}
	if s := sockets[a.Consumer.ID]; s == m.consumers[a.Consumer] {
		s.subscribed[m.at.Shard] = subscription{true, a.Commands, a.LeaseForMs}
		s.idleSinceMs = 0
	}
	expect[*shard.Subscribed](m, a.Asker)
}

// sessionGone is the end of a socket, unless a newer one has taken its place.
func (m *model) sessionGone(a *shard.SessionGone) {
	s := m.sockets[m.at.Shard][a.Consumer.ID]
	if s != nil && s.Epoch > a.Consumer.Epoch {
		return
	}
	m.socketEnded(a.Consumer.ID)
}

// resume gives a session another socket. It has in flight what had arrived and
// was not lost since, to the end of its lease.
func (m *model) resume(a *shard.Resume) {
	s := m.sockets[m.at.Shard][a.Consumer.ID]
	if s != nil && s.Epoch > a.Consumer.Epoch {
		expect[*shard.Resumed](m, a.Asker)
		return
	}
	m.socketEnded(a.Consumer.ID)
	m.sockets[m.at.Shard][a.Consumer.ID] = m.consumers[a.Consumer]
	said := expect[*shard.Resumed](m, a.Asker)
	var held []wire.TaskRef
	for _, t := range m.leased[m.at.Shard] {
		if t.session != a.Consumer.ID || !t.confirmed {
			continue
		}
		m.touch(t)
		t.gone, t.lapseMs = false, t.until(t.ackedMs)
		held = append(held, wire.TaskRef{TaskID: t.id, Token: t.token})
	}
	for _, ref := range held {
		if !slices.Contains(said.Held, ref) {
			violate("a resumed session has its tasks", "want %v, told %v", held, said.Held)
		}
	}
	if len(held) != len(said.Held) {
		violate("a resumed session has its tasks", "want %v, told %v", held, said.Held)
	}
}

// socketEnded: what never arrived goes back at once, what did has the grace.
func (m *model) socketEnded(id wire.SessionID) {
	if s := m.sockets[m.at.Shard][id]; s != nil {
		s.subscribed[m.at.Shard].on = false
		delete(m.sockets[m.at.Shard], id)
	}
	var back []*task
	for _, t := range m.leased[m.at.Shard] {
		if t.session != id || t.gone {
			continue
		}
		m.touch(t)
		t.gone = true
		switch {
		case t.confirmed:
			t.lapseMs = t.until(min(t.ackedMs, m.at.NowMs+graceMs))
		case m.at.Space >= store.OnlyDelete:
			t.lapseMs = m.at.NowMs
		default:
			back = append(back, t)
		}
	}
	// In which order they go back is not promised.
	for range back {
		e := m.peek()
		t := m.tasks[e.TaskID]
		if !slices.Contains(back, t) {
			violate("what never arrived goes back at once", "%d tasks of %v, got %+v", len(back), id, e)
		}
		m.takeBack(t)
	}
}

// carried says whose socket keeps a delivery after a heartbeat with its token:
// the one that sent it. The one that had it is told. A call over HTTP takes it
// from a session that is gone, and then nobody's socket can end.
func (m *model) carried(a *shard.Heartbeat, t *task) {
	if a.Consumer == nil {
		if t.gone {
			t.session = wire.SessionID{}
		}
		return
	}
	if t.session == a.Consumer.ID {
		return
	}
	had := m.sockets[m.at.Shard][t.session]
	t.session, t.worker = a.Consumer.ID, a.Consumer.WorkerID
	if had == nil || t.gone {
		return
	}
	ref := wire.TaskRef{TaskID: t.id, Token: t.token}
	if r := expect[*shard.Revoked](m, shard.Asker{Sink: had.Sink}); r.TaskRef != ref || r.Reason != wire.RevokedSuperseded {
		violate("a worker is told what it lost", "%v, told %+v", ref, r)
	}
}
