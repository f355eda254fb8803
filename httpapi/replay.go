package httpapi

import (
	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// replayTask gives one dead letter all its attempts back.
func (a *api) replayTask(c *call) answer {
	return a.moved(c, wire.CheckBareRequest, func(to shardactor.Asker, id wire.TaskID) shardactor.Message {
		return c.replay(to, record.TimedKey{ID: id})
	})
}

// replay is the message about one letter; one with the time 0 may have died at any.
func (c *call) replay(to shardactor.Asker, k record.TimedKey) shardactor.Message {
	return &shardactor.Replay{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs}
}

// replayAbsent is what a replay is about that does not say: what a worker ended
// FAILED would most likely fail again.
var replayAbsent = wire.BulkRequest{
	EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks},
	Causes:       wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased),
}

// replayQueue replays dead letters of one queue; see workBulk.
func (a *api) replayQueue(c *call) answer {
	return a.workBulk(c, c.bulkBody(wire.BulkDead, replayAbsent), &bulkKind{
		kind: wire.BulkDead, done: "replayed", list: bulkList,
		act: func(to shardactor.Asker, _ *bulkWork, k record.TimedKey) shardactor.Message {
			return c.replay(to, k)
		},
	})
}
