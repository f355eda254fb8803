package shard

import "codeq/wire"

// subscribe consumers a session, or replaces what it takes. Tasks in flight stay.
func (s *Shard) subscribe(m *Subscribe) {
	s.consumer(m.Consumer, m.Commands, m.LeaseForMs)
	s.tell(m.Sink, &Subscribed{Ref: m.Ref})
}

// consumer puts somebody into the subscribers of some commands and out of all others.
func (s *Shard) consumer(consumer *Consumer, commands []string, leaseForMs int64) {
	mb := s.bySession[consumer.ID]
	if mb == nil {
		// Who comes last stands behind those who wait: otherwise a stream of
		// claims, each new here, would always be served before a session.
		mb = &subscriber{consumer: consumer, lastGrant: s.grants}
		s.bySession[consumer.ID] = mb
	}
	if mb.consumer != consumer {
		// The session has a newer socket, which says itself what it takes.
		return
	}
	s.unsubscribe(mb)
	mb.leaseForMs = leaseForMs
	for _, command := range commands {
		c := s.subscribersOf(consumer.Tenant, command)
		c.count++
		mb.subscriptions = append(mb.subscriptions, &subscription{subscriber: mb, to: c})
	}
	s.opens(mb)
}

// opens lets a subscriber be asked again, in every subscribers it stands in.
func (s *Shard) opens(mb *subscriber) {
	mb.open = true
	for _, p := range mb.subscriptions {
		if !p.listed {
			p.listed = true
			p.to.open = append(p.to.open, p)
		}
		if p.to.queue != nil {
			s.ready(p.to.queue)
			continue
		}
		s.joinTurns(p.to.tenant)
	}
}

// handedCredit takes credits this shard waited for. What no grant of this round
// uses goes back; see returnCredit.
func (s *Shard) handedCredit(m *HandedCredit) {
	mb := s.bySession[m.Consumer.ID]
	if mb == nil || mb.consumer != m.Consumer {
		// The consumer closed meanwhile; its credits are nobody's.
		return
	}
	if mb.credit == 0 {
		s.credited = append(s.credited, mb)
	}
	mb.credit += m.Credits
	s.opens(mb)
}

// returnCredit gives back the credits that arrived and found no task. A credit that
// was alone for one that is over is shared again.
func (s *Shard) returnCredit() {
	for _, mb := range s.credited {
		if mb.alone && !mb.consumer.Credit.WaitAlone(s.shard) {
			s.share(mb)
		}
		if mb.credit > 0 {
			s.out.Unused = append(s.out.Unused, UnusedCredit{Consumer: mb.consumer, Credits: mb.credit})
			mb.credit = 0
		}
	}
	clear(s.credited)
	s.credited = s.credited[:0]
}

// unseat takes a session out of every subscribers.
func (s *Shard) unseat(id wire.SessionID) {
	mb := s.bySession[id]
	if mb == nil {
		return
	}
	s.unsubscribe(mb)
	s.dropLeaked(mb)
	mb.open, mb.alone = false, false
	mb.credit = 0
	if s.reserved == mb {
		s.reserved = nil
	}
	delete(s.bySession, id)
}

func (s *Shard) unsubscribe(mb *subscriber) {
	for _, p := range mb.subscriptions {
		p.to.leave(p)
		if p.to.queue != nil {
			s.mayBeEmpty(p.to.queue)
		}
	}
	mb.subscriptions = nil
}
