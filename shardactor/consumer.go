package shardactor

import (
	"codeq/internal/credit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// This does not compile if a data directory can have more shards than a window has bits for.
const _ = uint(credit.MaxShards - record.MaxShards)

// Consumer is a consumer with its window and its slots in the mailboxes.
// Engine.NewConsumer makes it; its methods may be called from any goroutine, except
// SetWindow, which only the session calls. None of them blocks.
type Consumer struct {
	*shard.Consumer
	*credit.Window

	post  func(shardNo int, control *mailbox.Slot[shard.Message], m shard.Message) bool
	slots []consumerSlots
}

// consumerSlots are a consumer's slots in the mailbox of one shard. Credit, begin
// and end have one each, so that none changes the order of another.
type consumerSlots struct {
	credits mailbox.Slot[shard.Message]
	resume  mailbox.Slot[shard.Message]
	drain   mailbox.Slot[shard.Message]
	gone    mailbox.Slot[shard.Message]
}

// ConsumerOptions names the session a consumer stands for. Sink gets the effects
// addressed to it. The consumer of a claim is OverHTTP and needs no ID: its
// deliveries are bound to it only until the answer is written.
type ConsumerOptions struct {
	ID       wire.SessionID
	Tenant   string
	Subject  string
	WorkerID string
	OverHTTP bool
	Sink     shard.Sink
}

// firstUntakenBytes is how many bytes may be unconfirmed by a client that has not
// confirmed anything yet.
const firstUntakenBytes = 256 << 10

func newConsumer(o ConsumerOptions, shards int, mostUntaken int, post func(int, *mailbox.Slot[shard.Message], shard.Message) bool) *Consumer {
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

// Resume tells every shard that this consumer replaces the earlier consumer of the
// session. Each answers asker with Resumed. It must be the first message of the
// consumer.
func (s *Consumer) Resume(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].resume, &shard.Resume{Asker: asker, Consumer: s.Consumer})
	}
}

// Drain, after SetWindow(0), makes every shard answer asker with Drained, which
// comes after every Granted. The next call must wait until all have answered.
func (s *Consumer) Drain(asker shard.Asker) {
	for shardNo := range s.slots {
		s.post(shardNo, &s.slots[shardNo].drain, &shard.DrainBarrier{Asker: asker, Consumer: s.Consumer})
	}
}

// Close ends the consumer: shards grant it nothing more, and every shard learns
// that the socket ended with this close code, 0 for none. A second call does
// nothing.
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
	switch m := m.(type) {
	case *shard.HandedCredit:
		return &shard.HandedCredit{Consumer: m.Consumer, Credits: m.Credits + waiting.(*shard.HandedCredit).Credits}
	case *shard.HandedPlaces:
		return &shard.HandedPlaces{Limiter: m.Limiter, Queue: m.Queue, Places: m.Places + waiting.(*shard.HandedPlaces).Places}
	}
	return m
}
