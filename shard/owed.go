package shard

import (
	"container/list"
	"slices"

	"codeq/lease"
	"codeq/wire"
)

// leaked is a credit of a consumer's credit that is still out for a delivery which the
// session no longer carries: it lapsed, was cancelled or went to another one.
type leaked struct {
	subscriber *subscriber
	// at is its place in the subscriber's own list.
	at *list.Element
}

// owe notes that the credit of a delivery stays out beyond its lease, until the
// worker answers. What is noted is no more than what is out of living sessions.
func (s *Shard) leak(mb *subscriber, e *lease.Entry) {
	if !e.HasCredit {
		return
	}
	e.HasCredit = false
	if mb.leaked == nil {
		mb.leaked = list.New()
	}
	ref := wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}
	s.leaked[ref] = append(s.leaked[ref], leaked{mb, mb.leaked.PushBack(ref)})
}

// answersFor notes that a worker answers for a delivery, whatever the answer to
// that will be: each session that has a credit out for it has it back.
// The one that asks knows by itself. A call without the token, or of another
// subject, is no word of the worker.
func (s *Shard) answersFor(to Asker, owner Owner, ref wire.TaskRef, e *lease.Entry) {
	if e != nil && e.HasCredit && e.Lease.Token == ref.Token {
		if mb := s.bySession[e.Lease.Session]; mb != nil && mb.isOf(owner) {
			e.HasCredit = false
			s.tellAnswered(mb, to, ref)
		}
	}
	if len(s.leaked) == 0 {
		return
	}
	all := s.leaked[ref]
	left := all[:0]
	for _, o := range all {
		if !o.subscriber.isOf(owner) {
			left = append(left, o)
			continue
		}
		o.subscriber.leaked.Remove(o.at)
		s.tellAnswered(o.subscriber, to, ref)
	}
	s.setLeaked(ref, left)
}

func (s *Shard) setLeaked(ref wire.TaskRef, left []leaked) {
	if len(left) == 0 {
		delete(s.leaked, ref)
		return
	}
	s.leaked[ref] = left
}

func (mb *subscriber) isOf(owner Owner) bool {
	return mb.consumer.Tenant == owner.Tenant && mb.consumer.Subject == owner.Subject
}

func (s *Shard) tellAnswered(mb *subscriber, to Asker, ref wire.TaskRef) {
	if mb.consumer.Sink != to.Sink {
		s.tell(mb.consumer.Sink, &Answered{TaskRef: ref})
	}
}

// forgive forgets what a consumer that ends has out.
func (s *Shard) dropLeaked(mb *subscriber) {
	if mb.leaked == nil {
		return
	}
	for at := mb.leaked.Front(); at != nil; at = at.Next() {
		ref := at.Value.(wire.TaskRef)
		s.setLeaked(ref, slices.DeleteFunc(s.leaked[ref], func(o leaked) bool { return o.subscriber == mb }))
	}
	mb.leaked = nil
}
