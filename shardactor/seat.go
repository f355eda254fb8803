package shardactor

import (
	"codeq/internal/credit"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// SessionSeat is a seat with its window and its places in the mailboxes.
// Engine.NewSeat makes it; its methods may be called from any goroutine, except
// SetWindow, which only the session calls. None of them blocks.
type Seat struct {
	*shard.Seat
	*credit.Window

	post  func(shardNo int, control *mailbox.Slot[shard.Message], m shard.Message)
	slots []seatSlots
}

// seatSlots are a seat's places in the mailbox of one shard. Credit, begin and
// end are apart so that none moves another's place in the order.
type seatSlots struct {
	units  mailbox.Slot[shard.Message]
	resume mailbox.Slot[shard.Message]
	fence  mailbox.Slot[shard.Message]
	gone   mailbox.Slot[shard.Message]
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
	Sink     shard.Sink
}

// firstUntakenBytes is how much may be unconfirmed by the client of a session that
// has not confirmed anything.
const firstUntakenBytes = 256 << 10

func newSeat(o SeatOptions, shards int, mostUntaken int, post func(int, *mailbox.Slot[shard.Message], shard.Message)) *Seat {
	s := &Seat{
		Seat: &shard.Seat{ID: o.ID, Tenant: o.Tenant, Subject: o.Subject, WorkerID: o.WorkerID, OverHTTP: o.OverHTTP, Sink: o.Sink},
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
func (s *Seat) Resume(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].resume, &shard.Resume{Asker: asker, Seat: s.Seat})
	}
}

// Fence asks every shard for a word behind all that it has granted, after
// SetWindow(0). Each answers asker with Fenced. One at a time: the next may come
// when all have answered.
func (s *Seat) Fence(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].fence, &shard.Fence{Asker: asker, Seat: s.Seat})
	}
}

// Close ends the seat: nothing more is granted to it, and every shard learns
// that the socket is gone, with the code it was closed with, 0 for none. Closing
// twice is harmless.
func (s *Seat) Close(code uint16) {
	if !s.Window.Close() {
		return
	}
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].gone, &shard.Gone{Seat: s.Seat, Code: code})
	}
}

// wake sends one unit to a shard that waited for it.
func (s *Seat) wake(shardNo int) {
	s.post(shardNo, &s.slots[shardNo].units, &shard.RoomUnits{Seat: s.Seat, Units: 1})
}

// mergeControl joins two control messages that share a slot.
func mergeControl(waiting, m shard.Message) shard.Message {
	units, ok := m.(*shard.RoomUnits)
	if !ok {
		return m
	}
	return &shard.RoomUnits{Seat: units.Seat, Units: units.Units + waiting.(*shard.RoomUnits).Units}
}
