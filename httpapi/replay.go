package httpapi

import (
	"fmt"
	"net/http"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// replayChunk is how many dead letters are replayed before the next are looked
// for: few enough that producers hardly wait for them.
const replayChunk = 256

// replayTask gives one dead letter all its attempts back.
func (a *api) replayTask(c *call) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	if refusal := c.readBareBody(); refusal != nil {
		return refuse(refusal)
	}
	effect := a.replayAll(c, []wire.TaskID{id})[0]
	if refused, ok := effect.(*shardactor.Refused); ok {
		if refused.Err.Code == wire.CodeTaskNotFound {
			return refuse(unknownTask(id))
		}
		return refuse(refused.Err)
	}
	return a.taskAsItIs(c, id)
}

// replayQueue replays dead letters of one queue that had ended when it was
// asked, oldest first, up to the limit. It stops when the client leaves or the
// shards have no room; whoever asks again goes on where it stopped.
func (a *api) replayQueue(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := wire.ParseEndedRequest(body)
	if refusal != nil {
		return refuse(refusal)
	}
	untilMs := a.o.NowMs()
	if req.BeforeMs > 0 {
		untilMs = min(untilMs, req.BeforeMs-1)
	}
	replayed, ans := a.replayUntil(c, q, untilMs, req.Limit)
	if ans != nil {
		return *ans
	}
	figures, failed := a.readQueue(c, q)
	if figures == nil {
		return failed
	}
	return answer{
		status: http.StatusOK, body: fmt.Appendf(nil, `{"replayed":%d,"remaining":%d}`, replayed, figures.Dead),
	}
}

// replayUntil replays chunk by chunk. A refusal counts only if nothing was
// replayed before it.
func (a *api) replayUntil(c *call, q store.QueueKey, untilMs int64, limit int) (replayed int, ans *answer) {
	var places []store.ListPlace
	for replayed < limit && c.r.Context().Err() == nil {
		ids, next, err := a.o.Store.DeadLetters(q, untilMs, places, min(replayChunk, limit-replayed))
		if err != nil {
			failed := a.failedRead(c, err)
			return replayed, &failed
		}
		if len(ids) == 0 {
			break
		}
		var refusal *wire.Error
		for _, effect := range a.replayAll(c, ids) {
			switch e := effect.(type) {
			case *shardactor.Replayed:
				replayed++
			case *shardactor.Refused:
				if e.Err.Code.Retryable() {
					refusal = e.Err
				}
			}
		}
		if refusal != nil && replayed == 0 {
			refused := refuse(refusal)
			return 0, &refused
		}
		if places = next; places == nil || refusal != nil {
			break
		}
	}
	return replayed, nil
}

// replayAll posts to each shard at once what belongs to it and waits for all
// the effects. Like enqueue it does not look at the request's context.
func (a *api) replayAll(c *call, ids []wire.TaskID) []shardactor.Effect {
	answered := newGather(len(ids))
	posts := make([]batchPost, a.o.Engine.Shards())
	for place, id := range ids {
		posts[a.o.Engine.ShardOf(id)].add(place, &shardactor.Replay{
			Asker:  shardactor.Asker{Sink: answered, Ref: uint64(place)},
			Tenant: c.who.Tenant, Commands: c.who.Commands, TaskID: id,
		}, 0)
	}
	return a.postAll(posts, mailbox.ClassNew, answered)
}
