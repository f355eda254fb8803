package shard

import (
	"container/list"
	"slices"

	"codeq/index"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Who wants tasks: the subscriptions of sessions and claims, and what becomes of
// their deliveries when a socket ends or another takes its place.

// subscriber is a consumer with subscriptions in this shard.
type subscriber struct {
	consumer      *Consumer
	leaseForMs    int64
	subscriptions []*subscription
	// open means the shard may ask the window for credit: the last time there was
	// some, or a credit has come since.
	open bool
	// credit counts credits that HandedCredit brought and no grant has used.
	credit int
	// reused counts credits of deliveries that ended in this round and that no grant
	// has used yet; reusedInRow counts how many were taken in a row while another
	// shard waited. See reuseCredit.
	reused      int
	reusedInRow int
	// leaked lists deliveries that the session has lost while a credit of it is still
	// taken for them; nil for none. See leak.
	leaked *list.List
	// lastGrant is the number of the newest grant to it, for turns among equals.
	lastGrant uint64
	// alone means that this shard has its window alone; see credit.Window.
	alone bool
}

// servedFrom moves a subscription behind the others of the subscriber. Their order is
// that in which its queues get their turns when it is open again.
func (mb *subscriber) servedFrom(c *subscribers) {
	i := slices.IndexFunc(mb.subscriptions, func(p *subscription) bool { return p.to == c })
	if i >= 0 && i < len(mb.subscriptions)-1 {
		p := mb.subscriptions[i]
		mb.subscriptions = append(slices.Delete(mb.subscriptions, i, i+1), p)
	}
}

// subscription is one subscriber of one queue, or of all queues of a tenant. listed
// says whether it is in the list of open ones, which drops others when it meets them.
type subscription struct {
	subscriber *subscriber
	to         *subscribers
	listed     bool
	left       bool
}

// subscribers is everybody who wants the tasks of one command of one tenant, or of
// all its commands.
type subscribers struct {
	tenant *tenant
	// queue is nil for the subscribers of every command.
	queue *queue
	// count is how many there are, open or not.
	count int
	open  []*subscription
	at    int
	// left counts the subscriptions in open that have ended.
	left int
}

// minLeft is how many ended subscriptions a list keeps before it is swept.
const minLeft = 32

// hasOpen reports whether anybody can be asked, dropping who cannot.
func (c *subscribers) hasOpen() bool {
	for len(c.open) > 0 {
		c.at %= len(c.open)
		if p := c.open[c.at]; p.subscriber.open && !p.left {
			return true
		}
		c.drop(c.at)
	}
	return false
}

// leave ends a subscription. Grants drop ended ones as they meet them, but a queue
// without a task has no grants: there each claim would leave one behind, with
// everything that its consumer holds in memory. So half of them ended is enough to
// rebuild the list.
func (c *subscribers) leave(p *subscription) {
	p.left = true
	c.count--
	if !p.listed {
		return
	}
	if c.left++; c.left <= minLeft || c.left < len(c.open)/2 {
		return
	}
	left, at := c.open[:0], 0
	for i, p := range c.open {
		if p.left {
			p.listed = false
			continue
		}
		if i < c.at {
			at++
		}
		left = append(left, p)
	}
	clear(c.open[len(left):])
	c.open, c.at, c.left = left, at, 0
}

// drop takes the place at i out of the list; the last one fills the gap.
func (c *subscribers) drop(i int) {
	c.open[i].listed = false
	if c.open[i].left {
		c.left--
	}
	last := len(c.open) - 1
	c.open[i] = c.open[last]
	c.open[last] = nil
	c.open = c.open[:last]
}

// better is the subscriber with the fewest unfinished tasks among best and the
// next most of the ring; equals go by who was served longer ago.
func (c *subscribers) better(best *subscriber, most int) *subscriber {
	best = c.best(best, most, func(*subscriber) bool { return true })
	if len(c.open) > most {
		c.at = (c.at + 1) % len(c.open)
	}
	return best
}

// idle is the subscriber that better would choose of those that have credit and to whom
// nothing is on its way.
func (c *subscribers) idle(best *subscriber, most int) *subscriber {
	return c.best(best, most, (*subscriber).isIdle)
}

func (mb *subscriber) isIdle() bool {
	return mb.consumer.Credit.IsIdle(mb.alone, mb.credit+mb.reused > 0)
}

// best looks at the next most open subscribers of the ring, and drops the places of
// others that it meets.
func (c *subscribers) best(best *subscriber, most int, may func(*subscriber) bool) *subscriber {
	for seen := 0; seen < min(len(c.open), most); {
		i := (c.at + seen) % len(c.open)
		p := c.open[i]
		if !p.subscriber.open || p.left {
			c.drop(i)
			continue
		}
		if may(p.subscriber) && (best == nil || before(p.subscriber, best)) {
			best = p.subscriber
		}
		seen++
	}
	return best
}

func before(a, b *subscriber) bool {
	inFlightA, inFlightB := a.consumer.Credit.InFlight(), b.consumer.Credit.InFlight()
	if inFlightA != inFlightB {
		return inFlightA < inFlightB
	}
	return a.lastGrant < b.lastGrant
}

// queue is one queue as grants see it. The rings say where it stands.
type queue struct {
	key         record.QueueKey
	index       *index.Queue
	tenant      *tenant
	subscribers *subscribers
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
	// expiryAtMs is when the next ended task may have to go, while expirySlot is not
	// 0; see expiry queue.
	expiryAtMs int64
	expirySlot int
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
	q.subscribers = &subscribers{tenant: t, queue: q}
	s.queues[key] = q
	return q
}

func (s *Shard) tenantOf(name string) *tenant {
	if t, ok := s.tenants[name]; ok {
		return t
	}
	t := &tenant{}
	t.wildcard.tenant = t
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
		if !known || !counters.IsZero() || q.settings.Version > 0 || q.inReady || q.inRunnable || q.subscribers.count > 0 || q.freezes > 0 {
			continue
		}
		delete(s.queues, q.key)
		s.index.Forget(q.index)
	}
	clear(s.emptied)
	s.emptied = s.emptied[:0]
}

