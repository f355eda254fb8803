package sim

import (
	"codeq/shard"
	"codeq/wire"
)

// answers notes that a worker ended a delivery, over a session or over HTTP and with
// any result: no session keeps a credit for it, and every session but the one that asks
// must be told.
func (m *model) answers(h *shard.Holder) {
	o, ref := h.Owner, h.TaskRef
	for m.at.effect < len(m.at.Outcome.Effects) {
		next := m.at.Outcome.Effects[m.at.effect]
		told, ok := next.Effect.(*shard.Answered)
		if !ok || h.Sink == nil && told.TaskRef != ref {
			break // a worker inside the process gets no answer, so this is of the next message
		}
		m.at.effect++
		s := m.addressee(next.Sink)
		if s == nil || next.Sink == h.Sink || !s.isOf(o) || told.TaskRef != ref {
			violate("credit adds up", "%s of %s said something of %v, and %+v was told so", o.Subject, o.Tenant, ref, told)
		}
		s.back[ref.Token] = true
	}
	if own := m.addressee(h.Sink); own != nil {
		own.back[ref.Token] = true
	}
	if t := m.tasks[ref.TaskID]; t != nil && t.tenant == o.Tenant && t.subject == o.Subject {
		m.answered[ref.Token] = true
	}
	for _, s := range m.sockets[m.at.Shard] {
		if s.isOf(o) && s.out[ref.Token] && !s.back[ref.Token] {
			violate("credit adds up", "%v has been answered for, and nobody told %s", ref, s.WorkerID)
		}
	}
}

// drainBarrier notes that a shard has sent all grants to a consumer whose window is 0. It
// notes nothing if the window has grown since.
func (m *model) drainBarrier(a *shard.DrainBarrier) {
	expect[*shard.Drained](m, a.Asker)
	s := m.consumers[a.Consumer]
	s.drained[m.at.Shard] = s.window == 0
}

func (s *consumer) isOf(o shard.Owner) bool { return s.Tenant == o.Tenant && s.Subject == o.Subject }

// answeredElsewhere notes the credits of deliveries that a worker answered over HTTP or
// another session.
func (c *conn) answeredElsewhere(effects []shard.Effect) {
	for _, e := range effects {
		if told, ok := e.(*shard.Answered); ok {
			c.comesBack(told.Token)
		}
	}
}

// comesBack notes that the credit of a delivery in flight must come back now.
func (c *conn) comesBack(token wire.Token) {
	if c.known.out[token] {
		delete(c.known.out, token)
		c.due++
	}
}

// gaveBack checks that exactly the credits that were due came back.
func (c *conn) gaveBack() {
	if c.given != c.due && !c.talk.Over() {
		violate("credit adds up", "%d credits came back to %s, and %d were due", c.given, c.client.name, c.due)
	}
}

// stops notes a request for a window of 0, which is open until its answer, or that a
// later request withdraws it.
func (cl *client) stops(window int, ref wire.Ref) {
	cl.stopping, cl.stopped = 0, false
	if window == 0 {
		cl.stopping = ref.Value
	}
}
