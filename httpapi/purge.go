package httpapi

import (
	"maps"
	"math"
	"slices"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// purgeQueue removes dead letters of one queue; see workDead.
func (a *api) purgeQueue(c *call) answer {
	req, refusal := c.purgeRequest()
	if refusal != nil {
		return refuse(refusal)
	}
	return a.workDead(c, req, "purged", func(letters []store.TimedKey) []shardactor.Effect {
		answered := newGather(len(letters))
		posts := make([]batchPost, a.o.Engine.Shards())
		for place, k := range letters {
			posts[a.o.Engine.ShardOf(k.ID)].add(place, &shardactor.Purge{
				Asker:  shardactor.Asker{Sink: answered, Ref: uint64(place)},
				Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: k.ID, EndedAtMs: k.AtMs,
			}, 0)
		}
		return a.postAll(posts, mailbox.ClassNew, answered)
	})
}

// purgeRequest reads the parameters by the rules of the body of a replay, whose
// members have the same names.
func (c *call) purgeRequest() (*wire.DeadRequest, *wire.Error) {
	body := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(wire.AppendQuoted(body, name), ':')
		text := c.query.Get(name)
		if _, ok := wire.ParseInteger(text); name == "limit" && ok {
			body = append(body, text...)
			continue
		}
		body = wire.AppendQuoted(body, text)
	}
	return wire.ParseDeadRequest(append(body, '}'), wire.DeadRequest{EndedRequest: wire.EndedRequest{Limit: math.MaxInt}})
}
