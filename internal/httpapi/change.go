package httpapi

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// The verbs that change one task and answer with the task as it is then.

// manage is the message of one of the verbs.
func (c *call) manage(to shard.Asker, do shard.Verb, id wire.TaskID) *shard.Manage {
	return &shard.Manage{Asker: to, Do: do, Tenant: c.who.Tenant, By: c.who.Subject, Commands: c.who.Commands, TaskID: id}
}

// parseBare reads a body without members. It may be empty.
func parseBare(body []byte) (struct{}, *wire.Error) { return struct{}{}, wire.CheckBareRequest(body) }

// parseVerb is parseBare for a verb without a priority.
func parseVerb(body []byte) (priority int, refusal *wire.Error) {
	return 0, wire.CheckBareRequest(body)
}

// onTask makes the handler of one of the verbs. class is that of the message: a cancel is no
// new work, because it ends what a worker would do.
func onTask(a *api, class mailbox.Class, parse func(body []byte) (priority int, refusal *wire.Error), do shard.Verb) func(c *call) answer {
	return parsed(parse, func(c *call, priority int) answer {
		_, refusal := ask[*shard.Managed](a, a.o.Engine.ShardOf(c.taskID), 0, class, func(to shard.Asker) shard.Message {
			m := c.manage(to, do, c.taskID)
			m.Priority = priority
			return m
		})
		switch {
		case refusal == nil:
			return c.taskAnswer(a.readTask(c))
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
