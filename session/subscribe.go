package session

import (
	"slices"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// subscribe seats the session in every shard, or changes what it takes there.
func (c *Conversation) subscribe(f *wire.Subscribe) {
	bytes := messageBytes
	for _, command := range f.Commands {
		bytes += len(command)
	}
	r := c.begin(f.Ref, bytes)
	if c.draining {
		c.refuse(r, goingAway())
		return
	}
	commands, refusal := c.allowed(f.Commands)
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
			Asker: c.ask(r, number), Seat: c.seat, Commands: commands,
			LeaseForMs: int64(f.LeaseSeconds) * 1000,
		}, bytes)
	}
}

// allowed is the list of commands with "*" replaced by what the credential is
// good for, or forbidden.
func (c *Conversation) allowed(commands []string) ([]string, *wire.Error) {
	if slices.Contains(commands, wire.AllCommands) {
		if c.principal.Commands == nil {
			return []string{wire.AllCommands}, nil
		}
		return c.principal.Commands, nil
	}
	for _, command := range commands {
		if !c.principal.MayUse(command) {
			return nil, notForCommand(command)
		}
	}
	return commands, nil
}

func notForCommand(command string) *wire.Error {
	return wire.Refuse(wire.CodeForbidden, "the credential is not good for command "+command)
}

// window changes how many unfinished tasks the session can hold.
func (c *Conversation) window(f *wire.Window) {
	r := c.begin(f.Ref, messageBytes)
	if c.draining && f.Size > 0 {
		c.refuse(r, goingAway())
		return
	}
	if f.Size == 0 {
		c.takeNoMore(r)
		return
	}
	c.profile.leaving = false
	c.setWindow(f.Size)
	c.succeed(r, &wire.OK{})
}

// drain is the client's word that it takes no more.
func (c *Conversation) drain(f *wire.Drain) {
	c.profile.leaving = true
	c.takeNoMore(c.begin(f.Ref, messageBytes))
}
