package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// subscribe subscribes the consumer in every shard, or replaces its subscription.
func (c *Conversation) subscribe(f *wire.Subscribe) {
	bytes := messageBytes
	for _, command := range f.Commands {
		bytes += len(command)
	}
	r := c.begin(f.Ref, bytes)
	if refusal := c.noTasks(); refusal != nil {
		c.refuse(r, refusal)
		return
	}
	commands, refusal := c.principal.Allowed(f.Commands)
	if refusal != nil {
		c.refuse(r, refusal)
		return
	}
	c.subscribed = append([]string{}, commands...)
	c.profile.leaving = false
	c.setWindow(f.Window)
	number := c.open(r)
	for shardNo := range c.facts.Router.Shards() {
		c.post(shardNo, mailbox.ClassKeep, &shard.Subscribe{
			Asker: c.ask(r, number), Consumer: c.consumer, Commands: commands,
			LeaseForMs: int64(f.LeaseSeconds) * 1000,
		}, bytes)
	}
}

// noTasks is why the client gets no more tasks over this socket, nil while it can.
func (c *Conversation) noTasks() *wire.Error {
	switch {
	case c.draining:
		return drainingError
	case c.resting:
		return restingError
	}
	return nil
}

// window changes how many tasks may be in flight.
func (c *Conversation) window(f *wire.Window) {
	r := c.begin(f.Ref, messageBytes)
	if refusal := c.noTasks(); refusal != nil && f.Size > 0 {
		c.refuse(r, refusal)
		return
	}
	if f.Size == 0 {
		c.setWindowZero(r)
		return
	}
	c.profile.leaving = false
	c.setWindow(f.Size)
	c.succeed(r, &wire.OK{})
}

// drain ends deliveries to a client that wants no more tasks.
func (c *Conversation) drain(f *wire.Drain) {
	c.profile.leaving = true
	c.setWindowZero(c.begin(f.Ref, messageBytes))
}
