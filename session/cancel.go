package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// featureCancel is the feature in a welcome that announces the frame cancel.
const featureCancel = "cancel"

// cancel ends a task that has not ended. Its class is ClassKeep, because it ends work of a
// worker: a shard that takes no new tasks takes it.
func (c *Conversation) cancel(f *wire.Cancel) {
	r := c.begin(f.Ref, messageBytes)
	// A refusal names the task.
	r.task.TaskID = f.TaskID
	m := &shard.Manage{
		Asker: c.ask(r, c.open(r)), Do: shard.Cancel, Tenant: c.principal.Tenant, By: c.principal.Subject,
		Commands: c.principal.Commands, TaskID: f.TaskID,
	}
	c.post(c.facts.Router.ShardOf(f.TaskID), mailbox.ClassKeep, m, messageBytes)
}
