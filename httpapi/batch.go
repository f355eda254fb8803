package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
	returnMinimal           = "return=minimal"
)

// postBatch makes many tasks and answers when all of them are on disk. Each
// item stands alone; the answer is a refusal only if the server took none for
// reasons of its own.
func (a *api) postBatch(c *call) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	items, refusal := wire.ParseBatchRequest(body)
	if refusal != nil {
		return refuse(refusal)
	}
	minimal := prefersMinimal(c.r.Header)
	answers := a.enqueueAll(c, items, !minimal)
	if refusal := allTurnedAway(answers); refusal != nil {
		return refuse(refusal)
	}
	if minimal {
		c.w.Header().Set(headerPreferenceApplied, returnMinimal)
	}
	return answer{status: http.StatusOK, body: appendBatch(answers, minimal)}
}

// enqueueAll posts to each shard at once what belongs to it, so that a shard
// has one message push and one commit for it, and waits for all the effects.
// What was not posted has a refusal in its place. Like enqueue it does not look
// at the request's context.
func (a *api) enqueueAll(c *call, items []wire.BatchItem, wantTasks bool) []shardactor.Effect {
	answered := newGather(len(items))
	posts := make([]batchPost, a.o.Engine.Shards())
	full := a.o.Store.Guard().Level() >= store.NoEnqueue
	for i := range items {
		item := &items[i]
		if refusal := a.checkItem(c, item, full); refusal != nil {
			answered.refuse(i, refusal)
			continue
		}
		message := &shardactor.Enqueue{
			Asker:          shardactor.Asker{Sink: answered, Ref: uint64(i)},
			Tenant:         c.who.Tenant,
			EnqueueRequest: item.Request,
			WantTask:       wantTasks,
		}
		if item.Request.IdempotencyKey != "" {
			message.Fingerprint = shardactor.FingerprintOf(&item.Request)
		}
		var shard int
		message.ID, shard = a.o.Engine.Route(c.who.Tenant, item.Request.Command, item.Request.IdempotencyKey)
		posts[shard].add(i, message, item.Bytes)
	}
	return a.postAll(posts, mailbox.ClassNew, answered)
}

// checkItem is what is known of an item before it goes to a shard.
func (a *api) checkItem(c *call, item *wire.BatchItem, full bool) *wire.Error {
	switch {
	case item.Err != nil:
		return item.Err
	case !c.who.MayUse(item.Request.Command):
		return notForCommand(item.Request.Command)
	case full:
		return storageFullError()
	}
	return nil
}

// batchPost is what one request has for one shard.
type batchPost struct {
	places   []int
	messages []shardactor.Message
	bytes    int
}

func (p *batchPost) add(place int, m shardactor.Message, bytes int) {
	p.places = append(p.places, place)
	p.messages = append(p.messages, m)
	p.bytes += bytes + messageOverheadBytes
}

// postAll posts to each shard at once what there is for it and returns the
// answers to all items in order.
func (a *api) postAll(posts []batchPost, class mailbox.Class, answered *gather) []shardactor.Effect {
	a.postEach(posts, class, answered)
	return answered.wait()
}

func (a *api) postEach(posts []batchPost, class mailbox.Class, answered *gather) {
	for shard := range posts {
		a.postTo(shard, &posts[shard], class, answered)
	}
}

// postTo pushes all of it or refuses each item.
func (a *api) postTo(shard int, p *batchPost, class mailbox.Class, answered *gather) {
	if len(p.messages) == 0 {
		return
	}
	refusal := verdictError(a.o.Engine.Post(shard, p.messages, p.bytes, class))
	if refusal == nil {
		return
	}
	for _, place := range p.places {
		answered.refuse(place, refusal)
	}
}

// gather is the Sink of one batch: a place for the answer to each item, and a
// count of those that are missing. Each place is filled once, by the handler or
// by the one shard that was asked; the count is what joins them.
type gather struct {
	effects []shardactor.Effect
	missing atomic.Int64
	done    chan struct{}
}

