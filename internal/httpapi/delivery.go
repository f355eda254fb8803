package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// The verbs over HTTP about a delivery, which sessions have as frames. Each is one message
// to the shard of the task and one answer.

func extendMessage(h *shard.Holder, seconds int) shard.Message {
	return &shard.Extend{Holder: *h, ExtendForMs: int64(seconds) * 1000}
}

func nackMessage(h *shard.Holder, r *wire.NackRequest) shard.Message {
	return &shard.End{How: shard.Nack, Holder: *h, NackRequest: *r}
}

func abandonMessage(h *shard.Holder, _ struct{}) shard.Message {
	return &shard.End{How: shard.Abandon, Holder: *h}
}

func releaseMessage(h *shard.Holder, r *wire.ReleaseRequest) shard.Message {
	return &shard.End{How: shard.Release, Holder: *h, ReleaseRequest: *r}
}

func resultMessage(h *shard.Holder, r *wire.ResultRequest) shard.Message {
	return &shard.Result{Holder: *h, ResultRequest: *r}
}

func progressMessage(h *shard.Holder, r *wire.ProgressRequest) shard.Message {
	return &shard.Report{Holder: *h, Progress: r}
}

func outputMessage(h *shard.Holder, r *wire.OutputRequest) shard.Message {
	return &shard.Report{Holder: *h, Output: r}
}

func (a *api) reportResources() []resource {
	return []resource{
		{base + "/tasks/{id}/progress", []verb{{method: http.MethodPost, scope: auth.ScopeHeartbeat, handle: onDelivery(a, wire.ParseProgressRequest, progressMessage)}}},
		{base + "/tasks/{id}/output", []verb{{method: http.MethodPost, scope: auth.ScopeHeartbeat, handle: onDelivery(a, wire.ParseOutputRequest, outputMessage)}}},
	}
}

// parseAbandon reads a body that names only the delivery.
func parseAbandon(body []byte) (struct{}, wire.Holder, *wire.Error) {
	holder, refusal := wire.ParseHolder(body)
	return struct{}{}, holder, refusal
}

// onDelivery makes the handler of one of the verbs.
func onDelivery[T any](
	a *api, parse func(body []byte) (T, wire.Holder, *wire.Error), message func(h *shard.Holder, request T) shard.Message,
) func(c *call) answer {
	return onDeliveryAfter(a, parse, func(*shard.Holder, T) (func(bool), *wire.Error) { return func(bool) {}, nil }, message)
}

// onDeliveryAfter is onDelivery with something to do before the message leaves, which returns what
// is to do after its answer.
func onDeliveryAfter[T any](
	a *api, parse func(body []byte) (T, wire.Holder, *wire.Error), before func(h *shard.Holder, request T) (after func(refused bool), refusal *wire.Error),
	message func(h *shard.Holder, request T) shard.Message,
) func(c *call) answer {
	return func(c *call) answer {
		body, refusal := c.readBody()
		if refusal != nil {
			return refuse(refusal)
		}
		request, holder, refusal := parse(body)
		if refusal == nil {
			refusal = a.tokenMissing(holder)
		}
		if refusal != nil {
			return refuse(refusal)
		}
		h := &shard.Holder{Owner: c.owner(holder), TaskRef: wire.TaskRef{TaskID: c.taskID, Token: holder.Token}}
		after, refusal := before(h, request)
		if refusal != nil {
			return refuse(refusal)
		}
		var m shard.Message
		effect, refusal := ask[shard.Effect](a, a.o.Engine.ShardOf(c.taskID), len(body), mailbox.ClassKeep,
			func(to shard.Asker) shard.Message {
				h.Asker = to
				m = message(h, request)
				return m
			})
		if after(refusal != nil); refusal != nil {
			return refuse(refusal)
		}
		return deliveryAnswer(m, effect)
	}
}

// owner is the owner of a delivery for this request.
func (c *call) owner(holder wire.Holder) shard.Owner {
	return shard.Owner{Tenant: c.who.Tenant, Subject: c.who.Subject, WorkerID: holder.WorkerID}
}

// tokenMissing refuses a call without a lease token if the server requires one.
func (a *api) tokenMissing(holder wire.Holder) *wire.Error {
	if !a.o.RequireLeaseToken || !holder.Token.IsZero() {
		return nil
	}
	return wire.Refuse(wire.CodeInvalidArgument,
		"leaseToken is required: this server takes no call about a delivery without it")
}

// deliveryAnswer is the answer for the effect of a message.
func deliveryAnswer(m shard.Message, effect shard.Effect) answer {
	switch e := effect.(type) {
	case *shard.Completed:
		return okay(wire.AppendResultRecord(nil, e.Record))
	case *shard.Extended:
		body := wire.AppendTimeMs([]byte(`{"ok":true,"leaseUntil":`), e.LeaseUntilMs)
		if e.RunUntilMs != 0 {
			body = wire.AppendTimeMs(append(body, `,"runUntil":`...), e.RunUntilMs)
		}
		return okay(append(body, '}'))
	case *shard.Reported:
		return okay([]byte(`{"ok":true}`))
	case *shard.Requeued:
		body := wire.AppendQuoted([]byte(`{"status":`), e.Status)
		if end := m.(*shard.End); end.How == shard.Nack {
			body = strconv.AppendInt(append(body, `,"delaySeconds":`...), e.DelaySeconds, 10)
		}
		return okay(append(body, '}'))
	default:
		panic(fmt.Sprintf("httpapi: %T was answered by %T", m, e))
	}
}
