package shard

// turns is whose turn it is: tenants in a ring, in each a ring of its queues,
// so that no tenant and no queue waits for another's backlog to end.
type turns struct {
	tenants []*tenant
	at      int
	// ring had the newest turn.
	ring *ring
}

// tenant is one tenant's queues with ready tasks, and who takes all of them.
type tenant struct {
	// ready holds every queue with ready tasks, runnable those of them whose
	// own subscribers may have an open subscriber. While somebody takes all commands the
	// turn goes over ready, otherwise over runnable, so that queues without a
	// worker cost nothing. Members of both rings drop out lazily.
	ready    ring
	runnable ring
	wildcard subscribers
	inTurns  bool
}

// hasTurns reports whether any queue of the tenant does.
func (t *tenant) hasTurns() bool {
	for _, q := range t.ready.queues {
		if q.hasTurns() {
			return true
		}
	}
	return false
}

// readyQueues is how many queues with ready tasks the subscriber takes here; of all
// queues of a tenant, how many stand in its ring.
func (mb *subscriber) readyQueues() (n int32) {
	for _, p := range mb.subscriptions {
		switch q := p.to.queue; {
		case q == nil:
			return int32(len(p.to.tenant.ready.queues))
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

// drop takes the queue at the turn out; the order of the others stays.
func (r *ring) drop() {
	r.queues = append(r.queues[:r.at], r.queues[r.at+1:]...)
}

// next is the queue whose turn it is, nil if there is none. stays says whether
// a queue still belongs here; one that does not drops out and hears left.
func (r *ring) next(stays func(*queue) bool, left func(*queue)) *queue {
	for len(r.queues) > 0 {
		if r.at >= len(r.queues) {
			r.at = 0
		}
		q := r.queues[r.at]
		if stays(q) {
			r.at++
			return q
		}
		r.drop()
		left(q)
	}
	return nil
}

// hasTurns says whether tasks of the queue may be handed out: by whatever way
// they became ready, a pause holds them here, and a question whether the queue may
// be deleted.
func (q *queue) hasTurns() bool { return q.freezes == 0 && !q.settings.Paused && q.index.HasReady() }

// ready puts a queue with ready tasks into the rings.
func (s *Shard) ready(q *queue) {
	if !q.hasTurns() {
		return
	}
	if !q.inReady {
		q.inReady = true
		q.tenant.ready.add(q)
	}
	s.runnable(q)
	s.joinTurns(q.tenant)
}

func (s *Shard) runnable(q *queue) {
	if !q.inRunnable && q.hasTurns() && q.subscribers.hasOpen() {
		q.inRunnable = true
		q.tenant.runnable.add(q)
	}
}

func (s *Shard) joinTurns(t *tenant) {
	if !t.inTurns {
		t.inTurns = true
		s.turns.tenants = append(s.turns.tenants, t)
	}
}

// nextTurn is the queue whose turn it is over all tenants; a tenant without
// one leaves the turns until something becomes ready or somebody opens.
func (s *Shard) nextTurn() *queue {
	for t := &s.turns; len(t.tenants) > 0; {
		if t.at >= len(t.tenants) {
			t.at = 0
		}
		tenant := t.tenants[t.at]
		if q := s.nextOf(tenant); q != nil {
			t.at++
			return q
		}
		tenant.inTurns = false
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
