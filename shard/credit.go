package shard

import (
	"container/list"
	"slices"

	"codeq/lease"
	"codeq/store"
	"codeq/wire"
)

// A shard takes credit from the window of a consumer, reuses it, and returns the
// leaked credit of a delivery that ended without its worker.

// Consumer is one socket of a session, or one claim over HTTP, as the shards see
// it: its identity, the sink of its effects, and its credit.
type Consumer struct {
	ID wire.SessionID
	// Epoch orders the sockets of one session: a later one is higher.
	Epoch    uint64
	Tenant   string
	Subject  string
	WorkerID string
	OverHTTP bool
	Sink     Sink
	Credit   Credit
}

// Credit is the window of a consumer over all shards, as one shard uses it.
// credit.Window implements it. The shards share it, so its methods may be called
// from any goroutine, and none blocks.
type Credit interface {
	// Take takes one for a task of so many payload bytes, or notes that the shard
	// waits; Return returns some, or with 0 looks whether a shard may be woken. AddBytes
	// notes the bytes of a task that goes with one which the shard has already.
	Take(shard, payloadBytes int) bool
	AddBytes(payloadBytes int) bool
	Return(credits int)
	// InFlight is how many are taken, InDebt whether those are more than the window.
	InFlight() int
	InDebt() bool
	// MayReuse says whether a shard may use at once one that is about to come back,
	// OthersWait whether another shard waits for one, Portion what this shard should
	// have meanwhile, by the ready queues that each has told with SetReady.
	MayReuse() bool
	OthersWait(shard int) bool
	Portion(shard int) int
	SetReady(shard int, queues int32)
	// IsIdle says that nothing is on its way to the client. The others give a shard
	// the window alone, for a suspect.
	IsIdle(mine, hasCredit bool) bool
	IsAlone() bool
	TakeAlone(shard, payloadBytes int, hasCredit bool) (taken, mine bool)
	WaitAlone(shard int) bool
	Share()
}

// leaseSession is the session that the leases of this consumer are bound to: none
// over HTTP.
func (s *Consumer) leaseSession() wire.SessionID {
	if s.OverHTTP {
		return wire.SessionID{}
	}
	return s.ID
}

// reused is a completion whose credit the next grant to the same consumer may use.
type reused struct {
	subscriber *subscriber
	answer     *Completed
}

// reuseCredit uses the credit of a delivery that has just ended for the next grant
// to the same consumer. Returned by the session, it would be used two syncs later:
// that of this batch and that of the grant. Here both are in one batch, so that a
// crash keeps both or none.
//
// While another shard waits for credit of the consumer, this one reuses it only up
// to its share of the window, and after limits.ReusedInRow returns one
// nevertheless, because a share does not count the credits of deliveries that
// lapsed with a stuck worker. So no shard starves, and with a window smaller than
// the number of shards each shard gets a turn.
func (s *Shard) reuseCredit(m *Result, session wire.SessionID, answer *Completed) {
	sub := s.byConsumer[session]
	if sub == nil || sub.consumer.Sink != m.Sink || s.space >= store.NoGrant {
		return
	}
	othersWait := sub.consumer.Credit.OthersWait(s.shard)
	if !sub.consumer.Credit.MayReuse() || othersWait && !s.hasShare(sub) {
		return
	}
	if othersWait {
		sub.reusedInRow++
	} else {
		sub.reusedInRow = 0
	}
	answer.CreditReused = true
	sub.reused++
	s.reuses = append(s.reuses, reused{sub, answer})
	s.markOpen(sub)
}

// hasShare reports whether one more credit is within the shard's share of the
// window.
func (s *Shard) hasShare(sub *subscriber) bool {
	if sub.reusedInRow >= s.limits.ReusedInRow {
		sub.reusedInRow = 0
		return false
	}
	return s.leases.CountOf(sub.consumer.ID)+sub.reused < sub.consumer.Credit.Portion(s.shard)
}

// returnReused leaves the credits that no grant used to the session, which returns
// them.
func (s *Shard) returnReused() {
	for i := len(s.reuses) - 1; i >= 0; i-- {
		if k := s.reuses[i]; k.subscriber.reused > 0 {
			k.subscriber.reused--
			k.answer.CreditReused = false
		}
	}
	clear(s.reuses)
	s.reuses = s.reuses[:0]
}

// leaked is a credit that is still taken for a delivery which the session has lost: the
// delivery lapsed, was cancelled or went to another session.
type leaked struct {
	subscriber *subscriber
	// at is its index in the list of the subscriber.
	at *list.Element
}

// leak notes that the credit of a delivery stays taken after its lease, until the
// worker answers. The list is bounded by the credit that live sessions have taken.
func (s *Shard) leak(sub *subscriber, e *lease.Entry) {
	if !e.HasCredit {
		return
	}
	e.HasCredit = false
	if sub.leaked == nil {
		sub.leaked = list.New()
	}
	ref := wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}
	s.leaked[ref] = append(s.leaked[ref], leaked{sub, sub.leaked.PushBack(ref)})
}

// answersFor returns the credit of a delivery to each session that has one taken
// for it, because its worker has answered, even if that answer is refused. The
// asking session returns its own. A call without the token, or of another subject,
// is not from the worker and returns nothing.
func (s *Shard) answersFor(h *Holder, e *lease.Entry) {
	if e != nil && e.HasCredit && e.Lease.Token == h.Token {
		if sub := s.byConsumer[e.Lease.Session]; sub != nil && sub.isOf(h.Owner) {
			e.HasCredit = false
			s.tellAnswered(sub, h)
		}
	}
	if len(s.leaked) == 0 {
		return
	}
	all := s.leaked[h.TaskRef]
	left := all[:0]
	for _, o := range all {
		if !o.subscriber.isOf(h.Owner) {
			left = append(left, o)
			continue
		}
		o.subscriber.leaked.Remove(o.at)
		s.tellAnswered(o.subscriber, h)
	}
	s.setLeaked(h.TaskRef, left)
}

func (s *Shard) setLeaked(ref wire.TaskRef, left []leaked) {
	if len(left) == 0 {
		delete(s.leaked, ref)
		return
	}
	s.leaked[ref] = left
}

func (sub *subscriber) isOf(owner Owner) bool {
	return sub.consumer.Tenant == owner.Tenant && sub.consumer.Subject == owner.Subject
}

func (s *Shard) tellAnswered(sub *subscriber, h *Holder) {
	if sub.consumer.Sink != h.Sink {
		s.tell(sub.consumer.Sink, &Answered{TaskRef: h.TaskRef})
	}
}

// dropLeaked forgets the leaked credit of a consumer that ends.
func (s *Shard) dropLeaked(sub *subscriber) {
	if sub.leaked == nil {
		return
	}
	for at := sub.leaked.Front(); at != nil; at = at.Next() {
		ref := at.Value.(wire.TaskRef)
		s.setLeaked(ref, slices.DeleteFunc(s.leaked[ref], func(o leaked) bool { return o.subscriber == sub }))
	}
	sub.leaked = nil
}
