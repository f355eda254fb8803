package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// enqueue posts a task. All those of one message go to a shard in one push.
func (c *Conversation) enqueue(f *wire.Enqueue) {
	bytes := messageBytes + len(f.Payload) + len(f.Command) + len(f.IdempotencyKey) +
		len(f.TraceParent) + len(f.TraceState)
	r := c.begin(f.Ref, bytes)
	if c.draining {
		c.refuse(r, goingAway())
		return
	}
	if !c.principal.MayUse(f.Command) {
		c.refuse(r, notForCommand(f.Command))
		return
	}
	id, shardNo := c.facts.Router.Route(c.principal.Tenant, f.Command, f.IdempotencyKey)
	m := &shard.Enqueue{
		Asker: c.ask(r, c.open(r)), ID: id, Tenant: c.principal.Tenant, EnqueueRequest: f.EnqueueRequest,
	}
	if f.IdempotencyKey != "" {
		m.Fingerprint = shard.FingerprintOf(&m.EnqueueRequest)
	}
	c.post(shardNo, mailbox.ClassNew, m, bytes)
}
