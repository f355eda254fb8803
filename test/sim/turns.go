package sim

import (
	"fmt"

	"codeq/index"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// Turns go round. While a round is cut short by its bound, somebody waits for
// the next one, and it shows who comes first: every tenant that could be served
// has had a turn before another has its second, and so has every queue of a
// tenant. In a round that grants all tasks for which there is credit, the order
// within it decides nothing.

// turns is, for each tenant and each of its queues, how many grants in a row have
// gone to others while it could have been served.
type turns struct {
	tenants []int
	queues  [][]int
	// unread is how many rounds more a shard may need until it has read the heads
	// of all queues after its start. A queue whose head is not read has no turn.
	unread int
}

// unreadMost is more than the number of orders, of which each round reads one at
// least.
const unreadMost = 64

func newTurns(shards int) []turns {
	all := make([]turns, shards)
	for shard := range all {
		all[shard] = turns{tenants: make([]int, len(tenants)), queues: make([][]int, len(tenants)), unread: unreadMost}
		for tenant := range tenants {
			all[shard].queues[tenant] = make([]int, len(commands))
		}
	}
	return all
}

// hadTurn notes that a queue has had its turn: its head was handed out, or made
// way.
func (m *model) hadTurn(t *task) {
	turns := &m.turns[t.shard]
	for n, tenant := range tenants {
		if tenant != t.tenant {
			turns.tenants[n]++
			continue
		}
		turns.tenants[n] = 0
		for q, command := range commands {
			turns.queues[n][q]++
			if command == t.command {
				turns.queues[n][q] = 0
			}
		}
	}
}

// fairlyShared looks who was left to wait by a round that was cut short. Of a
// tenant that cannot be served nothing is counted.
func (m *model) fairlyShared() {
	turns := &m.turns[m.at.Shard]
	turns.unread = max(turns.unread-1, 0)
	cut := m.at.Outcome.Again && m.at.Space < store.NoGrant && turns.unread == 0 && m.turnsShow
	for n, tenant := range tenants {
		served := false
		for q, command := range commands {
			if !cut || !m.couldBeServed(tenant, command) {
				turns.queues[n][q] = 0
				continue
			}
			served = true
			// A tenant has two rings, and somebody who takes all of its tasks may come
			// and go, so a turn may be missed once in each.
			if turns.queues[n][q] > 2*(len(commands)-1) {
				violate("no queue waits for the backlog of another", "%d tasks of tenant %s went out and none of queue %s", turns.queues[n][q], tenant, command)
			}
		}
		if !served {
			turns.tenants[n] = 0
		}
		// A shard knows of credit that returns in a round without grants one round
		// later, so a tenant may also miss one turn.
		if turns.tenants[n] > 2*(len(tenants)-1) {
			violate("no tenant waits for the backlog of another", "%d tasks of others went out and none of %s", turns.tenants[n], tenant)
		}
	}
}

// couldBeServed reports whether a queue has a task and a session has credit for it
// during the whole round: a credit that is free at the end was free all the time.
func (m *model) couldBeServed(tenant, command string) bool {
	t := m.head(m.at.Shard, tenant, command)
	if t == nil || m.holdsBack(t) || t.isPast(m.at.NowMs) {
		return false
	}
	for _, s := range m.sockets[m.at.Shard] {
		if s.Tenant != tenant || !s.takes(m.at.Shard, command) || s.closed || s.alone || !m.isShared(s) {
			continue
		}
		if s.InFlight() < s.window && s.untaken < s.bound {
			return true
		}
	}
	return false
}

// turnsShow reports whether each missed turn is a fault: all queues are in memory, so
// each has its turn, and a round takes all waiting messages, so it knows all credit.
func (s *shape) turnsShow() bool {
	d := &shard.DefaultLimits
	return s.index == index.Limits{} && s.limits.Messages == d.Messages && s.limits.BatchBytes == d.BatchBytes
}

// uneven makes a world of several tenants of which some have long backlogs, in a
// server whose rounds hand out little.
func (s *shape) uneven(c *chance) {
	s.tenants, s.index, s.mailbox = tenants, index.Limits{}, roomy
	s.limits.Messages, s.limits.BatchBytes = shard.DefaultLimits.Messages, shard.DefaultLimits.BatchBytes
	s.limits.Grants = 1 + c.IntN(3)
	flood := operation{name: "flood", weight: 160, do: (*world).floodSome}
	s.operations = append(s.operations, flood)
	s.total += flood.weight
}

// floodSome is one tenant that posts many tasks to one queue beside others that
// post few.
func (w *world) floodSome() {
	c := w.chance
	long := record.QueueKey{Command: pick(c, busy), Tenant: pick(c, w.shape.tenants)}
	for _, tenant := range w.shape.tenants {
		for _, command := range busy {
			n := c.IntN(3)
			if long.Command == command && long.Tenant == tenant {
				n = 16
			}
			for range n {
				w.drawn++
				(&request{world: w, body: wire.EnqueueRequest{
					Command: command, MaxAttempts: 2, Payload: fmt.Appendf(nil, `{"tenant":%q,"n":%d}`, tenant, w.drawn),
				}}).post()
			}
		}
	}
}
