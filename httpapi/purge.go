package httpapi

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// purgeQueue removes dead letters of one queue; see workBulk.
func (a *api) purgeQueue(c *call) answer {
	return a.workBulk(c, c.purgeRequest, &bulkKind{
		kind: wire.BulkDead, done: "purged", list: bulkList,
		act: func(to shardactor.Asker, _ *bulkWork, k record.TimedKey) shardactor.Message {
			return &shardactor.Purge{Asker: to, Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs}
		},
	})
}

// notText are the parameters of a purge that are no strings in the body of a replay.
var notText = []string{"limit", "priority", "minAttempts", "dryRun", "match"}

// purgeRequest reads the parameters by the rules of the body of a replay, whose
// members have the same names. What a body may have beside a value, spaces, or null in
// place of one, is refused in a parameter.
func (c *call) purgeRequest() (*wire.BulkRequest, *wire.Error) {
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
	return wire.ParseBulkRequest(append(body, '}'), wire.BulkDead, wire.BulkRequest{EndedRequest: wire.EndedRequest{Limit: math.MaxInt}})
}
