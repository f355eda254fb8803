package shard

import (
	"codeq/internal/credit"
	"codeq/wire"
)

// scriptConsumer is a consumer as the scripts and the clerk of the books have it: its
// messages wait for the next round.
type scriptConsumer struct {
	*Consumer
	*credit.Window
	post func(Message)
}

// newScriptConsumer gives a consumer a window. A shard of several has the whole consumer here,
// so wake-ups of all come to it.
func newScriptConsumer(consumer Consumer, post func(Message)) *scriptConsumer {
	s := &scriptConsumer{Consumer: &consumer, post: post}
	first := 256 << 10
	if consumer.OverHTTP {
		first = MaxUntakenBytes
	}
	s.Window = credit.New(MaxUntakenBytes, first, func(int) { post(&HandedCredit{Consumer: s.Consumer, Credits: 1}) })
	s.Credit = s.Window
	return s
}

// close ends the socket of the consumer.
func (s *scriptConsumer) close(code uint16) {
	if s.Window.Close() {
		s.post(&SessionGone{Consumer: s.Consumer, Code: code})
	}
}

// newTestConsumer is a consumer with a window of its own, which wakes nobody.
func newTestConsumer(window int) *Consumer {
	s := newScriptConsumer(Consumer{ID: wire.SessionID{1}}, func(Message) {})
	s.SetWindow(window)
	return s.Consumer
}
