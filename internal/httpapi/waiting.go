package httpapi

import (
	"cmp"
	"fmt"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// explainTries bounds how often a task is read again because it has changed between the
// answers of store and shard.
const explainTries = 3

// explained asks the shard of a task why it waits, or when its lease ends, and adds that to
// the task if store and shard mean the same moment. The task stays without it if the mailbox
// is full, the task changed explainTries times or this node has no shards. Without a task the answer
// says why.
func (a *api) explained(c *call, task *wire.Task) (*wire.Task, answer) {
	for range explainTries {
		switch {
		case a.o.Engine == nil:
			return task, answer{}
		case task.Status == wire.StatusInProgress && a.addLeases(c, task), task.Status.Terminal():
			return task, answer{}
		case task.Status == wire.StatusPending:
			if explained, failed, over := a.addWaiting(c, task); over {
				return explained, failed
			}
		}
		var failed answer
		if task, failed = a.readTask(c); task == nil {
			return nil, failed
		}
	}
	return task, answer{}
}

// addWaiting adds to a task why it waits. over is false if the task has changed and must be
// read again.
func (a *api) addWaiting(c *call, task *wire.Task) (explained *wire.Task, failed answer, over bool) {
	answered := newReply()
	m := &shard.Explain{Asker: shard.Asker{Sink: answered}, Tenant: c.who.Tenant, TaskID: task.ID}
	if a.post(a.o.Engine.ShardOf(task.ID), m, 0, mailbox.ClassNew) != nil {
		return task, answer{}, true
	}
	select {
	case effect := <-answered.effect:
		e, ok := effect.(*shard.Explained)
		if !ok {
			panic(fmt.Sprintf("httpapi: %T was answered by %T", m, effect))
		}
		if e.Waiting == nil || e.UpdatedAtMs != task.UpdatedAtMs {
			return nil, answer{}, false
		}
		task.Waiting = e.Waiting
		a.addTarget(c, task)
		return task, answer{}, true
	case <-c.r.Context().Done():
		return nil, answer{abort: true}, true
	case <-a.o.Lost:
		return nil, refuse(notLeaderError), true
	}
}

// addTarget says so if a task is with nobody because the target of its queue fails.
func (a *api) addTarget(c *call, task *wire.Task) {
	w := task.Waiting
	if w.Reason != wire.WaitingNoCredit && w.Reason != wire.WaitingBehind {
		return
	}
	problem, probeAtMs := a.o.Callbacks.TargetHealth(c.who.Tenant, task.Command)
	if problem != "" {
		w.Reason, w.Problem, w.UntilMs = wire.WaitingTarget, problem, probeAtMs
	}
}

// addLeases adds to the tasks in progress when their leases and runs end, which only their
// shards know: one message for each shard. It reports false if a task has another delivery
// now, or none. The tasks of a shard whose mailbox is full, and all where no shards are, stay
// without it.
func (a *api) addLeases(c *call, tasks ...*wire.Task) bool {
	if a.o.Engine == nil {
		return true
	}
	posts := make([]batchPost, a.o.Engine.Shards())
	ids := make([][]wire.TaskID, len(posts))
	missing := make(map[wire.TaskID]*wire.Task)
	for _, task := range tasks {
		if task.Status == wire.StatusInProgress {
			missing[task.ID] = task
			shardNo := a.o.Engine.ShardOf(task.ID)
			ids[shardNo] = append(ids[shardNo], task.ID)
		}
	}
	if len(missing) == 0 {
		return true
	}
	answered := a.newGather(len(posts))
	for shardNo, ids := range ids {
		asker := shard.Asker{Sink: answered, Ref: shard.Ref(shardNo)}
		if ids == nil {
			answered.put(shardNo, &shard.LeasesTold{Ref: asker.Ref})
			continue
		}
		posts[shardNo].add(shardNo, &shard.TellLeases{Asker: asker, Tenant: c.who.Tenant, Tasks: ids}, len(ids)*len(wire.TaskID{}))
	}
	for shardNo, effect := range a.postAll(posts, mailbox.ClassNew, answered).wait() {
		e, ok := effect.(*shard.LeasesTold)
		if !ok { // the mailbox is full
			for _, id := range ids[shardNo] {
				delete(missing, id)
			}
			continue
		}
		for _, told := range e.Leases {
			if task := missing[told.TaskID]; task != nil && task.Deliveries == told.Delivery {
				task.LeaseUntilMs, task.RunUntilMs = told.LeaseUntilMs, told.RunUntilMs
				task.Progress, task.Printed = cmp.Or(told.Progress, task.Progress), task.Printed || told.Printed
				delete(missing, told.TaskID)
			}
		}
	}
	return len(missing) == 0
}
