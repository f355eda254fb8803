package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"codeq/mailbox"
	"codeq/shardactor"
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
	answers := a.enqueueAll(c, items, !minimal)
	if refusal := allRefusedBusy(answers); refusal != nil {
		return refuse(refusal)
	}
	if minimal {
		c.w.Header().Set(headerPreferenceApplied, returnMinimal)
	}
	return okay(appendBatch(answers, minimal))
}

// enqueueAll posts to each shard all of its items in one push, which the shard commits
// together, and waits for all effects. An item that was not posted has a refusal as its
// effect. It ignores the context of the request; see ask.
func (a *api) enqueueAll(c *call, items []wire.BatchItem, wantTasks bool) []shardactor.Effect {
	answered := newGather(len(items))
	posts := make([]batchPost, a.o.Engine.Shards())
	for i := range items {
		item := &items[i]
		refusal := item.Err
		if refusal == nil {
			refusal = a.checkEnqueue(c, &item.Request)
		}
		if refusal != nil {
			answered.refuse(i, refusal)
			continue
		}
		message, shard := a.enqueueMessage(c, &item.Request)
		message.Asker, message.WantTask = shardactor.Asker{Sink: answered, Ref: uint64(i)}, wantTasks
		posts[shard].add(i, message, item.Bytes)
	}
	return a.postAll(posts, mailbox.ClassNew, answered)
}

// batchPost is the push of one request into the mailbox of one shard. items are the indices
// of the items that its messages are for.
type batchPost struct {
	items    []int
	messages []shardactor.Message
	bytes    int
}

func (p *batchPost) add(item int, m shardactor.Message, bytes int) {
	p.items = append(p.items, item)
	p.messages = append(p.messages, m)
	p.bytes += bytes + messageOverheadBytes
}

// postAll pushes the posts of all shards and returns the answers to all items in order.
func (a *api) postAll(posts []batchPost, class mailbox.Class, answered *gather) []shardactor.Effect {
	a.postEach(posts, class, answered)
	return answered.wait()
}

// postEach pushes the posts of all shards. If a shard does not take its post, each item of
// that post is refused.
func (a *api) postEach(posts []batchPost, class mailbox.Class, answered *gather) {
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
}

// gather is the Sink of one batch: the effect of each item, and how many are missing. The
// handler or the one shard of an item sets its effect once; the atomic count orders these
// writes before the read in wait.
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

func (g *gather) refuse(item int, refusal *wire.Error) {
	g.put(item, &shardactor.Refused{Ref: uint64(item), Err: refusal})
}

func (g *gather) put(item int, e shardactor.Effect) {
	if g.effects[item] != nil {
		panic(fmt.Sprintf("httpapi: item %d of a batch of %d was answered twice", item, len(g.effects)))
	}
	g.effects[item] = e
	if g.missing.Add(-1) == 0 {
		close(g.done)
	}
}

// wait waits for all effects and returns them in the order of the items.
func (g *gather) wait() []shardactor.Effect {
	<-g.done
	return g.effects
}

// allRefusedBusy is the first refusal of a batch of which every item was refused because the
// server is too busy or shutting down, else nil.
func allRefusedBusy(answers []shardactor.Effect) (first *wire.Error) {
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

// appendBatch makes the body: one result for each item, in the order of the items.
func appendBatch(answers []shardactor.Effect, minimal bool) []byte {
	size := 64
	for _, e := range answers {
		size += resultBytes(e, minimal)
	}
	body := append(make([]byte, 0, size), `{"results":[`...)
	body = appendList(body, len(answers), func(dst []byte, i int) []byte { return appendResult(dst, answers[i], minimal) })
	return append(body, "]}"...)
}

// resultBytes estimates the size of a result, so that the body is seldom copied.
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