func newGather(n int) *gather {
	g := &gather{effects: make([]shardactor.Effect, n), done: make(chan struct{})}
	g.missing.Store(int64(n))
	return g
}

// Deliver implements shardactor.Sink.
func (g *gather) Deliver(effects []shardactor.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *shardactor.Enqueued:
			g.put(int(e.Ref), e)
		case *shardactor.Completed:
			g.put(int(e.Ref), e)
		case *shardactor.Replayed:
			g.put(int(e.Ref), e)
		case *shardactor.Moved:
			g.put(int(e.Ref), e)
		case *shardactor.Cancelled:
			g.put(int(e.Ref), e)
		case *shardactor.LeasesTold:
			g.put(int(e.Ref), e)
		case *shardactor.Purged:
			g.put(int(e.Ref), e)
		case *shardactor.Refused:
			g.put(int(e.Ref), e)
		default:
			panic(fmt.Sprintf("httpapi: an item of a batch was answered by %T", e))
		}
	}
}

func (g *gather) refuse(place int, refusal *wire.Error) {
	g.put(place, &shardactor.Refused{Ref: uint64(place), Err: refusal})
}

func (g *gather) put(place int, e shardactor.Effect) {
	if g.effects[place] != nil {
		panic(fmt.Sprintf("httpapi: item %d of a batch of %d was answered twice", place, len(g.effects)))
	}
	g.effects[place] = e
	if g.missing.Add(-1) == 0 {
		close(g.done)
	}
}

// wait returns the answers in the order of the items.
func (g *gather) wait() []shardactor.Effect {
	<-g.done
	return g.effects
}

// allTurnedAway is the refusal of a batch of which no item was taken because
// the server is too busy or going; nil for any other.
func allTurnedAway(answers []shardactor.Effect) (first *wire.Error) {
	for _, e := range answers {
		refused, ok := e.(*shardactor.Refused)
		if !ok || refused.Err.Code != wire.CodeOverloaded && refused.Err.Code != wire.CodeDraining {
			return nil
		}
		if first == nil {
			first = refused.Err
		}
	}
	return first
}

// appendBatch makes the body: one result for each item, in order.
func appendBatch(answers []shardactor.Effect, minimal bool) []byte {
	size := 64
	for _, e := range answers {
		size += resultBytes(e, minimal)
	}
	body := append(make([]byte, 0, size), `{"results":[`...)
	for i, e := range answers {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendResult(body, e, minimal)
	}
	return append(body, "]}"...)
}

// resultBytes guesses what a result takes, so that the body seldom moves.
func resultBytes(e shardactor.Effect, minimal bool) int {
	const around, idOnly = 512, 64
	if minimal {
		return idOnly
	}
	if enqueued, ok := e.(*shardactor.Enqueued); ok {
		return len(enqueued.Task.Payload) + len(enqueued.Task.Payload)/8 + around
	}
	return around
}

func appendResult(body []byte, e shardactor.Effect, minimal bool) []byte {
	switch e := e.(type) {
	case *shardactor.Enqueued:
		if minimal {
			body = e.TaskID.AppendTo(append(body, `{"id":"`...))
			body = append(body, '"')
		} else {
			body = wire.AppendTask(append(body, `{"task":`...), e.Task, wire.PayloadAsString)
		}
		if e.Replayed {
			body = append(body, `,"replayed":true`...)
		}
		return append(body, '}')
	case *shardactor.Refused:
		return wire.AppendError(body, advised(e.Err))
	default:
		panic(fmt.Sprintf("httpapi: an enqueue was answered by %T", e))
	}
}

// prefersMinimal reads Prefer (RFC 7240): of several words on what to return
// the first one counts.
func prefersMinimal(h http.Header) bool {
	for _, line := range h.Values(headerPrefer) {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.TrimSpace(name), "return") {
				return strings.EqualFold(strings.Trim(strings.TrimSpace(value), `"`), "minimal")
			}
		}
	}
	return false
}
