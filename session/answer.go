package session

import (
	"fmt"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// retryAfterSeconds is the advice with overloaded and draining.
const retryAfterSeconds = 1

// Refusals that are always the same.
var (
	drainingError   = advised(wire.CodeDraining, "the server shuts down and takes nothing new; try again when it is back")
	restingError    = advised(wire.CodeDraining, "an admin drains this session; it gets no tasks until its client connects again")
	overloadedError = advised(wire.CodeOverloaded, "the server has too many requests waiting; send the frame again after a second")
	tooManySockets  = advised(wire.CodeOverloaded, "too many sockets are open that have not sent hello; try again after a second")
	tooManySessions = advised(wire.CodeOverloaded, "the server has as many open sessions as it allows; try again later, or at another server")
)

func advised(code wire.Code, sentence string) *wire.Error {
	return wire.Refuse(code, sentence).Advised(retryAfterSeconds)
}

// request is one frame of the client until it is answered. It counts towards the limit of
// unanswered requests until its answer has left.
type request struct {
	ref   wire.Ref
	bytes int
	// task is the delivery that a result, nack, abandon or release names.
	task wire.TaskRef
	// hasCredit says that the answer returns the credit of the delivery, reused that the shard
	// has granted another task with it.
	hasCredit, reused bool
	// failed: the frame ends a delivery without success.
	failed bool
	// waits is how many shards have not answered yet, refusal the first refusal of one.
	waits   int
	refusal *wire.Error
	// ok collects the answer.
	ok wire.OK
}

// begin counts a frame of the client as unanswered.
func (c *Conversation) begin(ref wire.Ref, bytes int) *request {
	c.unanswered++
	c.unansweredBytes += bytes
	return &request{ref: ref, bytes: bytes}
}

// atLimit reports that the reader must stop until answers have left.
func (c *Conversation) atLimit() bool {
	return c.unanswered >= wire.MaxUnansweredRequests || c.unansweredBytes >= wire.MaxUnansweredBytes
}

// MayContinue reports, while Needs is NeedAnswers, that the session waits for no shard and at most
// half of the limit is unanswered: otherwise the reader would stop again at every request.
func (c *Conversation) MayContinue() bool {
	return c.greeting == nil && c.unanswered <= wire.MaxUnansweredRequests/2 && c.unansweredBytes <= wire.MaxUnansweredBytes/2
}

// ask makes the request wait for one more shard, and is the asker of the message to it.
func (c *Conversation) ask(r *request, number shard.Ref) shard.Asker {
	r.waits++
	return shard.Asker{Sink: c.facts.Sink, Ref: number}
}

// open gives a request the number by which shards answer it.
func (c *Conversation) open(r *request) shard.Ref {
	c.lastRequest++
	c.requests[c.lastRequest] = r
	return c.lastRequest
}

// succeed answers with ok if the frame had a ref.
func (c *Conversation) succeed(r *request, ok *wire.OK) {
	if !r.ref.Present {
		c.forget(1, r.bytes)
		return
	}
	ok.Ref = r.ref
	c.answer(r, ok)
}

// refuse answers with error, also to a frame without a ref.
func (c *Conversation) refuse(r *request, err *wire.Error) {
	c.answer(r, &wire.ErrorFrame{Ref: r.ref, TaskID: r.task.TaskID, Err: err.Advised(retryAfterSeconds)})
}

func (c *Conversation) answer(r *request, f wire.ServerFrame) {
	c.out.Frames = append(c.out.Frames, Outgoing{Frame: f, answers: true, requestBytes: r.bytes})
}

// forget subtracts requests from the unanswered ones.
func (c *Conversation) forget(requests, bytes int) {
	c.unanswered -= requests
	c.unansweredBytes -= bytes
	if c.unanswered < 0 || c.unansweredBytes < 0 {
		panic(fmt.Sprintf("session: %d unanswered requests of %d bytes", c.unanswered, c.unansweredBytes))
	}
}

// shardAnswered counts the answer of one shard to a request. After the last one the client gets
// its answer.
func (c *Conversation) shardAnswered(number shard.Ref, refusal *wire.Error) {
	r := c.asked(number)
	if r.refusal == nil {
		r.refusal = refusal
	}
	r.waits--
	if r.waits > 0 {
		return
	}
	delete(c.requests, number)
	if r.refusal != nil {
		c.refuse(r, r.refusal)
	} else {
		c.succeed(r, &r.ok)
	}
	if !r.hasCredit {
		// The delivery has ended, or the answer to an earlier frame returns its credit.
		return
	}
	credits := c.tasks.remove(r.task)
	if !r.reused {
		c.out.Credit += credits
	} else if credits != 1 {
		panic(fmt.Sprintf("session: %d credits came back for %v and one was reused", credits, r.task))
	}
}

// asked is the request of a number. A shard answers each message once, so an answer without a
// request is a fault of the server.
func (c *Conversation) asked(number shard.Ref) *request {
	r := c.requests[number]
	if r == nil {
		panic(fmt.Sprintf("session: an answer to request %d, which is not open; the last was %d",
			number, c.lastRequest))
	}
	return r
}

// effect steps the conversation by one effect.
func (c *Conversation) effect(e shard.Effect) {
	switch e := e.(type) {
	case *shard.Granted:
		c.granted(e)
	case *shard.Revoked:
		c.revoked(e)
	case *shard.Answered:
		c.answeredElsewhere(e)
	case *shard.Enqueued:
		r := c.asked(e.Ref)
		r.ok.TaskID, r.ok.Replayed = e.TaskID, e.Replayed
		c.shardAnswered(e.Ref, nil)
	case *shard.Resumed:
		c.resumed(e)
	case *shard.Drained:
		c.barrierAnswered()
	case *shard.Managed:
		c.asked(e.Ref).ok.TaskID = e.TaskID
		c.shardAnswered(e.Ref, nil)
	case *shard.Subscribed:
		c.shardAnswered(e.Ref, nil)
	case *shard.Reported:
		c.shardAnswered(e.Ref, nil)
	case *shard.Completed:
		r := c.asked(e.Ref)
		r.reused = e.CreditReused
		c.profile.ended(r.failed)
		c.shardAnswered(e.Ref, nil)
	case *shard.Requeued:
		r := c.asked(e.Ref)
		r.ok.NackStatus, r.ok.DelaySeconds = e.Status, e.DelaySeconds
		if r.failed {
			c.profile.ended(true)
		}
		c.shardAnswered(e.Ref, nil)
	case *shard.Extended:
		c.extended(e)
	case *shard.Refused:
		c.shardAnswered(e.Ref, e.Err)
	default:
		panic(fmt.Sprintf("session: got effect %T, which it never asks for", e))
	}
}

// unposted answers the messages of a post that a shard did not take.
func (c *Conversation) unposted(e *Unposted) {
	refusal := overloadedError
	if e.Verdict == mailbox.Closed {
		refusal = drainingError
	}
	for _, m := range e.Post.Messages {
		switch m := m.(type) {
		case *shard.Received:
			c.confirmLater(m.Tasks)
			continue
		case *shard.Heartbeat:
			c.unconfirm(m.Tasks)
		case interface{ Delivery() wire.TaskRef }:
			c.unconfirm([]wire.TaskRef{m.Delivery()})
		}
		c.shardAnswered(m.(shard.Referenced).Reference(), refusal)
	}
}

// written frees what the written frames had reserved.
func (c *Conversation) written(frames []Outgoing) {
	for i := range frames {
		o := &frames[i]
		c.out.WrittenBytes += o.payloadBytes
		if o.answers {
			c.forget(1, o.requestBytes)
		}
		if t, ok := o.Frame.(*wire.TaskFrame); ok {
			c.tasks.writtenSeq = t.Seq
		}
	}
	c.pingAfterTasks()
}
