package httpapi

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

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
	// do is what a shard does with each task.
	do shard.Verb
}

// bulkList marks the cursors of bulk work, so that none is taken for that of a list; the
// values below it are for further kinds.
const bulkList = store.ListState(-1)

// anyTasks is a request without members about tasks that have not ended.
var anyTasks = wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks}}

var bulkReplay = &bulkKind{
	kind: wire.BulkDead, done: "replayed", list: bulkList, do: shard.Replay,
	// A task that a worker ended FAILED would most likely fail again, so its cause must be named.
	absent: wire.BulkRequest{
		EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks},
		Causes:       wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased),
	},
}

var bulkPurge = &bulkKind{
	kind: wire.BulkDead, done: "purged", list: bulkList, do: shard.Purge,
	absent: wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: math.MaxInt}},
}

var bulkCancel = &bulkKind{
	kind: wire.BulkCancel, done: "cancelled", list: bulkList - 1, do: shard.Cancel, absent: anyTasks,
}

var bulkRun = &bulkKind{
	kind: wire.BulkRun, done: "ready", list: bulkList - 2, do: shard.RunNow, absent: anyTasks,
}

var bulkMove = &bulkKind{
	kind: wire.BulkMove, done: "moved", list: bulkList - 3, do: shard.Prioritize, absent: anyTasks,
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

// notText are the parameters that are no strings in a body.
var notText = []string{"limit", "priority", "minAttempts", "dryRun", "match", "attempts>"}

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
		if list := c.query[name]; name == "label" {
			body = append(appendList(append(body, '['), len(list), func(dst []byte, i int) []byte {
				return wire.AppendQuoted(dst, list[i])
			}), ']')
			continue
		}
		if slices.Contains(notText, name) && text != "null" && text == strings.TrimSpace(text) && json.Valid([]byte(text)) {
			body = append(body, text...)
			continue
		}
		body = wire.AppendQuoted(body, text)
	}
	return append(body, '}')
}
