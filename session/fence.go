package session

import (
	"codeq/shard"
	"codeq/wire"
)

// fence is the question to all shards for their last word on what they granted
// before the window became 0. There is one at a time.
type fence struct {
	// waits is how many shards have still to answer.
	waits int
	// asking wait for that, next for a question that begins when it is over.
	asking, next []*request
}

// takeNoMore makes the window 0 and answers behind the last task, so that who
// has the answer may go without leaving any that are on their way.
func (c *Conversation) takeNoMore(r *request) {
	c.setWindow(0)
	switch {
	case !r.ref.Present:
		c.succeed(r, &wire.OK{})
	case c.fence.waits > 0:
		c.fence.next = append(c.fence.next, r)
	default:
		c.raiseFence([]*request{r})
	}
}

func (c *Conversation) raiseFence(asking []*request) {
	c.fence.asking, c.fence.waits = asking, c.facts.Router.Shards()
	c.out.Fence = &shard.Asker{Sink: c.facts.Sink}
}

// fenced takes the word of one shard.
func (c *Conversation) fenced() {
	f := &c.fence
	f.waits--
	if f.waits > 0 {
		return
	}
	for _, r := range f.asking {
		c.succeed(r, &wire.OK{})
	}
	next := f.next
	f.asking, f.next = nil, nil
	if len(next) > 0 {
		c.raiseFence(next)
	}
}
