package httpapi

import (
	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// explainTries bounds how often a task is read again because it moved between
// what the store and what the shard said.
const explainTries = 3

// explained asks the shard of a task why it waits, or when its lease ends, and joins
// that to what the store says if both are about the same moment. A shard that has no
// time, and a task that does not keep still, leave it out. Without a task the answer
// says why.
func (a *api) explained(c *call, task *wire.Task) (*wire.Task, answer) {
	for range explainTries {
		switch {
		case task.Status == wire.StatusInProgress && a.lend(c, task), task.Status.Terminal():
			return task, answer{}
		case task.Status == wire.StatusPending:
			if said, refused, over := a.whyWaits(c, task); over {
				return said, refused
			}
		}
		again, refused := a.readTask(c, task.ID)
		if again == nil {
			return nil, refused
		}
		task = again
	}
	return task, answer{}
}

// whyWaits joins to a task why it waits. over is false if another read could find
// more.
func (a *api) whyWaits(c *call, task *wire.Task) (said *wire.Task, refused answer, over bool) {
	answered := newReply()
	m := &shardactor.Explain{Asker: shardactor.Asker{Sink: answered}, Tenant: c.who.Tenant, TaskID: task.ID}
	if a.post(a.o.Engine.ShardOf(task.ID), m, 0, mailbox.ClassNew) != nil {
		return task, answer{}, true
	}
	select {
	case effect := <-answered.effect:
		said, ok := effect.(*shardactor.Explained)
		if !ok {
			panic("httpapi: a question about a task was answered by another effect")
		}
		if said.Waiting == nil || said.UpdatedAtMs != task.UpdatedAtMs {
			return nil, answer{}, false
		}
		task.Waiting = said.Waiting
		return task, answer{}, true
	case <-c.r.Context().Done():
		return nil, answer{abort: true}, true
	}
}

// lend joins to those tasks that are in progress when their leases and runs end, which
// their shards alone know: one question for each shard. It is false if one of them has
// another delivery by now, or none; a shard that has no time leaves its own out.
func (a *api) lend(c *call, tasks ...*wire.Task) bool {
	posts := make([]batchPost, a.o.Engine.Shards())
	ids := make([][]wire.TaskID, len(posts))
	lent := make(map[wire.TaskID]*wire.Task)
	for _, task := range tasks {
		if task.Status == wire.StatusInProgress {
			lent[task.ID] = task
			shard := a.o.Engine.ShardOf(task.ID)
			ids[shard] = append(ids[shard], task.ID)
		}
	}
	if len(lent) == 0 {
		return true
	}
	answered := newGather(len(posts))
	for shard, ids := range ids {
		asker := shardactor.Asker{Sink: answered, Ref: uint64(shard)}
		if ids == nil {
			answered.put(shard, &shardactor.LeasesTold{Ref: asker.Ref})
			continue
		}
		posts[shard].add(shard, &shardactor.TellLeases{Asker: asker, Tenant: c.who.Tenant, Tasks: ids}, len(ids)*len(wire.TaskID{}))
	}
	for shard, effect := range a.postAll(posts, mailbox.ClassNew, answered) {
		said, ok := effect.(*shardactor.LeasesTold)
		if !ok { // no time
			for _, id := range ids[shard] {
				delete(lent, id)
			}
			continue
		}
		for _, told := range said.Leases {
			if task := lent[told.TaskID]; task != nil && task.Deliveries == told.Delivery {
				task.LeaseUntilMs, task.RunUntilMs = told.LeaseUntilMs, told.RunUntilMs
				delete(lent, told.TaskID)
			}
		}
	}
	return len(lent) == 0
}
