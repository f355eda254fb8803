package httpapi

import (
	"fmt"
	"net/http"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// cleanup removes ended tasks of the caller's tenant that had ended when it was
// asked, shard by shard and in each queue by queue, until the limit is reached. It
// ends early when the client leaves.
func (a *api) cleanup(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := wire.ParseEndedRequest(body)
	if refusal != nil {
		return refuse(refusal)
	}
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
	return answer{status: http.StatusOK, body: fmt.Appendf(nil, `{"deleted":%d}`, deleted)}
}

// cleanShard asks a shard once, for all queues that have ended tasks in it.
func (a *api) cleanShard(c *call, shard int, beforeMs int64, limit int) (deleted int, refusal *wire.Error) {
	queues := a.o.Store.QueuesWithEnded(shard, func(q record.QueueKey) bool {
		return q.Tenant == c.who.Tenant && c.who.MayUse(q.Command)
	})
	if len(queues) == 0 {
		return 0, nil
	}
	bytes := 0
	for i := range queues {
		bytes += len(queues[i].Command) + len(queues[i].Tenant)
	}
	answered := newReply()
	m := &shardactor.Cleanup{
		Asker: shardactor.Asker{Sink: answered}, Queues: queues, BeforeMs: beforeMs, Limit: limit,
	}
	if refusal := a.post(shard, m, bytes, mailbox.ClassNew); refusal != nil {
		return 0, refusal
	}
	cleaned, ok := (<-answered.effect).(*shardactor.Cleaned)
	if !ok {
		panic("httpapi: a cleanup was answered by another effect")
	}
	return cleaned.Deleted, nil
}
