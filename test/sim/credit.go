package sim

import (
	"codeq/shard"
	"codeq/wire"
)

// answers is a word of a worker that ends a delivery, by whatever way and
// whatever the answer is: no session keeps a credit of its room for it. All but
// the one that asks must be told.
func (m *model) answers(h *shard.Holder) {
	o, ref := h.Owner, h.TaskRef
	for m.at.effect < len(m.at.Outcome.Effects) {
		next := m.at.Outcome.Effects[m.at.effect]
		told, ok := next.Effect.(*shard.Answered)
		if !ok {
			break
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

// drain barrier is the last word of a shard on a window of 0, unless that has grown
// since.
func (m *model) drainBarrier(a *shard.DrainBarrier) {
	expect[*shard.Drained](m, a.Asker)
	s := m.consumers[a.Consumer]
	s.drained[m.at.Shard] = s.window == 0
}

func (s *consumer) isOf(o shard.Owner) bool { return s.Tenant == o.Tenant && s.Subject == o.Subject }

// answeredElsewhere gives back the credits of deliveries for which a worker has
// answered by another way.
func (c *conn) answeredElsewhere(effects []shard.Effect) {
	for _, e := range effects {
		if told, ok := e.(*shard.Answered); ok {
			c.comesBack(told.Token)
		}
	}
}

// comesBack notes that the credit of a delivery must come back now, if it is out.
func (c *conn) comesBack(token wire.Token) {
	if c.known.out[token] {
		delete(c.known.out, token)
		c.due++
	}
}

// gaveBack says that no credit came back but those, neither sooner nor twice.
func (c *conn) gaveBack() {
	if c.given != c.due && !c.talk.Over() {
		violate("credit adds up", "%d units came back to %s, and %d were due", c.given, c.client.name, c.due)
	}
}

// stops notes a request to take no more, which its answer closes, or one that
// takes it back.
func (cl *client) stops(window int, ref wire.Ref) {
	cl.stopping, cl.stopped = 0, false
	if window == 0 {
		cl.stopping = ref.Value
	}
}
