package shard

import (
	"container/list"
	"slices"

	"codeq/index"
	"codeq/internal/heap"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// The subscriptions of sessions and claims, and their deliveries when a socket ends
// or another replaces it.

// subscriber is a consumer with subscriptions in this shard.
type subscriber struct {
	consumer      *Consumer
	leaseForMs    int64
	subscriptions []*subscription
	// open reports that the shard may ask the window for credit: it had some the
	// last time, or HandedCredit came since.
	open bool
	// credit counts credits that HandedCredit brought and no grant has used.
	credit int
	// reused counts credits of deliveries that ended in this round and that no grant
	// has used yet; reusedInRow counts how many were taken in a row while another
	// shard waited. See reuseCredit.
	reused      int
	reusedInRow int
	// leaked lists the deliveries that the session has lost and whose credit is
	// still taken; nil for none. See leak.
	leaked *list.List
	// lastGrantNo is the number of the newest grant to it; among equals the lowest is
	// granted next.
	lastGrantNo uint64
	// ownsWindow reports that this shard has its window alone; see credit.Window.
	ownsWindow bool
}

// moveBehind moves a subscription behind the others of the subscriber. When the
// subscriber opens again its queues get their turns in this order.
func (sub *subscriber) moveBehind(subs *subscribers) {
	i := slices.IndexFunc(sub.subscriptions, func(one *subscription) bool { return one.to == subs })
	if i >= 0 && i < len(sub.subscriptions)-1 {
		one := sub.subscriptions[i]
		sub.subscriptions = append(slices.Delete(sub.subscriptions, i, i+1), one)
	}
}

// subscription is one subscriber of one queue, or of all queues of a tenant. listed
// reports whether it is in the list of open ones; best drops closed ones from that
// list.
type subscription struct {
	subscriber *subscriber
	to         *subscribers
	listed     bool
	ended      bool
}

// subscribers are the subscriptions of one command of one tenant, or of all its
// commands.
type subscribers struct {
	tenant *tenant
	// queue is nil for the subscribers of every command.
	queue *queue
	// count counts them, open or not.
	count int
	open  []*subscription
	at    int
	// endedInOpen counts the subscriptions in open that have ended.
	endedInOpen int
}

// minEnded is how many ended subscriptions a list keeps before leave rebuilds it.
const minEnded = 32

// hasOpen reports whether a subscriber is open, and drops closed ones from the
// list.
func (subs *subscribers) hasOpen() bool {
	for len(subs.open) > 0 {
		subs.at %= len(subs.open)
		if one := subs.open[subs.at]; one.subscriber.open && !one.ended {
			return true
		}
		subs.drop(subs.at)
	}
	return false
}

// leave ends a subscription. Grants drop ended ones from the list, but a queue
// without a task has no grants: each claim would leave one there, with the memory
// of its consumer. So leave rebuilds the list when half of it has ended.
func (subs *subscribers) leave(one *subscription) {
	one.ended = true
	subs.count--
	if !one.listed {
		return
	}
	if subs.endedInOpen++; subs.endedInOpen <= minEnded || subs.endedInOpen < len(subs.open)/2 {
		return
	}
	live, at := subs.open[:0], 0
	for i, one := range subs.open {
		if one.ended {
			one.listed = false
			continue
		}
		if i < subs.at {
			at++
		}
		live = append(live, one)
	}
	clear(subs.open[len(live):])
	subs.open, subs.at, subs.endedInOpen = live, at, 0
}

// drop removes the subscription at i; the last one takes its index.
func (subs *subscribers) drop(i int) {
	subs.open[i].listed = false
	if subs.open[i].ended {
		subs.endedInOpen--
	}
	last := len(subs.open) - 1
	subs.open[i] = subs.open[last]
	subs.open[last] = nil
	subs.open = subs.open[:last]
}

// better is the subscriber with the fewest unfinished tasks among best and the next
// most of the ring; among equals, the one whose newest grant is older.
func (subs *subscribers) better(best *subscriber, most int) *subscriber {
	best = subs.best(best, most, func(*subscriber) bool { return true })
	if len(subs.open) > most {
		subs.at = (subs.at + 1) % len(subs.open)
	}
	return best
}

// idle is the subscriber that better would choose among those with credit and
// nothing in flight.
func (subs *subscribers) idle(best *subscriber, most int) *subscriber {
	return subs.best(best, most, (*subscriber).isIdle)
}

func (sub *subscriber) isIdle() bool {
	return sub.consumer.Credit.IsIdle(sub.ownsWindow, sub.credit+sub.reused > 0)
}

// best compares the next most open subscribers of the ring, and drops closed ones
// from it.
func (subs *subscribers) best(best *subscriber, most int, may func(*subscriber) bool) *subscriber {
	for seen := 0; seen < min(len(subs.open), most); {
		i := (subs.at + seen) % len(subs.open)
		one := subs.open[i]
		if !one.subscriber.open || one.ended {
			subs.drop(i)
			continue
		}
		if may(one.subscriber) && (best == nil || before(one.subscriber, best)) {
			best = one.subscriber
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
	return a.lastGrantNo < b.lastGrantNo
}

// queue is one queue as grants see it.
type queue struct {
	key record.QueueKey
	// number names the queue in events; it is not that of its keys in the store.
	number      uint32
	index       *index.Queue
	tenant      *tenant
	subscribers *subscribers
	// settings are the shard's copy. While they pause the queue it is in no ring.
	settings record.Settings
	// atHome: this shard is the home of the queue.
	atHome bool
	// system: the queue is one of the server.
	system bool
	// freezes counts the changes that keep the queue empty here; see freeze.
	freezes    int
	inReady    bool
	inRunnable bool
	// removal is the place in Shard.removalQueue, by when the queue must be scanned for
	// ended tasks to remove.
	removal heap.Node[queue]
	// failedAfter is the last key that scanFailed read, so that it does not read
	// others of the same millisecond again; zero before the first scan.
	failedAfter record.TimedKey
	// stalled: its head must be read from the store first, so it gets no turn for
	// the rest of this round.
	stalled bool
	limited
	queueKeys
}

// queueOf finds or makes the queue.
func (s *Shard) queueOf(key record.QueueKey) *queue {
	if q, ok := s.queues[key]; ok {
		return q
	}
	t := s.tenantOf(turnsOf(key))
	s.numbered++
	q := &queue{key: key, number: s.numbered, index: s.index.Queue(key), tenant: t}
	q.atHome = wire.ShardOfQueue(key.Tenant, key.Command, s.shards) == s.shard
	q.system = wire.IsSystemCommand(key.Command)
	q.subscribers = &subscribers{tenant: t, queue: q}
	q.settings.QueueSettings = wire.FirstSettings(key.Command)
	s.queues[key] = q
	return q
}

func (s *Shard) tenantOf(name string) *tenant {
	if t, ok := s.tenants[name]; ok {
		return t
	}
	t := &tenant{weight: 1}
	t.wildcard.tenant = t
	s.tenants[name] = t
	return t
}

// mayBeEmpty notes a queue that may be empty now; see forgetEmpty.
func (s *Shard) mayBeEmpty(q *queue) { s.emptied = append(s.emptied, q) }

// forgetEmpty drops queues without a task, a subscriber or an entry in a ring, so
// that memory does not grow with every name ever used.
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

// subscribe begins or replaces the subscriptions of a session. Tasks in flight stay. For
// an older socket it changes nothing, but answers Subscribed as well.
func (s *Shard) subscribe(m *Subscribe) {
	s.subscribeTo(m.Consumer, m.Commands, m.LeaseForMs)
	s.tell(m.Sink, &Subscribed{Ref: m.Ref})
}

// subscribeTo subscribes a consumer to these commands and ends its other
// subscriptions.
func (s *Shard) subscribeTo(consumer *Consumer, commands []string, leaseForMs int64) {
	sub := s.byConsumer[consumer.ID]
	if sub == nil {
		// A new subscriber comes after those that wait: with lastGrantNo 0 a stream
		// of new claims would always be granted before a session.
		sub = &subscriber{consumer: consumer, lastGrantNo: s.grantNo}
		s.byConsumer[consumer.ID] = sub
	}
	if sub.consumer != consumer {
		return // the session has a newer socket, which subscribes by itself
	}
	s.unsubscribe(sub)
	sub.leaseForMs = leaseForMs
	for _, command := range commands {
		subs := s.subscribersOf(consumer.Tenant, command)
		subs.count++
		sub.subscriptions = append(sub.subscriptions, &subscription{subscriber: sub, to: subs})
	}
	s.markOpen(sub)
}

// markOpen marks a subscriber as open and lists all its subscriptions.
func (s *Shard) markOpen(sub *subscriber) {
	sub.open = true
	for _, one := range sub.subscriptions {
		if !one.listed {
			one.listed = true
			one.to.open = append(one.to.open, one)
		}
		if one.to.queue != nil {
			s.joinRings(one.to.queue)
			continue
		}
		s.joinTurns(one.to.tenant)
	}
}

// handedCredit adds credits that this shard waited for. returnCredit returns those
// that no grant of this round uses.
func (s *Shard) handedCredit(m *HandedCredit) {
	sub := s.byConsumer[m.Consumer.ID]
	if sub == nil || sub.consumer != m.Consumer {
		return // the consumer closed meanwhile; its credits are void
	}
	if sub.credit == 0 {
		s.credited = append(s.credited, sub)
	}
	sub.credit += m.Credits
	s.markOpen(sub)
}

// returnCredit returns the credits that HandedCredit brought and no grant used. It
// shares a window again that this shard had alone for a suspect that no longer
// waits.
func (s *Shard) returnCredit() {
	for _, sub := range s.credited {
		if sub.ownsWindow && !sub.consumer.Credit.WaitAlone(s.shard) {
			s.share(sub)
		}
		if sub.credit > 0 {
			s.out.CreditReturns = append(s.out.CreditReturns, CreditReturn{Consumer: sub.consumer, Credits: sub.credit})
			sub.credit = 0
		}
	}
	clear(s.credited)
	s.credited = s.credited[:0]
}

// endSubscriber removes a subscriber with its subscriptions, leaked credit and reservation.
func (s *Shard) endSubscriber(id wire.SessionID) {
	sub := s.byConsumer[id]
	if sub == nil {
		return
	}
	s.unsubscribe(sub)
	s.dropLeaked(sub)
	sub.open, sub.ownsWindow = false, false
	sub.credit = 0
	if s.reserved == sub {
		s.reserved = nil
	}
	delete(s.byConsumer, id)
}

func (s *Shard) unsubscribe(sub *subscriber) {
	for _, one := range sub.subscriptions {
		one.to.leave(one)
		if one.to.queue != nil {
			s.mayBeEmpty(one.to.queue)
		}
	}
	sub.subscriptions = nil
}

// claim subscribes the consumer of a claim for one grant pass; answerClaims answers
// it after that.
func (s *Shard) claim(m *Claim) {
	c := claimant{asker: m.Asker, tenant: m.Consumer.Tenant, commands: m.Commands}
	if !m.CountOnly {
		s.subscribeTo(m.Consumer, m.Commands, m.LeaseForMs)
		c.subscriber = s.byConsumer[m.Consumer.ID]
	}
	s.claims = append(s.claims, c)
}

// claimant is a claim that waits for its answer. subscriber is nil if it only
// counts.
type claimant struct {
	subscriber *subscriber
	asker      Asker
	tenant     string
	commands   []string
}

// readyFor counts the queues of these commands with tasks to grant. For
// wire.AllCommands it is the length of the tenant's ready ring, if one of its
// queues has tasks to grant.
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

// answerClaims answers Claimed and unsubscribes the claim. If the grant pass was
// cut short, by its bound or by a head that must be read first, a claim with credit
// and ready tasks stays for the next round.
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
			s.endSubscriber(c.subscriber.consumer.ID)
		}
	}
	clear(s.claims[len(staying):])
	s.claims = staying
}

