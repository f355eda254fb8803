package httpapi

import (
	"fmt"
	"net/http"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// postResults ends many deliveries with their outcomes and answers when all of
// them are on disk. Each item stands alone; the answer is a refusal only if the
// server took none for reasons of its own.
func (a *api) postResults(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	items, refusal := wire.ParseResultBatch(body)
	if refusal != nil {
		return refuse(refusal)
	}
	answers := a.completeAll(c, items)
	if refusal := allTurnedAway(answers); refusal != nil {
		return refuse(refusal)
	}
	return answer{status: http.StatusOK, body: appendResults(items, answers)}
}

// completeAll posts to each shard at once what belongs to it, in order.
func (a *api) completeAll(c *call, items []wire.ResultItem) []shardactor.Effect {
	answered := newGather(len(items))
	posts := make([]batchPost, a.o.Engine.Shards())
	for i := range items {
		item := &items[i]
		if item.Err == nil {
			item.Err = a.tokenMissing(item.Holder)
		}
		if item.Err != nil {
			answered.refuse(i, item.Err)
			continue
		}
		posts[a.o.Engine.ShardOf(item.TaskID)].add(i, &shardactor.Result{
			Asker: shardactor.Asker{Sink: answered, Ref: uint64(i)}, Owner: c.owner(item.Holder),
			TaskRef: wire.TaskRef{TaskID: item.TaskID, Token: item.Token}, ResultRequest: item.Request,
		}, item.Bytes)
	}
	return a.postAll(posts, mailbox.ClassKeep, answered)
}

// appendResults makes the body: one record or refusal for each item, in order,
// with the task it is about.
func appendResults(items []wire.ResultItem, answers []shardactor.Effect) []byte {
	body := append([]byte(nil), `{"results":[`...)
	for i, e := range answers {
		if i > 0 {
			body = append(body, ',')
		}
		switch e := e.(type) {
		case *shardactor.Completed:
			body = e.Record.TaskID.AppendTo(append(body, `{"taskId":"`...))
			body = wire.AppendResultRecord(append(body, `","result":`...), e.Record)
			body = append(body, '}')
		case *shardactor.Refused:
			about := *advised(e.Err) // a refusal may be shared
			about.TaskID = items[i].TaskID
			body = wire.AppendError(body, &about)
		default:
			panic(fmt.Sprintf("httpapi: a result was answered by %T", e))
		}
	}
	return append(body, "]}"...)
}
