package shardactor

import (
	"codeq/internal/credit"
	"codeq/mailbox"
	"codeq/wire"
)

// SessionSeat is a seat with its window and its places in the mailboxes.
// Engine.NewSeat makes it; its methods may be called from any goroutine, except
// SetWindow, which only the session calls. None of them blocks.
type SessionSeat struct {
	*Seat
	*credit.Window

	post  func(shard int, control *mailbox.Slot[Message], m Message)
	slots []seatSlots
}

// seatSlots are a seat's places in the mailbox of one shard. Credit, begin and
// end are apart so that none moves another's place in the order.
type seatSlots struct {
	units  mailbox.Slot[Message]
	resume mailbox.Slot[Message]
	fence  mailbox.Slot[Message]
	gone   mailbox.Slot[Message]
}

// SeatOptions names the session a seat stands for. Sink gets the effects
// addressed to it. The seat of a claim is OverHTTP and needs no ID: nothing it
// gets belongs to it longer than the answer is under way.
type SeatOptions struct {
	ID       wire.SessionID
	Tenant   string
	Subject  string
	WorkerID string
	OverHTTP bool
	Sink     Sink
}

// firstUntakenBytes is how much may be unconfirmed by the client of a session that
// has not confirmed anything.
const firstUntakenBytes = 256 << 10

func newSeat(o SeatOptions, shards int, mostUntaken int, post func(int, *mailbox.Slot[Message], Message)) *SessionSeat {
	s := &SessionSeat{
		Seat: &Seat{ID: o.ID, Tenant: o.Tenant, Subject: o.Subject, WorkerID: o.WorkerID, OverHTTP: o.OverHTTP, Sink: o.Sink},
		post: post, slots: make([]seatSlots, shards),
	}
	first := firstUntakenBytes
	if o.OverHTTP {
		first = mostUntaken
	}
	s.Window = credit.New(mostUntaken, first, s.wake)
	s.Credit = s.Window
	return s
}

// Resume tells every shard that the session goes on at this seat. Each answers
// asker with Resumed. It comes before anything else the seat says.
func (s *SessionSeat) Resume(asker Asker) {
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].resume, &Resume{Asker: asker, Seat: s.Seat})
	}
}

// Fence asks every shard for a word behind all that it has granted, after
// SetWindow(0). Each answers asker with Fenced. One at a time: the next may come
// when all have answered.
func (s *SessionSeat) Fence(asker Asker) {
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].fence, &Fence{Asker: asker, Seat: s.Seat})
	}
}

// Close ends the seat: nothing more is granted to it, and every shard learns
// that the socket is gone, with the code it was closed with, 0 for none. Closing
// twice is harmless.
func (s *SessionSeat) Close(code uint16) {
	if !s.Window.Close() {
		return
	}
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].gone, &Gone{Seat: s.Seat, Code: code})
	}
}

// wake sends one unit to a shard that waited for it.
func (s *SessionSeat) wake(shard int) {
	s.post(shard, &s.slots[shard].units, &RoomUnits{Seat: s.Seat, Units: 1})
}

// mergeControl joins two control messages that share a slot.
func mergeControl(waiting, m Message) Message {
	units, ok := m.(*RoomUnits)
	if !ok {
		return m
	}
	return &RoomUnits{Seat: units.Seat, Units: units.Units + waiting.(*RoomUnits).Units}
}
