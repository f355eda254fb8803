package session

import (
	"codeq/shard"
	"codeq/wire"
)

// drainBarrier asks all shards for an answer after their last grant before the window became 0.
// One runs at a time.
type drainBarrier struct {
	// waits is how many shards have not answered yet.
	waits int
	// asking are the requests that wait for this barrier, next those that wait for the one
	// after it.
	asking, next []*request
}

// setWindowZero makes the window 0. It answers only after every grant in flight was sent, so a
// client can disconnect after the answer without leaving a task behind.
func (c *Conversation) setWindowZero(r *request) {
	c.setWindow(0)
	switch {
	case !r.ref.Present:
		c.succeed(r, &wire.OK{})
	case c.barrier.waits > 0:
		c.barrier.next = append(c.barrier.next, r)
	default:
		c.startBarrier([]*request{r})
	}
}

func (c *Conversation) startBarrier(asking []*request) {
	c.barrier.asking, c.barrier.waits = asking, c.facts.Router.Shards()
	c.out.Barrier = &shard.Asker{Sink: c.facts.Sink}
}

// barrierAnswered counts the answer of one shard. Effects leave a shard in order, so it comes
// after every grant of this consumer in that shard.
func (c *Conversation) barrierAnswered() {
	b := &c.barrier
	b.waits--
	if b.waits > 0 {
		return
	}
	for _, r := range b.asking {
		c.succeed(r, &wire.OK{})
	}
	next := b.next
	b.asking, b.next = nil, nil
	if len(next) > 0 {
		c.startBarrier(next)
	}
}
