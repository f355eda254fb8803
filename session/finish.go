package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

func (c *Conversation) owner() shard.Owner {
	return shard.Owner{Tenant: c.principal.Tenant, Subject: c.principal.Subject}
}

// ending begins a request that ends a delivery. A frame with the token also confirms that the
// client has the task; the shard confirms it as well.
func (c *Conversation) ending(ref wire.Ref, task wire.TaskRef, bytes int) (*request, shard.Holder) {
	r := c.begin(ref, bytes)
	r.task = task
	r.ok.TaskID = task.TaskID
	r.hasCredit = c.tasks.ends(task)
	c.tasks.confirmNamed(task)
	return r, shard.Holder{Asker: c.ask(r, c.open(r)), Owner: c.owner(), TaskRef: task}
}

// report hands on what the worker says of a delivery.
func (c *Conversation) report(ref wire.Ref, task wire.TaskRef, m *shard.Report, bytes int) {
	r := c.begin(ref, messageBytes+bytes)
	r.task, r.ok.TaskID = task, task.TaskID
	c.tasks.confirmNamed(task)
	m.Holder = shard.Holder{Asker: c.ask(r, c.open(r)), Owner: c.owner(), TaskRef: task}
	c.post(c.facts.Router.ShardOf(task.TaskID), mailbox.ClassKeep, m, r.bytes)
}

// result ends a task with an outcome.
func (c *Conversation) result(f *wire.Result) {
	bytes := messageBytes + len(f.Result) + len(f.Error)
	for i := range f.Artifacts {
		bytes += len(f.Artifacts[i].Name) + len(f.Artifacts[i].URL)
	}
	r, holder := c.ending(f.Ref, f.TaskRef, bytes)
	r.failed = f.Status != wire.StatusCompleted
	c.postEnding(r, &shard.Result{Holder: holder, ResultRequest: f.ResultRequest, HasCredit: r.hasCredit})
}

// endDelivery ends a delivery without an outcome in the way that the message says.
func (c *Conversation) endDelivery(ref wire.Ref, task wire.TaskRef, m *shard.End) {
	r, holder := c.ending(ref, task, messageBytes+len(m.Reason))
	m.Holder, r.failed = holder, m.How == shard.Nack
	c.postEnding(r, m)
}

func (c *Conversation) postEnding(r *request, m shard.Message) {
	c.post(c.facts.Router.ShardOf(r.task.TaskID), mailbox.ClassKeep, m, r.bytes)
}
