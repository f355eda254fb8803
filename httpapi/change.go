package httpapi

import (
	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// The verbs that change one task and answer with the task as it is then.

func (c *call) cancelMessage(to shardactor.Asker, _ struct{}) shardactor.Message {
	return &shardactor.Cancel{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) replayMessage(to shardactor.Asker, _ struct{}) shardactor.Message {
	return &shardactor.Replay{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) runMessage(to shardactor.Asker, _ struct{}) shardactor.Message {
	return &shardactor.RunNow{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) moveMessage(to shardactor.Asker, priority int) shardactor.Message {
	return &shardactor.Prioritize{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID, Priority: priority}
}

// parseBare reads a body without members. It may be empty.
func parseBare(body []byte) (struct{}, *wire.Error) { return struct{}{}, wire.CheckBareRequest(body) }

// onTask makes the handler of one of the verbs. class is that of the message: a cancel is no
// new work, because it ends what a worker would do.
func onTask[T any](
	a *api, class mailbox.Class, parse func(body []byte) (T, *wire.Error), message func(c *call, to shardactor.Asker, request T) shardactor.Message,
) func(c *call) answer {
	return parsed(parse, func(c *call, request T) answer {
		_, refusal := ask[shardactor.Effect](a, a.o.Engine.ShardOf(c.taskID), 0, class, func(to shardactor.Asker) shardactor.Message {
			return message(c, to, request)
		})
		switch {
		case refusal == nil:
			return a.taskAnswer(c)
		case refusal.Code == wire.CodeTaskNotFound:
			return refuse(unknownTask(c.taskID))
		case refusal.Code == wire.CodeAlreadyTerminal:
			return a.refuseWithTask(c, *refusal)
		}
		return refuse(refusal)
	})
}

// refuseWithTask refuses and answers with the task as well.
func (a *api) refuseWithTask(c *call, refusal wire.Error) answer {
	task, failed := a.readTask(c)
	if task == nil {
		return failed
	}
	refusal.Task = task
	return refuse(&refusal)
}
