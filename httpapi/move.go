package httpapi

import (
	"codeq/mailbox"
	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// cancelTasks cancels many tasks of one queue; see workBulk.
func (a *api) cancelTasks(c *call) answer {
	return a.workBulk(c, c.openTasks(wire.BulkCancel), &bulkKind{
		kind: wire.BulkCancel, done: "cancelled", list: bulkList - 1,
		act: func(to shardactor.Asker, w *bulkWork, k record.TimedKey) shardactor.Message {
			return &shardactor.Cancel{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, Only: bulkPlaces[w.query.State]}
		},
	})
}

// runTasks makes many delayed tasks of one queue ready; see workBulk.
func (a *api) runTasks(c *call) answer {
	return a.workBulk(c, c.openTasks(wire.BulkRun), &bulkKind{
		kind: wire.BulkRun, done: "ready", list: bulkList - 2,
		act: func(to shardactor.Asker, _ *bulkWork, k record.TimedKey) shardactor.Message {
			return &shardactor.RunNow{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID}
		},
	})
}

// moveTasks gives many waiting tasks of one queue another priority; see workBulk.
func (a *api) moveTasks(c *call) answer {
	return a.workBulk(c, c.openTasks(wire.BulkMove), &bulkKind{
		kind: wire.BulkMove, done: "moved", list: bulkList - 3,
		act: func(to shardactor.Asker, w *bulkWork, k record.TimedKey) shardactor.Message {
			return &shardactor.Prioritize{
				Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, Only: bulkPlaces[w.query.State], Priority: w.req.ToPriority,
			}
		},
	})
}

// openTasks reads the body of a request about tasks that have not ended.
func (c *call) openTasks(kind wire.BulkKind) bulkReader {
	return c.bulkBody(kind, wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks}})
}

// runTask makes one delayed task ready before its time.
func (a *api) runTask(c *call) answer {
	return a.moved(c, wire.CheckBareRequest, func(to shardactor.Asker, id wire.TaskID) shardactor.Message {
		return &shardactor.RunNow{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: id}
	})
}

// moveTask gives one waiting task another priority.
func (a *api) moveTask(c *call) answer {
	priority := 0
	read := func(body []byte) (refusal *wire.Error) {
		priority, refusal = wire.ParseMoveRequest(body)
		return refusal
	}
	return a.moved(c, read, func(to shardactor.Asker, id wire.TaskID) shardactor.Message {
		return &shardactor.Prioritize{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: id, Priority: priority}
	})
}

// moved does something with one task and answers with what it is then: the id of the
// path first, then the body, then the shard.
func (a *api) moved(c *call, read func(body []byte) *wire.Error, message func(shardactor.Asker, wire.TaskID) shardactor.Message) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	body, refusal := c.readBody()
	if refusal == nil {
		refusal = read(body)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	answered := newReply()
	if refusal := a.post(a.o.Engine.ShardOf(id), message(shardactor.Asker{Sink: answered}, id), 0, mailbox.ClassNew); refusal != nil {
		return refuse(refusal)
	}
	return a.afterMove(c, id, <-answered.effect)
}

// afterMove is the answer to whoever did something with one task.
func (a *api) afterMove(c *call, id wire.TaskID, effect shardactor.Effect) answer {
	refused, ok := effect.(*shardactor.Refused)
	switch {
	case !ok:
		return a.taskAsItIs(c, id)
	case refused.Err.Code == wire.CodeTaskNotFound:
		return refuse(unknownTask(id))
	}
	return refuse(refused.Err)
}
