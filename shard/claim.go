package shard

import (
	"codeq/record"
	"codeq/wire"
)

// claim consumers somebody who asks once. The answer waits for the grant pass; see
// answerClaims.
func (s *Shard) claim(m *Claim) {
	c := claimant{asker: m.Asker, tenant: m.Consumer.Tenant, commands: m.Commands}
	if !m.CountOnly {
		s.consumer(m.Consumer, m.Commands, m.LeaseForMs)
		c.subscriber = s.bySession[m.Consumer.ID]
	}
	s.claims = append(s.claims, c)
}

// claimant is a subscriber that leaves with the answer, nil if it only looks.
type claimant struct {
	subscriber *subscriber
	asker      Asker
	tenant     string
	commands   []string
}

// readyFor is how many of some queues have tasks that may be handed out; of all
// queues of a tenant, how many stand in its ring, if one of them has.
func (s *Shard) readyFor(tenantName string, commands []string) (n int) {
	for _, command := range commands {
		if t := s.tenants[tenantName]; command == wire.AllCommands && t != nil && t.hasTurns() {
			return len(t.ready.queues)
		}
		if q := s.queues[record.QueueKey{Command: command, Tenant: tenantName}]; q != nil && q.hasTurns() {
			n++
		}
	}
	return n
}

// answerClaims lets go of everybody who asked once, with the word that this was
// all. Whoever still has credit while the pass was cut short, by its bound or by a
// head that must be read first, stays for the next round if there is anything
// for it.
func (s *Shard) answerClaims(cut bool) {
	staying := s.claims[:0]
	for _, c := range s.claims {
		ready := s.readyFor(c.tenant, c.commands)
		if cut && ready > 0 && c.subscriber != nil && c.subscriber.open {
			staying = append(staying, c)
			continue
		}
		s.tell(c.asker.Sink, &Claimed{Ref: c.asker.Ref, Ready: ready})
		if c.subscriber != nil {
			s.unseat(c.subscriber.consumer.ID)
		}
	}
	clear(s.claims[len(staying):])
	s.claims = staying
}