// sessionGone ends a socket of a session. If a resume came first, the deliveries
// belong to the newer socket and stay.
func (s *Shard) sessionGone(m *SessionGone) {
	if sub := s.byConsumer[m.Consumer.ID]; sub != nil && sub.consumer.Epoch > m.Consumer.Epoch {
		return
	}
	s.endSubscriber(m.Consumer.ID)
	s.socketEnded(m.Consumer, m.Code)
}

// socketEnded handles the deliveries of a session when its socket ends. Unconfirmed
// ones end at once; confirmed ones stay leased for the resume grace, or to the end
// of their lease if that is sooner.
func (s *Shard) socketEnded(consumer *Consumer, code uint16) {
	for _, e := range s.leases.OfSession(consumer.ID, nil) {
		if e.Gone {
			continue // an earlier socket had it; its resume grace has begun
		}
		e.Gone, e.HasCredit = true, false
		if !e.Confirmed && s.space < store.OnlyDelete {
			s.undeliver(e, code)
			continue
		}
		if !e.Confirmed {
			// The full disk does not allow the move: it lapses when leases may
			// again; see noteStall.
			s.leases.Move(e, s.now)
			continue
		}
		s.leases.Move(e, min(e.AckedUntilMs, s.now+resumeGraceMs))
	}
}

