package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
	returnMinimal           = "return=minimal"
)

// postBatch makes many tasks and answers when all of them are on disk. Each item succeeds
// or fails by itself; the answer is a refusal only if the server is too busy for all items.
func (a *api) postBatch(c *call, items []wire.BatchItem) answer {
	minimal := prefersMinimal(c.r.Header)
	answers, refusal := a.enqueueAll(c, items, !minimal)
	if refusal == nil {
		refusal = allRefusedBusy(answers)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	if minimal {
		c.w.Header().Set(headerPreferenceApplied, returnMinimal)
	}
	return okay(appendBatch(answers, minimal))
}

// enqueueAll posts to each shard all of its items in one push, which the shard commits
// together, and waits for all effects. An item that was not posted has a refusal as its
// effect. It refuses all of them if the limits of the tenant do not let all of them in. It
// ignores the context of the request; see ask.
func (a *api) enqueueAll(c *call, items []wire.BatchItem, wantTasks bool) ([]shard.Effect, *wire.Error) {
	answered, good, bytes := a.newGather(len(items)), 0, 0
	for i := range items {
		if items[i].Err == nil {
			items[i].Err = a.checkEnqueue(c, &items[i].Request)
		}
		if items[i].Err == nil {
			good++
			bytes += len(items[i].Request.Payload)
		}
	}
	pass, refusal := a.enter(c, good, bytes)
	if refusal != nil {
		return nil, refusal
	}
	posts := make([]batchPost, a.o.Engine.Shards())
	for i := range items {
		item := &items[i]
		if item.Err != nil {
			answered.refuse(i, item.Err)
			continue
		}
		message, shardNo := a.enqueueMessage(c, &item.Request)
		message.Asker, message.WantTask, message.Pass = shard.Asker{Sink: answered, Ref: shard.Ref(i)}, wantTasks, pass
		posts[shardNo].add(i, message, item.Bytes)
	}
	return a.postAll(posts, mailbox.ClassNew, answered).wait(), nil
}

// batchPost is the push of one request into the mailbox of one shard. items are the indices
// of the items that its messages are for.
type batchPost struct {
	items    []int
	messages []shard.Message
	bytes    int
}

func (p *batchPost) add(item int, m shard.Message, bytes int) {
	p.items = append(p.items, item)
	p.messages = append(p.messages, m)
	p.bytes += bytes + messageOverheadBytes
}

// postAll pushes the posts of all shards and returns answered. If a shard does not take its
// post, each item of that post is refused.
func (a *api) postAll(posts []batchPost, class mailbox.Class, answered *gather) *gather {
	for shard := range posts {
		p := &posts[shard]
		if len(p.messages) == 0 {
			continue
		}
		if refusal := verdictError(a.o.Engine.Post(shard, p.messages, p.bytes, class)); refusal != nil {
			for _, item := range p.items {
				answered.refuse(item, refusal)
			}
		}
	}
	return answered
}

// gather is the Sink of one batch: the effect of each item, and how many are missing. The
// handler or the one shard of an item sets its effect once; the atomic count orders these
// writes before the read in wait.
type gather struct {
	effects []shard.Effect
	missing atomic.Int64
	done    chan struct{}
	lost    <-chan struct{}
}

func (a *api) newGather(n int) *gather {
	g := &gather{effects: make([]shard.Effect, n), done: make(chan struct{}), lost: a.o.Lost}
	g.missing.Store(int64(n))
	return g
}

// Deliver implements shard.Sink.
func (g *gather) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		g.put(int(e.(shard.Referenced).Reference()), e)
	}
}

func (g *gather) refuse(item int, refusal *wire.Error) {
	g.put(item, &shard.Refused{Ref: shard.Ref(item), Err: refusal})
}

func (g *gather) put(item int, e shard.Effect) {
	if g.effects[item] != nil {
		panic(fmt.Sprintf("httpapi: item %d of a batch of %d was answered twice", item, len(g.effects)))
	}
	g.effects[item] = e
	if g.missing.Add(-1) == 0 {
		close(g.done)
	}
}

// wait waits for all effects and returns them in the order of the items. Once the lead is
// lost no further effect comes.
func (g *gather) wait() []shard.Effect {
	select {
	case <-g.done:
	case <-g.lost:
		for i, e := range g.effects {
			if e == nil {
				g.effects[i] = &shard.Refused{Ref: shard.Ref(i), Err: notLeaderError}
			}
		}
	}
	return g.effects
}

var busyCodes = []wire.Code{wire.CodeOverloaded, wire.CodeDraining, wire.CodeNotLeader}

// allRefusedBusy is the first refusal of a batch of which every item was refused because the
// server is too busy or shutting down, else nil.
func allRefusedBusy(answers []shard.Effect) (first *wire.Error) {
	for _, e := range answers {
		refused, ok := e.(*shard.Refused)
		if !ok || !slices.Contains(busyCodes, refused.Err.Code) {
			return nil
		}
		if first == nil {
			first = refused.Err
		}
	}
	return first
}

// appendBatch makes the body: one result for each item, in the order of the items.
func appendBatch(answers []shard.Effect, minimal bool) []byte {
	size := 64
	for _, e := range answers {
		size += resultBytes(e, minimal)
	}
	body := append(make([]byte, 0, size), `{"results":[`...)
	body = appendList(body, len(answers), func(dst []byte, i int) []byte { return appendResult(dst, answers[i], minimal) })
	return append(body, "]}"...)
}

// resultBytes estimates the size of a result, so that the body is seldom copied.
func resultBytes(e shard.Effect, minimal bool) int {
	const around, idOnly = 512, 64
	if minimal {
		return idOnly
	}
	if enqueued, ok := e.(*shard.Enqueued); ok {
		return len(enqueued.Task.Payload) + len(enqueued.Task.Payload)/8 + around
	}
	return around
}

func appendResult(body []byte, e shard.Effect, minimal bool) []byte {
	switch e := e.(type) {
	case *shard.Enqueued:
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
	case *shard.Refused:
		return wire.AppendError(body, e.Err.Advised(retryAfterSeconds))
	default:
		panic(fmt.Sprintf("httpapi: an enqueue was answered by %T", e))
	}
}

// prefersMinimal reads the header Prefer (RFC 7240). Its first preference named return
// counts.
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
