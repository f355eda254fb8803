package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// cleanup removes tasks of the tenant that have ended by now, shard by shard and queue by
// queue, up to the limit. It stops when the client leaves.
func (a *api) cleanup(c *call, req *wire.EndedRequest) answer {
	req.BeforeMs = min(req.BeforeMs, a.o.NowMs()+1) // 0 stays 0
	deleted := 0
	for shard := range a.o.Store.Shards() {
		if deleted == req.Limit || c.r.Context().Err() != nil {
			break
		}
		n, refusal := a.cleanShard(c, shard, req.BeforeMs, req.Limit-deleted)
		if deleted += n; refusal != nil {
			counted := *refusal
			if deleted > 0 {
				counted.Sentence += fmt.Sprintf("; %d were deleted before", deleted)
			}
			c.record.Int("done", deleted)
			return refuse(&counted)
		}
	}
	c.record.Int("done", deleted)
	return okay(fmt.Appendf(nil, `{"deleted":%d}`, deleted))
}

// cleanShard asks one shard to remove ended tasks of all queues that have some there.
func (a *api) cleanShard(c *call, shardNo int, beforeMs int64, limit int) (deleted int, refusal *wire.Error) {
	queues := a.o.Store.QueuesWithEnded(shardNo, func(q record.QueueKey) bool {
		return q.Tenant == c.who.Tenant && c.who.MayUse(q.Command)
	})
	if len(queues) == 0 {
		return 0, nil
	}
	bytes := 0
	for i := range queues {
		bytes += len(queues[i].Command) + len(queues[i].Tenant)
	}
	cleaned, refusal := ask[*shard.Cleaned](a, shardNo, bytes, mailbox.ClassNew, func(to shard.Asker) shard.Message {
		return &shard.Cleanup{Asker: to, Queues: queues, BeforeMs: beforeMs, Limit: limit}
	})
	if refusal != nil {
		return 0, refusal
	}
	return cleaned.Deleted, nil
}