// resume gives a session a new socket. The SessionGone of the old socket may come
// later, so resume ends the old socket itself. Confirmed deliveries of the session are
// in flight again, to the end of their lease.
func (s *Shard) resume(m *Resume) {
	if sub := s.byConsumer[m.Consumer.ID]; sub != nil && sub.consumer.Epoch > m.Consumer.Epoch {
		// The newer socket has taken over; the caller of this one drops the answer.
		s.tell(m.Sink, &Resumed{Ref: m.Ref})
		return
	}
	s.endSubscriber(m.Consumer.ID)
	s.socketEnded(m.Consumer, 0)
	s.byConsumer[m.Consumer.ID] = &subscriber{consumer: m.Consumer}
	answer := &Resumed{Ref: m.Ref}
	for _, e := range s.leases.OfSession(m.Consumer.ID, nil) {
		if !e.Confirmed {
			// The task is to be put back, which the full disk does not allow yet.
			continue
		}
		e.Gone, e.HasCredit = false, true
		s.leases.Move(e, e.AckedUntilMs)
		answer.Held = append(answer.Held, wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token})
	}
	s.tell(m.Sink, answer)
}

// drainBarrier answers Drained. Effects leave in order, so it arrives after every
// Granted of this consumer. No Granted follows while the window is 0: with a credit
// taken it is in debt, which forbids grants, and with none taken it has none free.
func (s *Shard) drainBarrier(m *DrainBarrier) {
	s.tell(m.Sink, &Drained{Ref: m.Ref})
}
