package shard

import (
	"cmp"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// Grants: tenants take turns, and within a tenant its queues. A turn grants the
// head of the queue to one subscriber with credit.

// grantPass hands ready tasks to sessions with credit, one task a turn, until
// tasks, credit or the limit of a round run out. cut reports that tasks and credit
// may be left; the next round then follows at once.
func (s *Shard) grantPass() (cut bool) {
	s.grantAside()
	for granted := 0; granted < s.limits.Grants; {
		q := s.nextTurn()
		if q == nil {
			break
		}
		prio, k, ok := q.index.HeadReady()
		if !ok {
			s.stall(q)
			continue
		}
		if s.grantHead(q, prio, k) {
			granted++
			s.turns.end()
		}
		cut = granted == s.limits.Grants
	}
	for _, q := range s.stalled {
		q.stalled = false
		s.joinRings(q)
		cut = true
	}
	clear(s.stalled)
	s.stalled = s.stalled[:0]
	s.out.Again = s.out.Again || cut
	return cut
}

// stall excludes a queue from the turns until the next round.
func (s *Shard) stall(q *queue) {
	q.stalled = true
	s.stalled = append(s.stalled, q)
}

// grantHead grants the head of a queue to the best open subscriber (see better). It
// closes each subscriber whose window has no credit, and reports false if none had
// any.
func (s *Shard) grantHead(q *queue, prio int, k record.PendingKey) bool {
	t, err := s.span.Task(k.ID)
	if t == nil || s.unreadable(err) {
		s.quarantineReady(q, prio, k)
		return false
	}
	if t.Expires(s.now) {
		// due has not ended it yet: more than limits.Due entries were due, or its
		// expiry entry is not in memory.
		s.stall(q)
		return false
	}
	if s.keyIsFull(q, t.ConcurrencyKey) {
		s.transition(t, move{to: wire.LocationLimited, status: wire.StatusPending, cause: record.CauseKeyFull, toOldPlace: true})
		return true
	}
	if !s.mayStart(q) {
		return false
	}
	if isSuspect(t) {
		s.grantSuspect(q, t)
		return true
	}
	for {
		sub := s.pick(q)
		if sub == nil {
			return false
		}
		if s.takeCredit(sub, t.PayloadBytes) {
			s.grant(q, sub, t)
			return true
		}
		sub.open = false
		if credit := sub.consumer.Credit; credit.OthersWait(s.shard) {
			credit.SetReady(s.shard, sub.readyQueues())
		}
	}
}

func (s *Shard) pick(q *queue) *subscriber {
	return q.tenant.wildcard.better(q.subscribers.better(nil, s.limits.Compared), s.limits.Compared)
}

// takeCredit takes one credit: first that of a delivery that ended in this round,
// then one that HandedCredit brought, unless the window has shrunk below it since,
// then one from the window. If there is none, the window notes that this shard waits.
// A window that this shard has alone, without a need, is shared again first.
func (s *Shard) takeCredit(sub *subscriber, payloadBytes int) bool {
	credit := sub.consumer.Credit
	if sub.ownsWindow && sub.isIdle() {
		s.share(sub) // its suspect has arrived, and no other suspect is to go to this subscriber
	}
	switch {
	case sub.reused > 0 && credit.AddBytes(payloadBytes):
		sub.reused--
	case sub.credit > 0 && !credit.InDebt() && credit.AddBytes(payloadBytes):
		sub.credit--
	case credit.Take(s.shard, payloadBytes):
	default:
		if credit.IsAlone() {
			// Take adds its bytes for a moment even if it fails. The shard that has the
			// window alone may have seen them and be waiting: wake it.
			s.out.CreditReturns = append(s.out.CreditReturns, CreditReturn{Consumer: sub.consumer})
		}
		return false
	}
	return true
}

// grant delivers a task to a subscriber whose credit the caller has taken.
func (s *Shard) grant(q *queue, sub *subscriber, t *record.Task) {
	payload, err := s.span.PayloadOf(t)
	s.mustRead(err)
	if q.limiter != nil {
		q.started--
	}
	s.grantNo++
	sub.lastGrantNo = s.grantNo
	sub.moveBehind(q.subscribers)
	c := sub.consumer
	leaseForMs := cmp.Or(sub.leaseForMs, int64(q.settings.LeaseSeconds)*1000, wire.DefaultLeaseSeconds*1000)
	e := &lease.Entry{
		Lease: record.Lease{
			Token: lease.DrawToken(s.random), Delivery: t.Deliveries + 1,
			Session: c.leaseSession(), OverHTTP: c.OverHTTP, Subject: c.Subject, WorkerID: c.WorkerID,
			LeaseForMs: leaseForMs, GrantedAtMs: s.now, Files: record.Files{Begun: t.Files.Begun},
			// Only the stored deadline is half a lease later, so that most heartbeats
			// need no write; the lease itself ends as promised.
			DeadlineMs: s.now + leaseForMs + leaseForMs/2,
		},
		AckedUntilMs: s.now + leaseForMs,
		// Over HTTP a delivery counts as confirmed from its grant on; Undelivered
		// undoes that.
		Confirmed: c.OverHTTP,
		HasCredit: !c.OverHTTP,
	}
	// 0 means no limit. The run begins when it is confirmed, which moves its end.
	if runForMs := cmp.Or(t.TimeoutSeconds, q.settings.TimeoutSeconds) * 1000; runForMs != 0 {
		e.Lease.RunUntilMs = s.now + runForMs
	}
	s.transition(t, move{to: wire.LocationInProgress, status: wire.StatusInProgress, cause: record.CauseGrant, lease: e})
	task := view(t, payload)
	addLeaseFields(task, e)
	task.TraceParent = s.traceAfter(t, e.Lease.Delivery)
	s.tell(c.Sink, &Granted{
		Task: task, Token: e.Lease.Token, LeaseForMs: leaseForMs, LeaseUntilMs: task.LeaseUntilMs,
		RunForMs: e.Lease.RunForMs(), RunUntilMs: task.RunUntilMs,
	})
}

// quarantineReady deletes the ready entry of a task whose record is missing or unreadable,
// so that it stops nobody; it moves the rest of the task to bad/ and makes an event.
func (s *Shard) quarantineReady(q *queue, prio int, k record.PendingKey) {
	s.eventUnreadable(q, k.ID, wire.LocationPending)
	q.index.RemoveReady(prio, k)
	s.span.Batch().DeletePending(q.key, prio, k)
	s.mustRead(s.span.Quarantine(k.ID))
	s.freeAll(q) // which key it had nobody knows
}

// turns is a ring of tenants, each with a ring of its queues. One turn grants one
// task, so no tenant and no queue waits for another's backlog to end.
type turns struct {
	tenants []*tenant
	at      int
	// inRow is how many turns the tenant at the turn has had in a row; its weight bounds
	// them.
	inRow int
	// ring is the ring of the newest turn.
	ring *ring
}

// end ends the newest turn. A queue that granted nothing keeps it, and so does its tenant.
func (t *turns) end() {
	t.ring.at++
	if t.inRow++; t.inRow >= t.tenants[t.at].weight {
		t.at, t.inRow = t.at+1, 0
	}
}

// tenant holds one tenant's queues with ready tasks, and the subscribers of all its
// commands.
type tenant struct {
	// ready holds every queue with ready tasks, runnable those among them that may
	// have an open subscriber of their own. While a wildcard subscriber is open the
	// turns go over ready, otherwise over runnable, so that queues without a worker
	// cost nothing. next drops queues that no longer belong.
	ready    ring
	runnable ring
	wildcard subscribers
	inTurns  bool
	// named are the shard's copies of the named records of the tenant.
	named record.NamedList
	// endpoints are those among them that get outcomes of tasks, by name.
	endpoints []endpoint
	// weight is how many turns it has when others have one.
	weight int
	pending
}

// hasTurns reports whether any queue of the tenant has turns.
func (t *tenant) hasTurns() bool {
	for _, q := range t.ready.queues {
		if q.hasTurns() {
			return true
		}
	}
	return false
}

// readyQueues counts the queues with ready tasks that the subscriber takes in this
// shard. For a wildcard subscriber it is the length of the tenant's ready ring,
// which may be too high.
func (sub *subscriber) readyQueues() (n int32) {
	for _, one := range sub.subscriptions {
		switch q := one.to.queue; {
		case q == nil:
			return int32(len(one.to.tenant.ready.queues))
		case q.hasTurns():
			n++
		}
	}
	return n
}

// ring is a list of queues and the place of the next turn.
type ring struct {
	queues []*queue
	at     int
}

func (r *ring) add(q *queue) { r.queues = append(r.queues, q) }

// drop removes the queue at the turn and keeps the order of the others.
func (r *ring) drop() {
	r.queues = append(r.queues[:r.at], r.queues[r.at+1:]...)
}

// next is the queue whose turn it is, nil if there is none. stays reports whether a
// queue still belongs to the ring; next drops one that does not, and calls dropped
// with it.
func (r *ring) next(stays func(*queue) bool, dropped func(*queue)) *queue {
	for len(r.queues) > 0 {
		if r.at >= len(r.queues) {
			r.at = 0
		}
		q := r.queues[r.at]
		if stays(q) {
			return q
		}
		r.drop()
		dropped(q)
	}
	return nil
}

// mayGrant reports whether neither a pause nor a freeze stops the grants of the queue.
func (q *queue) mayGrant() bool { return q.freezes == 0 && !q.settings.Paused }

// hasTurns reports whether the queue has ready tasks and may grant them. A pause,
// a freeze and a limit all stop grants here, however the tasks became ready.
func (q *queue) hasTurns() bool { return q.mayGrant() && !q.shut && q.index.HasReady() }

// joinRings adds a queue with ready tasks to the rings.
func (s *Shard) joinRings(q *queue) {
	if !q.hasTurns() {
		return
	}
	if !q.inReady {
		q.inReady = true
		q.tenant.ready.add(q)
	}
	if !q.inRunnable && q.subscribers.hasOpen() {
		q.inRunnable = true
		q.tenant.runnable.add(q)
	}
	s.joinTurns(q.tenant)
}

func (s *Shard) joinTurns(t *tenant) {
	if !t.inTurns {
		t.inTurns = true
		s.turns.tenants = append(s.turns.tenants, t)
	}
}

// nextTurn is the queue whose turn it is over all tenants. A tenant without one
// leaves the turns until a task becomes ready or a subscriber opens.
func (s *Shard) nextTurn() *queue {
	for t := &s.turns; len(t.tenants) > 0; {
		if t.at >= len(t.tenants) {
			t.at = 0
		}
		tenant := t.tenants[t.at]
		if q := s.nextOf(tenant); q != nil {
			return q
		}
		tenant.inTurns, t.inRow = false, 0
		t.tenants = append(t.tenants[:t.at], t.tenants[t.at+1:]...)
	}
	return nil
}

func (s *Shard) nextOf(t *tenant) *queue {
	if t.wildcard.hasOpen() {
		s.turns.ring = &t.ready
		return t.ready.next(
			func(q *queue) bool { return !q.stalled && q.hasTurns() },
			func(q *queue) { q.inReady = false; s.mayBeEmpty(q) })
	}
	s.turns.ring = &t.runnable
	return t.runnable.next(
		func(q *queue) bool { return !q.stalled && q.hasTurns() && q.subscribers.hasOpen() },
		func(q *queue) { q.inRunnable = false; s.mayBeEmpty(q) })
}
