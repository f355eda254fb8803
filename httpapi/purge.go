package httpapi

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// purgeNames are the parameters of a purge.
var purgeNames = []string{"before", "limit", "worker", "error", "cause", "cursor"}

// purgeQueue removes dead letters of one queue; see workDead.
func (a *api) purgeQueue(c *call) answer {
	req, refusal := purgeRequestOf(c.r.URL)
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

// purgeRequestOf reads the query, by the rules of the body of a replay. A name
// that is none is refused: one that was mistyped would remove everything.
func purgeRequestOf(u *url.URL) (*wire.DeadRequest, *wire.Error) {
	values, refusal := queryOf(u)
	if refusal == nil {
		refusal = onceEach(values, purgeNames...)
	}
	if refusal != nil {
		return nil, refusal
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(purgeNames, name) {
			return nil, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(
				"%.40q is no parameter of a purge, which takes before, limit, worker, error, cause and cursor", name))
		}
	}
	body := []byte{'{'}
	for _, name := range purgeNames {
		if text := values.Get(name); text != "" {
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(wire.AppendQuoted(body, name), ':')
			if _, ok := wire.ParseInteger(text); name == "limit" && ok {
				body = append(body, text...)
				continue
			}
			body = wire.AppendQuoted(body, text)
		}
	}
	return wire.ParseDeadRequest(append(body, '}'), wire.DeadRequest{EndedRequest: wire.EndedRequest{Limit: math.MaxInt}})
}
