package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// The HTTP twins of what a session says about a delivery. Each is one message
// to the shard of the task and one answer.

// postHeartbeat extends a lease.
func (a *api) postHeartbeat(c *call) answer {
	return a.twin(c, func(body []byte) (wire.Holder, madeFor, *wire.Error) {
		seconds, holder, refusal := wire.ParseExtendRequest(body)
		return holder, func(d delivery) shardactor.Message {
			return &shardactor.Extend{Asker: d.asker, Owner: d.owner, TaskRef: d.ref, ExtendForMs: int64(seconds) * 1000}
		}, refusal
	})
}

// postNack ends a delivery that failed.
func (a *api) postNack(c *call) answer {
	return a.twin(c, func(body []byte) (wire.Holder, madeFor, *wire.Error) {
		request, holder, refusal := wire.ParseNackRequest(body)
		return holder, func(d delivery) shardactor.Message {
			return &shardactor.Nack{Asker: d.asker, Owner: d.owner, TaskRef: d.ref, NackRequest: *request}
		}, refusal
	})
}

// postAbandon ends a delivery that the worker gives up.
func (a *api) postAbandon(c *call) answer {
	return a.twin(c, func(body []byte) (wire.Holder, madeFor, *wire.Error) {
		holder, refusal := wire.ParseHolder(body)
		return holder, func(d delivery) shardactor.Message {
			return &shardactor.Abandon{Asker: d.asker, Owner: d.owner, TaskRef: d.ref}
		}, refusal
	})
}

// postRelease hands a delivery back untouched.
func (a *api) postRelease(c *call) answer {
	return a.twin(c, func(body []byte) (wire.Holder, madeFor, *wire.Error) {
		request, holder, refusal := wire.ParseReleaseRequest(body)
		return holder, func(d delivery) shardactor.Message {
			return &shardactor.Release{Asker: d.asker, Owner: d.owner, TaskRef: d.ref, ReleaseRequest: *request}
		}, refusal
	})
}

// postResult ends a task with its outcome.
func (a *api) postResult(c *call) answer {
	return a.twin(c, func(body []byte) (wire.Holder, madeFor, *wire.Error) {
		request, holder, refusal := wire.ParseResultRequest(body)
		return holder, func(d delivery) shardactor.Message {
			return &shardactor.Result{Asker: d.asker, Owner: d.owner, TaskRef: d.ref, ResultRequest: *request}
		}, refusal
	})
}

// delivery is what a twin's message says beside its own fields.
type delivery struct {
	asker shardactor.Asker
	owner shardactor.Owner
	ref   wire.TaskRef
}

// madeFor makes the message of a twin. It is not called for a body that was
// refused.
type madeFor func(d delivery) shardactor.Message

// twin runs one of them: the id of the path first, then the body, then the
// shard. Like enqueue it does not look at the request's context.
func (a *api) twin(c *call, parse func(body []byte) (wire.Holder, madeFor, *wire.Error)) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	holder, message, refusal := parse(body)
	if refusal == nil {
		refusal = a.tokenMissing(holder)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	answered := newReply()
	m := message(delivery{
		asker: shardactor.Asker{Sink: answered}, owner: c.owner(holder), ref: wire.TaskRef{TaskID: id, Token: holder.Token},
	})
	if refusal := a.post(a.o.Engine.ShardOf(id), m, len(body), mailbox.ClassKeep); refusal != nil {
		return refuse(refusal)
	}
	return twinAnswer(m, <-answered.effect)
}

// owner is who acts on a delivery by this request.
func (c *call) owner(holder wire.Holder) shardactor.Owner {
	return shardactor.Owner{Tenant: c.who.Tenant, Subject: c.who.Subject, WorkerID: holder.WorkerID}
}

// tokenMissing refuses a call without a token where the server takes none.
func (a *api) tokenMissing(holder wire.Holder) *wire.Error {
	if !a.o.RequireLeaseToken || !holder.Token.IsZero() {
		return nil
	}
	return wire.Refuse(wire.CodeInvalidArgument,
		"leaseToken is required: this server takes no call about a delivery without it")
}

// twinAnswer is the body for what the shard said.
func twinAnswer(m shardactor.Message, effect shardactor.Effect) answer {
	switch e := effect.(type) {
	case *shardactor.Refused:
		return refuse(e.Err)
	case *shardactor.Completed:
		return answer{status: http.StatusOK, body: wire.AppendResultRecord(nil, e.Record)}
	case *shardactor.Extended:
		body := wire.AppendTimeMs([]byte(`{"ok":true,"leaseUntil":`), e.LeaseUntilMs)
		if e.RunUntilMs != 0 {
			body = wire.AppendTimeMs(append(body, `,"runUntil":`...), e.RunUntilMs)
		}
		return answer{status: http.StatusOK, body: append(body, '}')}
	case *shardactor.Requeued:
		body := wire.AppendQuoted([]byte(`{"status":`), e.Status)
		if _, isNack := m.(*shardactor.Nack); isNack {
			body = strconv.AppendInt(append(body, `,"delaySeconds":`...), e.DelaySeconds, 10)
		}
		return answer{status: http.StatusOK, body: append(body, '}')}
	default:
		panic(fmt.Sprintf("httpapi: %T was answered by %T", m, effect))
	}
}
