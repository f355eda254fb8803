package httpapi

import (
	"fmt"
	"net/http"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// messageOverheadBytes is what an Enqueue takes in a mailbox beside its body.
const messageOverheadBytes = 512

// postTask makes a task and answers when it is on disk.
func (a *api) postTask(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := wire.ParseEnqueueRequest(body)
	if refusal != nil {
		return refuse(refusal)
	}
	if !c.who.MayUse(req.Command) {
		return refuse(notForCommand(req.Command))
	}
	if a.o.Store.Guard().Level() >= store.NoEnqueue {
		return refuse(storageFullError())
	}
	effect, refusal := a.enqueue(c, req, len(body))
	if refusal != nil {
		return refuse(refusal)
	}
	return a.enqueued(effect)
}

// enqueue posts the message and waits for its effect. It does not look at the
// request's context: every accepted message is answered within one sync, and a
// client that has only closed its sending side still wants to know.
func (a *api) enqueue(c *call, req *wire.EnqueueRequest, bodyBytes int) (shardactor.Effect, *wire.Error) {
	id, shard := a.o.Engine.Route(c.who.Tenant, req.Command, req.IdempotencyKey)
	answered := newReply()
	message := &shardactor.Enqueue{
		Asker:          shardactor.Asker{Sink: answered},
		ID:             id,
		Tenant:         c.who.Tenant,
		EnqueueRequest: *req,
		Fingerprint:    shardactor.FingerprintOf(req),
		WantTask:       true,
	}
	if refusal := a.post(shard, message, bodyBytes, mailbox.ClassNew); refusal != nil {
		return nil, refusal
	}
	return <-answered.effect, nil
}

func (a *api) enqueued(effect shardactor.Effect) answer {
	switch e := effect.(type) {
	case *shardactor.Enqueued:
		return answer{
			status:   http.StatusAccepted,
			location: base + "/tasks/" + e.TaskID.String(),
			replayed: e.Replayed,
			body:     wire.AppendTask(nil, e.Task, wire.PayloadAsString),
		}
	case *shardactor.Refused:
		return refuse(e.Err)
	default:
		panic(fmt.Sprintf("httpapi: an enqueue was answered by %T", effect))
	}
}

// post hands one message to a shard, or says why it was not taken.
func (a *api) post(shard int, m shardactor.Message, bytes int, class mailbox.Class) *wire.Error {
	return verdictError(a.o.Engine.Post(shard, []shardactor.Message{m}, bytes+messageOverheadBytes, class))
}
