package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// FeatureCancel is how a welcome announces the frame cancel.
const FeatureCancel = "cancel"

// cancel ends a task that has not ended. It frees what its worker would still
// do, so a shard takes it even when it takes no new tasks.
func (c *Conversation) cancel(f *wire.Cancel) {
	r := c.begin(f.Ref, messageBytes)
	// An answer that refuses names the task.
	r.task.TaskID = f.TaskID
	m := &shard.Cancel{
		Asker: c.ask(r, c.open(r)), Tenant: c.principal.Tenant, Commands: c.principal.Commands, TaskID: f.TaskID,
	}
	c.post(c.facts.Router.ShardOf(f.TaskID), mailbox.ClassKeep, m, messageBytes)
}
