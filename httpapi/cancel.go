package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// cancelTask ends a task that has not ended, and answers with what it is then.
func (a *api) cancelTask(c *call) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	if refusal := c.readBareBody(); refusal != nil {
		return refuse(refusal)
	}
	answered := newReply()
	message := &shardactor.Cancel{
		Asker: shardactor.Asker{Sink: answered}, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: id,
	}
	// It frees what a worker would still do, so it is not new work.
	if refusal := a.post(a.o.Engine.ShardOf(id), message, 0, mailbox.ClassKeep); refusal != nil {
		return refuse(refusal)
	}
	return a.cancelled(c, id, <-answered.effect)
}

func (a *api) cancelled(c *call, id wire.TaskID, effect shardactor.Effect) answer {
	refusal := (*wire.Error)(nil)
	switch e := effect.(type) {
	case *shardactor.Cancelled:
	case *shardactor.Refused:
		refusal = e.Err
	default:
		panic(fmt.Sprintf("httpapi: a cancel was answered by %T", effect))
	}
	if refusal != nil && refusal.Code == wire.CodeTaskNotFound {
		return refuse(unknownTask(id))
	}
	if refusal != nil && refusal.Code != wire.CodeAlreadyTerminal {
		return refuse(refusal)
	}
	if refusal == nil {
		return a.taskAsItIs(c, id)
	}
	task, refusedRead := a.readTask(c, id)
	if task == nil {
		return refusedRead
	}
	with := *refusal
	with.Task = task
	return refuse(&with)
}

// readBareBody reads a body none of whose members mean anything. It may be
// empty.
func (c *call) readBareBody() *wire.Error {
	body, refusal := c.readBody()
	if refusal != nil {
		return refusal
	}
	return wire.CheckBareRequest(body)
}
