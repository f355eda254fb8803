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
func (c *Conversation) ending(ref wire.Ref, task wire.TaskRef, bytes int) (*request, shard.Asker) {
	r := c.begin(ref, bytes)
	r.task = task
	r.ok.TaskID = task.TaskID
	r.hasCredit = c.tasks.ends(task)
	c.tasks.confirmNamed(task)
	return r, c.ask(r, c.open(r))
}

// result ends a task with an outcome.
func (c *Conversation) result(f *wire.Result) {
	bytes := messageBytes + len(f.Result) + len(f.Error)
	for i := range f.Artifacts {
		bytes += len(f.Artifacts[i].Name) + len(f.Artifacts[i].URL)
	}
	r, asker := c.ending(f.Ref, f.TaskRef, bytes)
	c.postEnding(r, &shard.Result{
		Asker: asker, Owner: c.owner(), TaskRef: f.TaskRef, ResultRequest: f.ResultRequest, HasCredit: r.hasCredit,
	})
}

// nack ends a delivery as failed; the task is tried again later.
func (c *Conversation) nack(f *wire.Nack) {
	r, asker := c.ending(f.Ref, f.TaskRef, messageBytes+len(f.Reason))
	c.postEnding(r, &shard.Nack{
		Asker: asker, Owner: c.owner(), TaskRef: f.TaskRef, NackRequest: f.NackRequest,
	})
}

// abandon ends a delivery as failed; the task is tried again at once.
func (c *Conversation) abandon(f *wire.Abandon) {
	r, asker := c.ending(f.Ref, f.TaskRef, messageBytes)
	c.postEnding(r, &shard.Abandon{Asker: asker, Owner: c.owner(), TaskRef: f.TaskRef})
}

// release returns a delivery without counting an attempt.
func (c *Conversation) release(f *wire.Release) {
	r, asker := c.ending(f.Ref, f.TaskRef, messageBytes)
	c.postEnding(r, &shard.Release{
		Asker: asker, Owner: c.owner(), TaskRef: f.TaskRef, ReleaseRequest: f.ReleaseRequest,
	})
}

func (c *Conversation) postEnding(r *request, m shard.Message) {
	c.post(c.facts.Router.ShardOf(r.task.TaskID), mailbox.ClassKeep, m, r.bytes)
}
