package httpapi

import (
	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// explainTries bounds how often a task is read again because it moved between
// what the store and what the shard said.
const explainTries = 3

// explained asks the shard of a task why it waits, and joins that to what the
// store says if both are about the same moment. A shard that has no time, and a
// task that does not keep still, leave the reason out. Without a task the answer
// says why.
func (a *api) explained(c *call, task *wire.Task) (*wire.Task, answer) {
	for range explainTries {
		answered := newReply()
		m := &shardactor.Explain{Asker: shardactor.Asker{Sink: answered}, Tenant: c.who.Tenant, TaskID: task.ID}
		if a.post(a.o.Engine.ShardOf(task.ID), m, 0, mailbox.ClassNew) != nil {
			return task, answer{}
		}
		select {
		case effect := <-answered.effect:
			said, ok := effect.(*shardactor.Explained)
			if !ok {
				panic("httpapi: a question about a task was answered by another effect")
			}
			if said.Waiting != nil && said.UpdatedAtMs == task.UpdatedAtMs {
				task.Waiting = said.Waiting
				return task, answer{}
			}
		case <-c.r.Context().Done():
			return nil, answer{abort: true}
		}
		again, refused := a.readTask(c, task.ID)
		if again == nil || again.Status != wire.StatusPending {
			return again, refused
		}
		task = again
	}
	return task, answer{}
}
