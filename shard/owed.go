package shard

import (
	"container/list"
	"slices"

	"codeq/lease"
	"codeq/wire"
)

// owed is a unit of a seat's room that is still out for a delivery which the
// session no longer carries: it lapsed, was cancelled or went to another one.
type owed struct {
	member *member
	// at is its place in the member's own list.
	at *list.Element
}

// owe notes that the unit of a delivery stays out beyond its lease, until the
// worker answers. What is noted is no more than what is out of living sessions.
func (s *Shard) owe(mb *member, e *lease.Entry) {
	if !e.HasUnit {
		return
	}
	e.HasUnit = false
	if mb.owed == nil {
		mb.owed = list.New()
	}
	ref := wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}
	s.owed[ref] = append(s.owed[ref], owed{mb, mb.owed.PushBack(ref)})
}

// answersFor notes that a worker answers for a delivery, whatever the answer to
// that will be: each session that has a unit of room out for it has it back.
// The one that asks knows by itself. A call without the token, or of another
// subject, is no word of the worker.
func (s *Shard) answersFor(to Asker, owner Owner, ref wire.TaskRef, e *lease.Entry) {
	if e != nil && e.HasUnit && e.Lease.Token == ref.Token {
		if mb := s.members[e.Lease.Session]; mb != nil && mb.isOf(owner) {
			e.HasUnit = false
			s.returnsUnit(mb, to, ref)
		}
	}
	if len(s.owed) == 0 {
		return
	}
	all := s.owed[ref]
	left := all[:0]
	for _, o := range all {
		if !o.member.isOf(owner) {
			left = append(left, o)
			continue
		}
		o.member.owed.Remove(o.at)
		s.returnsUnit(o.member, to, ref)
	}
	s.owes(ref, left)
}

func (s *Shard) owes(ref wire.TaskRef, left []owed) {
	if len(left) == 0 {
		delete(s.owed, ref)
		return
	}
	s.owed[ref] = left
}

func (mb *member) isOf(owner Owner) bool {
	return mb.seat.Tenant == owner.Tenant && mb.seat.Subject == owner.Subject
}

func (s *Shard) returnsUnit(mb *member, to Asker, ref wire.TaskRef) {
	if mb.seat.Sink != to.Sink {
		s.tell(mb.seat.Sink, &Answered{TaskRef: ref})
	}
}

// forgive forgets what a seat that ends has out.
func (s *Shard) forgive(mb *member) {
	if mb.owed == nil {
		return
	}
	for at := mb.owed.Front(); at != nil; at = at.Next() {
		ref := at.Value.(wire.TaskRef)
		s.owes(ref, slices.DeleteFunc(s.owed[ref], func(o owed) bool { return o.member == mb }))
	}
	mb.owed = nil
}
