package httpapi

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// The verbs that change one task and answer with the task as it is then.

func (c *call) cancelMessage(to shard.Asker, _ struct{}) shard.Message {
	return &shard.Cancel{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) replayMessage(to shard.Asker, _ struct{}) shard.Message {
	return &shard.Replay{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) runMessage(to shard.Asker, _ struct{}) shard.Message {
	return &shard.RunNow{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID}
}

func (c *call) moveMessage(to shard.Asker, priority int) shard.Message {
	return &shard.Prioritize{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: c.taskID, Priority: priority}
}

// parseBare reads a body without members. It may be empty.
func parseBare(body []byte) (struct{}, *wire.Error) { return struct{}{}, wire.CheckBareRequest(body) }

// onTask makes the handler of one of the verbs. class is that of the message: a cancel is no
// new work, because it ends what a worker would do.
func onTask[T any](
	a *api, class mailbox.Class, parse func(body []byte) (T, *wire.Error), message func(c *call, to shard.Asker, request T) shard.Message,
) func(c *call) answer {
	return parsed(parse, func(c *call, request T) answer {
		_, refusal := ask[shard.Effect](a, a.o.Engine.ShardOf(c.taskID), 0, class, func(to shard.Asker) shard.Message {
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
