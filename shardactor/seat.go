package shardactor

import (
	"codeq/mailbox"
	"codeq/wire"
)

// Seat is one socket of a session, or one claim over HTTP, as the shards see it:
// who it is, where its effects go, and the room it has for tasks. Engine.NewSeat
// makes it; its methods may be called from any goroutine, except SetWindow,
// which only the session calls. None of them blocks.
type Seat struct {
	ID wire.SessionID
	// Epoch orders the sockets of one session: a later one is higher.
	Epoch    uint64
	Tenant   string
	Subject  string
	WorkerID string
	OverHTTP bool
	Sink     Sink

	room  room
	post  func(shard int, control *mailbox.Slot[Message], m Message)
	slots []seatSlots
	// mostUntaken is Limits.UntakenBytes.
	mostUntaken int
}

// seatSlots are a seat's places in the mailbox of one shard. Room, begin and
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

func newSeat(o SeatOptions, shards int, mostUntaken int, post func(int, *mailbox.Slot[Message], Message)) *Seat {
	s := &Seat{
		ID: o.ID, Tenant: o.Tenant, Subject: o.Subject, WorkerID: o.WorkerID, OverHTTP: o.OverHTTP, Sink: o.Sink,
		post: post, slots: make([]seatSlots, shards), mostUntaken: mostUntaken,
	}
	s.room.bound.Store(int64(mostUntaken))
	if !o.OverHTTP {
		s.room.bound.Store(int64(min(mostUntaken, firstUntakenBytes)))
	}
	return s
}

// SetWindow states how many unfinished tasks the session can hold; 0 lets no
// more in. What is in hand stays.
func (s *Seat) SetWindow(size int) { s.room.resize(size, s.wake) }

// Give returns units of room: the worker has answered for that many
// deliveries, or their frames never left.
func (s *Seat) Give(units int) { s.room.give(units, s.wake) }

// Taken notes that the client has confirmed deliveries of so many payload bytes.
// From now on shards grant to it while less than bound bytes are untaken, or less
// than the limit of the engine.
func (s *Seat) Taken(payloadBytes, bound int) {
	s.room.taken(payloadBytes, min(bound, s.mostUntaken), s.wake)
}

// Resume tells every shard that the session goes on at this seat. Each answers
// asker with Resumed. It comes before anything else the seat says.
func (s *Seat) Resume(asker Asker) {
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].resume, &Resume{Asker: asker, Seat: s})
	}
}

// Fence asks every shard for a word behind all that it has granted, after
// SetWindow(0). Each answers asker with Fenced. One at a time: the next may come
// when all have answered.
func (s *Seat) Fence(asker Asker) {
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].fence, &Fence{Asker: asker, Seat: s})
	}
}

// Hold takes the room of deliveries that the session has in hand already,
// whether there is room or not.
func (s *Seat) Hold(units int) { s.room.hold(units) }

// InHand is the number of units that are out, which after Close no longer grows.
func (s *Seat) InHand() int { return s.room.inHand() }

// UntakenBytes is the payload that was granted and that the client has not taken.
func (s *Seat) UntakenBytes() int { return int(s.room.untakenBytes.Load()) }

// carrier is the session that carries the leases of this seat: none over HTTP.
func (s *Seat) carrier() wire.SessionID {
	if s.OverHTTP {
		return wire.SessionID{}
	}
	return s.ID
}

// Close ends the seat: nothing more is granted to it, and every shard learns
// that the socket is gone, with the code it was closed with, 0 for none. Closing
// twice is harmless.
func (s *Seat) Close(code uint16) {
	if !s.room.close() {
		return
	}
	for shard := range s.slots {
		s.post(shard, &s.slots[shard].gone, &Gone{Seat: s, Code: code})
	}
}

// wake sends one unit to a shard that waited for it.
func (s *Seat) wake(shard int) {
	s.post(shard, &s.slots[shard].units, &RoomUnits{Seat: s, Units: 1})
}

// mergeControl joins two control messages that share a slot.
func mergeControl(waiting, m Message) Message {
	units, ok := m.(*RoomUnits)
	if !ok {
		return m
	}
	return &RoomUnits{Seat: units.Seat, Units: units.Units + waiting.(*RoomUnits).Units}
}
