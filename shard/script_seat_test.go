package shard

import (
	"codeq/internal/credit"
	"codeq/wire"
)

// scriptSeat is a seat as the scripts and the clerk of the books have it: its
// messages wait for the next round.
type scriptSeat struct {
	*Seat
	*credit.Window
	post func(Message)
}

// newScriptSeat gives a seat a window. A shard of several has the whole seat here,
// so wake-ups of all come to it.
func newScriptSeat(seat Seat, post func(Message)) *scriptSeat {
	s := &scriptSeat{Seat: &seat, post: post}
	first := 256 << 10
	if seat.OverHTTP {
		first = MaxUntakenBytes
	}
	s.Window = credit.New(MaxUntakenBytes, first, func(int) { post(&RoomUnits{Seat: s.Seat, Units: 1}) })
	s.Credit = s.Window
	return s
}

// close ends the socket of the seat.
func (s *scriptSeat) close(code uint16) {
	if s.Window.Close() {
		s.post(&Gone{Seat: s.Seat, Code: code})
	}
}

// newTestSeat is a seat with a window of its own, which wakes nobody.
func newTestSeat(window int) *Seat {
	s := newScriptSeat(Seat{ID: wire.SessionID{1}}, func(Message) {})
	s.SetWindow(window)
	return s.Seat
}
