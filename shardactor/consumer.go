package shardactor

import (
	"codeq/internal/credit"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Consumer is a consumer with its window and its places in the mailboxes.
// Engine.NewConsumer makes it; its methods may be called from any goroutine, except
// SetWindow, which only the session calls. None of them blocks.
type Consumer struct {
	*shard.Consumer
	*credit.Window

	post  func(shardNo int, control *mailbox.Slot[shard.Message], m shard.Message)
	slots []consumerSlots
}

// consumerSlots are a consumer's places in the mailbox of one shard. Credit, begin and
// end are apart so that none moves another's place in the order.
type consumerSlots struct {
	credits mailbox.Slot[shard.Message]
	resume  mailbox.Slot[shard.Message]
	drain   mailbox.Slot[shard.Message]
	gone    mailbox.Slot[shard.Message]
}

// ConsumerOptions names the session a consumer stands for. Sink gets the effects
// addressed to it. The consumer of a claim is OverHTTP and needs no ID: nothing it
// gets belongs to it longer than the answer is under way.
type ConsumerOptions struct {
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

func newConsumer(o ConsumerOptions, shards int, mostUntaken int, post func(int, *mailbox.Slot[shard.Message], shard.Message)) *Consumer {
	s := &Consumer{
		Consumer: &shard.Consumer{ID: o.ID, Tenant: o.Tenant, Subject: o.Subject, WorkerID: o.WorkerID, OverHTTP: o.OverHTTP, Sink: o.Sink},
		post:     post, slots: make([]consumerSlots, shards),
	}
	first := firstUntakenBytes
	if o.OverHTTP {
		first = mostUntaken
	}
	s.Window = credit.New(mostUntaken, first, s.wake)
	s.Credit = s.Window
	return s
}

// Resume tells every shard that the session goes on at this consumer. Each answers
// asker with Resumed. It comes before anything else the consumer says.
func (s *Consumer) Resume(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].resume, &shard.Resume{Asker: asker, Consumer: s.Consumer})
	}
}

// Drain asks every shard for a word behind all that it has granted, after
// SetWindow(0). Each answers asker with Drained. One at a time: the next may come
// when all have answered.
func (s *Consumer) Drain(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].drain, &shard.DrainBarrier{Asker: asker, Consumer: s.Consumer})
	}
}

// Close ends the consumer: nothing more is granted to it, and every shard learns
// that the socket is gone, with the code it was closed with, 0 for none. Closing
// twice is harmless.
func (s *Consumer) Close(code uint16) {
	if !s.Window.Close() {
		return
	}
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].gone, &shard.SessionGone{Consumer: s.Consumer, Code: code})
	}
}

// wake sends one credit to a shard that waited for it.
func (s *Consumer) wake(shardNo int) {
	s.post(shardNo, &s.slots[shardNo].credits, &shard.HandedCredit{Consumer: s.Consumer, Credits: 1})
}

// mergeControl joins two control messages that share a slot.
func mergeControl(waiting, m shard.Message) shard.Message {
	credits, ok := m.(*shard.HandedCredit)
	if !ok {
		return m
	}
	return &shard.HandedCredit{Consumer: credits.Consumer, Credits: credits.Credits + waiting.(*shard.HandedCredit).Credits}
}
