package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// enqueue posts a task. All tasks of one message for one shard are one push.
func (c *Conversation) enqueue(f *wire.Enqueue) {
	bytes := messageBytes + len(f.Payload) + len(f.Command) + len(f.IdempotencyKey) +
		len(f.TraceParent) + len(f.TraceState) + len(f.Labels) + len(f.ConcurrencyKey)
	r := c.begin(f.Ref, bytes)
	if c.draining {
		c.refuse(r, drainingError)
		return
	}
	if refusal := c.principal.CheckCommand(f.Command); refusal != nil {
		c.refuse(r, refusal)
		return
	}
	pass, refusal := c.facts.Router.Enter(c.principal.Tenant, c.principal.Subject, 1, len(f.Payload))
	if refusal != nil {
		c.refuse(r, refusal)
		return
	}
	id, shardNo := c.facts.Router.Route(c.principal.Tenant, f.Command, f.IdempotencyKey)
	m := &shard.Enqueue{
		Asker: c.ask(r, c.open(r)), ID: id, Tenant: c.principal.Tenant, EnqueueRequest: f.EnqueueRequest,
		Pass: pass,
	}
	if f.IdempotencyKey != "" {
		m.Fingerprint = shard.FingerprintOf(&m.EnqueueRequest)
	}
	c.post(shardNo, mailbox.ClassNew, m, bytes)
}
