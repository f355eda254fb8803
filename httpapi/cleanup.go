package httpapi

import (
	"fmt"
	"net/http"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// cleanup removes ended tasks of the caller's tenant, queue by queue and shard by
// shard, until the limit is reached. It ends early when the client leaves.
func (a *api) cleanup(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := wire.ParseEndedRequest(body)
	if refusal != nil {
		return refuse(refusal)
	}
	queues, err := a.o.Store.ReadQueues(c.who.Tenant)
	if err != nil {
		return a.failedRead(c, err)
	}
	deleted := 0
	for i := range queues {
		if !c.who.MayUse(queues[i].Command) {
			continue
		}
		q := store.QueueKey{Command: queues[i].Command, Tenant: c.who.Tenant}
		n, refusal := a.cleanQueue(c, q, req.BeforeMs, req.Limit-deleted)
		if deleted += n; refusal != nil {
			return refuse(refusal)
		}
	}
	return answer{status: http.StatusOK, body: fmt.Appendf(nil, `{"deleted":%d}`, deleted)}
}

func (a *api) cleanQueue(c *call, q store.QueueKey, beforeMs int64, limit int) (deleted int, refusal *wire.Error) {
	for shard := range a.o.Store.Shards() {
		if deleted == limit || c.r.Context().Err() != nil {
			break
		}
		answered := newReply()
		m := &shardactor.Cleanup{
			Asker: shardactor.Asker{Sink: answered}, Queue: q, BeforeMs: beforeMs, Limit: limit - deleted,
		}
		if refusal := a.post(shard, m, 0, mailbox.ClassNew); refusal != nil {
			return deleted, refusal
		}
		cleaned, ok := (<-answered.effect).(*shardactor.Cleaned)
		if !ok {
			panic("httpapi: a cleanup was answered by another effect")
		}
		deleted += cleaned.Deleted
	}
	return deleted, nil
}