// subscribersOf is the subscribers for a command, or for all of them.
func (s *Shard) subscribersOf(tenantName, command string) *subscribers {
	if command == wire.AllCommands {
		return &s.tenantOf(tenantName).wildcard
	}
	return s.queueOf(record.QueueKey{Command: command, Tenant: tenantName}).subscribers
}

// subscribe begins or replaces the subscriptions of a session. Tasks in flight stay.
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

// unseat ends all subscriptions of a session.
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

// sessionGone ends a socket of a session. After a resume the session has another one
// and its tasks belong to that.
func (s *Shard) sessionGone(m *SessionGone) {
	if mb := s.bySession[m.Consumer.ID]; mb != nil && mb.consumer.Epoch > m.Consumer.Epoch {
		return
	}
	s.unseat(m.Consumer.ID)
	s.socketEnded(m.Consumer, m.Code)
}

// socketEnded decides about what a session has in flight when its socket ends.
// What never arrived goes back at once; what did stays leased for the resume
// grace, or to the end of its lease if that is sooner.
func (s *Shard) socketEnded(consumer *Consumer, code uint16) {
	for _, e := range s.leases.OfSession(consumer.ID, nil) {
		if e.Gone {
			// Of an earlier socket; its grace runs already.
			continue
		}
		e.Gone, e.HasCredit = true, false
		if !e.Confirmed && s.space < store.OnlyDelete {
			s.undeliver(e, code)
			continue
		}
		if !e.Confirmed {
			// No room on the disk for the move: it lapses when leases may again; see noteStall.
			s.leases.Move(e, s.now)
			continue
		}
		s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))
	}
}

// resume gives a session a new socket. The end of the one before may not have
// been heard of yet, so it is assumed here; what had arrived over it is in flight
// again, to the end of its lease.
func (s *Shard) resume(m *Resume) {
	if mb := s.bySession[m.Consumer.ID]; mb != nil && mb.consumer.Epoch > m.Consumer.Epoch {
		// An even newer socket has come in between; nobody waits for this answer.
		s.tell(m.Sink, &Resumed{Ref: m.Ref})
		return
	}
	s.unseat(m.Consumer.ID)
	s.socketEnded(m.Consumer, 0)
	s.bySession[m.Consumer.ID] = &subscriber{consumer: m.Consumer}
	answer := &Resumed{Ref: m.Ref}
	for _, e := range s.leases.OfSession(m.Consumer.ID, nil) {
		if !e.Confirmed {
			// It is on its way back and only waits for the disk.
			continue
		}
		e.Gone, e.HasCredit = false, true
		s.leases.Move(e, e.AckedUntilMs)
		answer.Held = append(answer.Held, wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token})
	}
	s.tell(m.Sink, answer)
}

// drainBarrier answers Drained. Effects leave in order, so that arrives after every
// Granted of this consumer. Nothing follows while the window is 0: every credit
// that is out leaves the credit in debt, and with a credit in debt nothing is
// granted.
func (s *Shard) drainBarrier(m *DrainBarrier) {
	s.tell(m.Sink, &Drained{Ref: m.Ref})
}
