package httpapi

import (
	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// replayTask gives one dead letter all its attempts back.
func (a *api) replayTask(c *call) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	if refusal := c.readBareBody(); refusal != nil {
		return refuse(refusal)
	}
	effect := a.replayAll(c, []store.TimedKey{{ID: id}})[0]
	if refused, ok := effect.(*shardactor.Refused); ok {
		if refused.Err.Code == wire.CodeTaskNotFound {
			return refuse(unknownTask(id))
		}
		return refuse(refused.Err)
	}
	return a.taskAsItIs(c, id)
}

// replayAbsent is what a replay is about that does not say: what a worker ended
// FAILED would most likely fail again.
var replayAbsent = wire.DeadRequest{
	EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks},
	Causes:       wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased),
}

// replayQueue replays dead letters of one queue; see workDead.
func (a *api) replayQueue(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := wire.ParseDeadRequest(body, replayAbsent)
	if refusal != nil {
		return refuse(refusal)
	}
	return a.workDead(c, req, "replayed", func(letters []store.TimedKey) []shardactor.Effect {
		return a.replayAll(c, letters)
	})
}

// replayAll posts to each shard at once what belongs to it and waits for all
// the effects; a letter with the time 0 may have died at any. Like enqueue it does
// not look at the request's context.
func (a *api) replayAll(c *call, letters []store.TimedKey) []shardactor.Effect {
	answered := newGather(len(letters))
	posts := make([]batchPost, a.o.Engine.Shards())
	for place, k := range letters {
		posts[a.o.Engine.ShardOf(k.ID)].add(place, &shardactor.Replay{
			Asker:  shardactor.Asker{Sink: answered, Ref: uint64(place)},
			Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs,
		}, 0)
	}
	return a.postAll(posts, mailbox.ClassNew, answered)
}
