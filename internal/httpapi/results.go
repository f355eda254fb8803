package httpapi

import (
	"fmt"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// postResults ends many deliveries with their outcomes and answers when all of them are on
// disk. Each item succeeds or fails by itself; the answer is a refusal only if the server
// is too busy for all items.
func (a *api) postResults(c *call, items []wire.ResultItem) answer {
	answers := a.completeAll(c, items)
	if refusal := allRefusedBusy(answers); refusal != nil {
		return refuse(refusal)
	}
	return okay(appendResults(items, answers))
}

// completeAll posts to each shard its items in one push, in their order.
func (a *api) completeAll(c *call, items []wire.ResultItem) []shard.Effect {
	answered, after := a.newGather(len(items)), a.putContentsOfAll(c, items)
	posts := make([]batchPost, a.o.Engine.Shards())
	for i := range items {
		item := &items[i]
		if item.Err != nil {
			answered.refuse(i, item.Err)
			continue
		}
		posts[a.o.Engine.ShardOf(item.TaskID)].add(i, &shard.Result{
			Holder: shard.Holder{
				Asker: shard.Asker{Sink: answered, Ref: shard.Ref(i)}, Owner: c.owner(item.Holder),
				TaskRef: wire.TaskRef{TaskID: item.TaskID, Token: item.Token},
			},
			ResultRequest: item.Request,
		}, item.Bytes)
	}
	effects := a.postAll(posts, mailbox.ClassKeep, answered).wait()
	for i, do := range after {
		_, refused := effects[i].(*shard.Refused)
		do(refused)
	}
	return effects
}

// appendResults makes the body: one record or refusal for each item, in the order of the
// items, with the id of the task.
func appendResults(items []wire.ResultItem, answers []shard.Effect) []byte {
	body := appendList([]byte(`{"results":[`), len(items), func(dst []byte, i int) []byte {
		switch e := answers[i].(type) {
		case *shard.Completed:
			dst = e.Record.TaskID.AppendTo(append(dst, `{"taskId":"`...))
			dst = wire.AppendResultRecord(append(dst, `","result":`...), e.Record)
			return append(dst, '}')
		case *shard.Refused:
			about := *e.Err.Advised(retryAfterSeconds) // others may share the refusal
			about.TaskID = items[i].TaskID
			return wire.AppendError(dst, &about)
		default:
			panic(fmt.Sprintf("httpapi: a result was answered by %T", e))
		}
	})
	return append(body, "]}"...)
}
