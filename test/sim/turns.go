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
	// at is the tenant whose turns are now, row how many it has had, ended those of the round
	// that are over. short is how often in a row those of a tenant were fewer than its weight.
	at, row int
	ended   []row
	short   []int
}

// row is the turns that a tenant has had one after another.
type row struct{ tenant, turns int }

// shortMost is how often in a row a tenant may have fewer turns than its weight: one that
// finds no credit is lost, and one that it leaves begins anew.
const shortMost = 6

// unreadMost is more than the number of orders, of which each round reads one at
// least.
const unreadMost = 64

func newTurns(shards int) []turns {
	all := make([]turns, shards)
	for shard := range all {
		all[shard] = turns{tenants: make([]int, len(tenants)), queues: make([][]int, len(tenants)), unread: unreadMost, short: make([]int, len(tenants))}
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
		if turns.at != n {
			turns.ended = append(turns.ended, row{turns.at, turns.row})
			turns.at, turns.row = n, 0
		}
		turns.row++
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
		m.weighed(turns, n, served)
		// A shard knows of credit that returns in a round without grants one round
		// later, so a tenant may also miss one turn.
		others := 0
		for o, other := range tenants[:m.tenants] {
			if o != n {
				others += m.weightOf(m.at.Shard, other)
			}
		}
		if turns.tenants[n] > 2*others {
			violate("no tenant waits for the backlog of another", "%d tasks of others went out and none of %s", turns.tenants[n], tenant)
		}
	}
	turns.ended = turns.ended[:0]
}

// weighed looks whether a tenant has had as many turns in a row as its weight says.
func (m *model) weighed(turns *turns, n int, served bool) {
	weight := m.weightOf(m.at.Shard, tenants[n])
	for _, r := range turns.ended {
		switch {
		case r.tenant != n:
		case !served || r.turns >= weight:
			turns.short[n] = 0
		default:
			turns.short[n]++
		}
	}
	if turns.short[n] > shortMost {
		violate("a tenant has as many turns as its weight", "%s has had fewer than %d turns in a row, %d times", tenants[n], weight, turns.short[n])
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

// showTurns makes each missed turn a fault.
func (s *shape) showTurns() {
	s.index, s.mailbox = index.Limits{}, roomy
	s.limits.Messages, s.limits.BatchBytes = shard.DefaultLimits.Messages, shard.DefaultLimits.BatchBytes
}

// uneven makes a world of several tenants of which some have long backlogs, in a
// server whose rounds hand out little.
func (s *shape) uneven(c *chance) {
	s.tenants = tenants[:3]
	s.showTurns()
	s.limits.Grants = 1 + c.IntN(3)
	s.adds(operation{name: "flood", weight: 160, do: (*world).floodSome})
}

// crowded makes a world of more tenants, each with a worker, in one shard that hands out
// little. A tenant that comes back can come before another one again and again only
// between the tasks of a third one, so that needs four.
func (s *shape) crowded() {
	s.showTurns()
	s.tenants, s.shards, s.workers = tenants, 1, max(s.workers, 4)
	s.limits.Grants, s.limits.Due, s.limits.UntakenBytes = 2, 1, shard.DefaultLimits.UntakenBytes
	for i := range s.operations {
		// Queues are not paused, and the disk has space.
		if o := &s.operations[i]; o.name == "configure" || o.name == "space" {
			s.total, o.weight = s.total-o.weight, 0
		}
	}
	s.adds(operation{name: "come back", weight: 30, do: (*world).comeBackSome})
}

func (s *shape) adds(o operation) {
	s.operations = append(s.operations, o)
	s.total += o.weight
}

// comeBackSome is two tenants that have backlogs, and two that come back in turn, one in each
// round, each time with one task that falls due.
func (w *world) comeBackSome() {
	c := w.chance
	command := pick(c, busy[:2])
	w.sync()
	for _, cl := range w.clients {
		if !cl.produces {
			cl.takesMore(command)
		}
	}
	post := func(tenant string, atMs int64) {
		w.drawn++
		(&request{world: w, body: labelled(wire.EnqueueRequest{
			Command: command, MaxAttempts: 2, RunAtMs: atMs, Payload: fmt.Appendf(nil, `{"tenant":%q,"n":%d}`, tenant, w.drawn),
		})}).post()
	}
	order := c.Perm(len(w.shape.tenants))
	for n := range 12 {
		post(w.shape.tenants[order[2+n%2]], w.nowMs+1000+int64(n))
	}
	w.runSome()
	for range 12 {
		post(w.shape.tenants[order[0]], 0)
		post(w.shape.tenants[order[1]], 0)
	}
	w.nowMs += 2000
	w.runSome()
}

// takesMore finishes what the client has, and asks for tasks of one queue with much room.
func (cl *client) takesMore(command string) {
	if cl.conn == nil {
		cl.connect()
	}
	cl.world.listen(cl)
	for range len(cl.conn.toClient) {
		cl.read()
	}
	if cl.conn == nil {
		return // the server has closed the socket
	}
	cl.finishAll()
	f := &wire.Subscribe{Commands: []string{command}, LeaseSeconds: 60, Window: 40}
	if known := cl.conn.known; known != nil {
		f.Window += len(known.out)
	}
	cl.resized(f.Window)
	f.Ref = cl.expects(f, wire.TaskRef{})
	cl.stops(f.Window, f.Ref)
	cl.say(f)
	cl.world.listen(cl)
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
				(&request{world: w, body: labelled(wire.EnqueueRequest{
					Command: command, MaxAttempts: 2, Payload: fmt.Appendf(nil, `{"tenant":%q,"n":%d}`, tenant, w.drawn),
				})}).post()
			}
		}
	}
}
