package httpapi

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// bulkKind is one kind of bulk work: something that is done with many tasks.
type bulkKind struct {
	kind wire.BulkKind
	// done is the member that counts the tasks, list marks the cursors.
	done string
	list store.ListState
	// absent are the values of members that the request leaves out.
	absent wire.BulkRequest
	// message is the message for one task that was found in the current state of the work.
	message func(c *call, to shard.Asker, w *bulkWork, k record.TimedKey) shard.Message
}

// bulkList marks the cursors of bulk work, so that none is taken for that of a list; the
// values below it are for further kinds.
const bulkList = store.ListState(-1)

// anyTasks is a request without members about tasks that have not ended.
var anyTasks = wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks}}

var bulkReplay = &bulkKind{
	kind: wire.BulkDead, done: "replayed", list: bulkList,
	// A task that a worker ended FAILED would most likely fail again, so its cause must be named.
	absent: wire.BulkRequest{
		EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks},
		Causes:       wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased),
	},
	message: func(c *call, to shard.Asker, _ *bulkWork, k record.TimedKey) shard.Message {
		return &shard.Replay{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs}
	},
}

var bulkPurge = &bulkKind{
	kind: wire.BulkDead, done: "purged", list: bulkList,
	absent: wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: math.MaxInt}},
	message: func(c *call, to shard.Asker, _ *bulkWork, k record.TimedKey) shard.Message {
		return &shard.Purge{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs}
	},
}

var bulkCancel = &bulkKind{
	kind: wire.BulkCancel, done: "cancelled", list: bulkList - 1, absent: anyTasks,
	message: func(c *call, to shard.Asker, w *bulkWork, k record.TimedKey) shard.Message {
		return &shard.Cancel{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, Only: bulkLocations[w.query.State]}
	},
}

var bulkRun = &bulkKind{
	kind: wire.BulkRun, done: "ready", list: bulkList - 2, absent: anyTasks,
	message: func(c *call, to shard.Asker, _ *bulkWork, k record.TimedKey) shard.Message {
		return &shard.RunNow{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID}
	},
}

var bulkMove = &bulkKind{
	kind: wire.BulkMove, done: "moved", list: bulkList - 3, absent: anyTasks,
	message: func(c *call, to shard.Asker, w *bulkWork, k record.TimedKey) shard.Message {
		return &shard.Prioritize{
			Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, Only: bulkLocations[w.query.State], Priority: w.req.ToPriority,
		}
	},
}

// bulk makes the handler of a kind whose request is a body.
func (a *api) bulk(kind *bulkKind) func(c *call) answer {
	return parsed(kind.parse, func(c *call, req *wire.BulkRequest) answer { return a.workBulk(c, req, kind) })
}

func (k *bulkKind) parse(body []byte) (*wire.BulkRequest, *wire.Error) {
	return wire.ParseBulkRequest(body, k.kind, k.absent)
}

// purgeQueue removes dead letters of one queue; its request is the query.
func (a *api) purgeQueue(c *call) answer {
	req, refusal := bulkPurge.parse(c.queryAsBody())
	if refusal != nil {
		return refuse(refusal)
	}
	return a.workBulk(c, req, bulkPurge)
}

// notText are the parameters of a purge that are no strings in a body.
var notText = []string{"limit", "priority", "minAttempts", "dryRun", "match"}

// queryAsBody writes the parameters as a body with members of the same names, so that one
// parser has the rules of both. A body may have spaces around a value, or null; in a
// parameter both are refused.
func (c *call) queryAsBody() []byte {
	body := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(wire.AppendQuoted(body, name), ':')
		text := c.query.Get(name)
		if slices.Contains(notText, name) && text != "null" && text == strings.TrimSpace(text) && json.Valid([]byte(text)) {
			body = append(body, text...)
			continue
		}
		body = wire.AppendQuoted(body, text)
	}
	return append(body, '}')
}
