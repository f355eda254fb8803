package shard

import (
	"container/list"
	"slices"

	"codeq/index"
	"codeq/record"
	"codeq/wire"
)

// member is a session seated in this shard.
type member struct {
	seat       *Seat
	leaseForMs int64
	places     []*place
	// open means the shard may ask the seat for room: the last time it asked
	// it was not turned away, or a unit came since.
	open bool
	// credit counts units that room messages carried and no grant has used.
	credit int
	// kept counts units of deliveries that ended in this round and that no grant
	// has used; keptInRow counts those kept while another shard waited. See
	// keepUnit.
	kept      int
	keptInRow int
	// owed are the deliveries, of those that it carries no longer, that a unit of
	// its room is out for; nil for none. See owe.
	owed *list.List
	// lastGrant is the number of the newest grant to it, for turns among equals.
	lastGrant uint64
	// alone means that this shard has its room alone; see takeAlone.
	alone bool
}

// servedFrom puts a place behind the others of the member, in whose order its
// queues get their turns when it is open again.
func (mb *member) servedFrom(c *crowd) {
	i := slices.IndexFunc(mb.places, func(p *place) bool { return p.crowd == c })
	if i >= 0 && i < len(mb.places)-1 {
		p := mb.places[i]
		mb.places = append(slices.Delete(mb.places, i, i+1), p)
	}
}

// place is one member in one crowd. listed says whether it stands in the
// crowd's list, from which members that are not open drop out lazily.
type place struct {
	member *member
	crowd  *crowd
	listed bool
	left   bool
}

// crowd is everybody who wants the tasks of one command of one tenant, or of
// all its commands.
type crowd struct {
	tenant *tenant
	// queue is nil for the crowd that takes every command.
	queue *queue
	// members counts who stands in it, open or not.
	members int
	open    []*place
	at      int
	// left counts the places in open whose member has left.
	left int
}

// keptLeft is how many places whose member has left a crowd keeps at least.
const keptLeft = 32

// hasOpen reports whether anybody can be asked, dropping who cannot.
func (c *crowd) hasOpen() bool {
	for len(c.open) > 0 {
		c.at %= len(c.open)
		if p := c.open[c.at]; p.member.open && !p.left {
			return true
		}
		c.drop(c.at)
	}
	return false
}

// leave takes a place from its member. Grants drop such places as they meet them,
// but a queue without a task has no grants, and whoever asks it again and again
// must not be kept once for each time, with all that was handed out there.
func (c *crowd) leave(p *place) {
	p.left = true
	c.members--
	if !p.listed {
		return
	}
	if c.left++; c.left <= keptLeft || c.left < len(c.open)/2 {
		return
	}
	kept, at := c.open[:0], 0
	for i, p := range c.open {
		if p.left {
			p.listed = false
			continue
		}
		if i < c.at {
			at++
		}
		kept = append(kept, p)
	}
	clear(c.open[len(kept):])
	c.open, c.at, c.left = kept, at, 0
}

// drop takes the place at i out of the list; the last one fills the gap.
func (c *crowd) drop(i int) {
	c.open[i].listed = false
	if c.open[i].left {
		c.left--
	}
	last := len(c.open) - 1
	c.open[i] = c.open[last]
	c.open[last] = nil
	c.open = c.open[:last]
}

// better is the member with the fewest unfinished tasks among best and the
// next most of the ring; equals go by who was served longer ago.
func (c *crowd) better(best *member, most int) *member {
	best = c.best(best, most, func(*member) bool { return true })
	if len(c.open) > most {
		c.at = (c.at + 1) % len(c.open)
	}
	return best
}

// idle is the member that better would choose of those that have room and to whom
// nothing is on its way.
func (c *crowd) idle(best *member, most int) *member { return c.best(best, most, (*member).isIdle) }

func (mb *member) isIdle() bool { return mb.seat.Credit.IsIdle(mb.alone, mb.credit+mb.kept > 0) }

// best looks at the next most open members of the ring, and drops the places of
// others that it meets.
func (c *crowd) best(best *member, most int, may func(*member) bool) *member {
	for looked := 0; looked < min(len(c.open), most); {
		i := (c.at + looked) % len(c.open)
		p := c.open[i]
		if !p.member.open || p.left {
			c.drop(i)
			continue
		}
		if may(p.member) && (best == nil || before(p.member, best)) {
			best = p.member
		}
		looked++
	}
	return best
}

func before(a, b *member) bool {
	inHandA, inHandB := a.seat.Credit.InHand(), b.seat.Credit.InHand()
	if inHandA != inHandB {
		return inHandA < inHandB
	}
	return a.lastGrant < b.lastGrant
}

// queue is one queue as grants see it. The rings say where it stands.
type queue struct {
	key    record.QueueKey
	index  *index.Queue
	tenant *tenant
	crowd  *crowd
	// settings are the shard's copy; while they pause it the queue stands in no
	// ring.
	settings record.Settings
	// atHome: this shard is the home of the queue.
	atHome bool
	// freezes counts the changes for which the queue must stay empty here; see
	// freeze.
	freezes    int
	inReady    bool
	inRunnable bool
	// reapAtMs is when the next ended task may have to go, while reapSlot is not
	// 0; see reaps.
	reapAtMs int64
	reapSlot int
	// failedAfter is how far letters that failed for good have been looked for, so
	// that others of the same millisecond are not read again; zero for not at all.
	failedAfter record.TimedKey
	// stalled: its head must be read from the store first, so it has no turn
	// for the rest of this round.
	stalled bool
}

// queueOf finds or makes the queue.
func (s *Shard) queueOf(key record.QueueKey) *queue {
	if q, ok := s.queues[key]; ok {
		return q
	}
	t := s.tenantOf(key.Tenant)
	q := &queue{key: key, index: s.index.Queue(key), tenant: t}
	q.atHome = wire.ShardOfQueue(key.Tenant, key.Command, s.shards) == s.shard
	q.crowd = &crowd{tenant: t, queue: q}
	s.queues[key] = q
	return q
}

func (s *Shard) tenantOf(name string) *tenant {
	if t, ok := s.tenants[name]; ok {
		return t
	}
	t := &tenant{}
	t.wild.tenant = t
	s.tenants[name] = t
	return t
}

// mayBeEmpty marks a queue that may hold nothing any more; see forgetEmpty.
func (s *Shard) mayBeEmpty(q *queue) { s.emptied = append(s.emptied, q) }

// forgetEmpty drops queues without a task, a subscriber or a place in a ring,
// so that names which come and go do not stay in memory.
func (s *Shard) forgetEmpty() {
	for _, q := range s.emptied {
		counters := q.index.Counters()
		known := s.queues[q.key] == q
		if !known || !counters.IsZero() || q.settings.Version > 0 || q.inReady || q.inRunnable || q.crowd.members > 0 || q.freezes > 0 {
			continue
		}
		delete(s.queues, q.key)
		s.index.Forget(q.index)
	}
	clear(s.emptied)
	s.emptied = s.emptied[:0]
}

// crowdOf is the crowd for a command, or for all of them.
func (s *Shard) crowdOf(tenantName, command string) *crowd {
	if command == wire.AllCommands {
		return &s.tenantOf(tenantName).wild
	}
	return s.queueOf(record.QueueKey{Command: command, Tenant: tenantName}).crowd
}
