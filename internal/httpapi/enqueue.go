package httpapi

import (
	"net/http"
	"strings"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// postTask makes a task and answers when it is on disk.
func (a *api) postTask(c *call, req *wire.EnqueueRequest) answer {
	if refusal := a.checkEnqueue(c, req); refusal != nil {
		return refuse(refusal)
	}
	pass, refusal := a.enter(c, 1, len(req.Payload))
	if refusal != nil {
		return refuse(refusal)
	}
	return a.makeTask(c, pass, req)
}

// makeTask makes a task for which the door has taken pass.
func (a *api) makeTask(c *call, pass shard.Pass, req *wire.EnqueueRequest) answer {
	message, shardNo := a.enqueueMessage(c, req)
	message.WantTask = true
	message.Pass = pass
	made, refusal := ask[*shard.Enqueued](a, shardNo, c.bodyBytes, mailbox.ClassNew, func(to shard.Asker) shard.Message {
		message.Asker = to
		return message
	})
	if refusal != nil {
		return refuse(refusal)
	}
	c.w.Header().Set("Location", base+"/tasks/"+made.TaskID.String())
	if made.Replayed {
		c.w.Header().Set(headerReplayed, "true")
	}
	return answer{status: http.StatusAccepted, body: wire.AppendTask(nil, made.Task, wire.PayloadAsString)}
}

// checkEnqueue refuses a task that no shard would take.
func (a *api) checkEnqueue(c *call, req *wire.EnqueueRequest) *wire.Error {
	if refusal := c.who.CheckCommand(req.Command); refusal != nil {
		return refusal
	}
	if a.o.Store.Guard().Level() >= store.NoEnqueue {
		return storageFullError
	}
	return nil
}

// enqueueMessage is the message for a new task and the shard that gets it. A task without a
// trace context gets that of the headers. Only a task with a key needs the fingerprint, which is
// a SHA-256 of the request.
func (a *api) enqueueMessage(c *call, req *wire.EnqueueRequest) (message *shard.Enqueue, shardNo int) {
	message = &shard.Enqueue{Tenant: c.who.Tenant, EnqueueRequest: *req}
	if req.TraceParent == "" {
		h := c.r.Header
		message.TraceParent, message.TraceState = wire.TraceContext(h.Get("Traceparent"), strings.Join(h["Tracestate"], ","))
	}
	message.ID, shardNo = a.o.Engine.Route(c.who.Tenant, req.Command, req.IdempotencyKey)
	if req.IdempotencyKey != "" {
		message.Fingerprint = shard.FingerprintOf(req)
	}
	return message, shardNo
}
