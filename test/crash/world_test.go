package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

const (
	command = "crash"
	// maxAttempts is so high that no task dies of what is done to it here.
	maxAttempts = 1000
	// redialAfter is the pause of a client that found no server.
	redialAfter = 20 * time.Millisecond
	// answerWithin is how long a client waits for an answer, while the server
	// may be dead for most of it.
	answerWithin = 10 * time.Second
)

// size says how much happens.
type size struct {
	tasks int64
	kills int
	short bool
	// undoctored: that the checker finds doctored histories is shown elsewhere.
	undoctored bool
}

// world is one server and its clients.
type world struct {
	t       *testing.T
	server  place
	api     *blackbox.API
	history *history
	seed    uint64
	size    size

	// begun counts tasks that producers have begun, ended those whose end
	// somebody was told.
	begun atomic.Int64
	ended atomic.Int64
	// calm: nobody does anything but what ends tasks.
	calm atomic.Bool
	// over ends readers and workers.
	over     context.Context
	clients  sync.WaitGroup
	nextName atomic.Int32
}

// client is what one client has for itself.
type client struct {
	*world
	number int
	chance *rand.Rand
}

func (w *world) newClient() *client {
	n := int(w.nextName.Add(1))
	return &client{world: w, number: n, chance: rand.New(rand.NewPCG(w.seed, uint64(n)))}
}

// one says yes one time in n.
func (c *client) one(n int) bool { return c.chance.IntN(n) == 0 }

// pause waits a moment; it is the client's own pace.
func (c *client) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.over.Done():
	}
}

// ask is a context for one question.
func (c *client) ask() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), answerWithin)
}

// answered makes an output of an error: a refusal, or none.
func (c *client) answered(err error) output {
	var refusal *wire.Error
	switch {
	case err == nil:
		return output{}
	case errors.Is(err, blackbox.ErrNoAnswer):
		return output{unknown: true, unsent: errors.Is(err, syscall.ECONNREFUSED)}
	case errors.As(err, &refusal) && refusal.Code == wire.CodeNotLeader:
		return output{unknown: true} // it may have been done all the same
	case errors.As(err, &refusal) && refusal.Code != wire.CodeInternal:
		return output{code: refusal.Code}
	}
	c.t.Errorf("client %d: %v", c.number, err)
	return output{unknown: true}
}

// dial opens a session, however long the server is away. nil means the end.
func (c *client) dial() *blackbox.Peer {
	for c.over.Err() == nil {
		ctx, cancel := c.ask()
		p, err := blackbox.Dial(ctx, c.server.addr, &wire.Hello{WorkerID: fmt.Sprint("client ", c.number)})
		cancel()
		if err == nil {
			return p
		}
		c.pause(redialAfter)
	}
	return nil
}

// labelOf is the name of a task in the notes, which is its payload.
func labelOf(payload []byte) string { return string(payload) }

// request is the enqueue of a task by its label.
func request(label string, keyed bool) wire.EnqueueRequest {
	r := wire.EnqueueRequest{Command: command, Payload: []byte(label), MaxAttempts: maxAttempts}
	if keyed {
		r.IdempotencyKey = "key of " + label
	}
	return r
}

// produce makes tasks until there are enough. Tasks with a key are asked for
// until there is an answer, and now and then once more.
func (c *client) produce(post func(request wire.EnqueueRequest) output) {
	for {
		n := c.begun.Add(1)
		if n > c.size.tasks {
			return
		}
		label, keyed := strconv.FormatInt(n, 10), c.one(2)
		for again := true; again && c.over.Err() == nil; {
			call := c.history.now()
			out := post(request(label, keyed))
			c.history.note(c.number, label, call, input{verb: enqueue}, out)
			again = putOff(out.code) || keyed && (out.unknown || c.one(4))
			if out.unknown || out.code != "" {
				c.pause(redialAfter)
			}
		}
	}
}

// produceHTTP posts over HTTP; keyed tasks go out twice at the same time now
// and then.
func (c *client) produceHTTP() {
	var pair sync.WaitGroup
	defer pair.Wait()
	c.produce(func(r wire.EnqueueRequest) output {
		if r.IdempotencyKey != "" && c.one(3) {
			pair.Go(func() {
				call := c.history.now()
				c.history.note(c.number, labelOf(r.Payload), call, input{verb: enqueue}, c.post(r))
			})
		}
		return c.post(r)
	})
}

func (c *client) post(r wire.EnqueueRequest) output {
	ctx, cancel := c.ask()
	defer cancel()
	answer, err := c.api.Do(ctx, "POST", "/tasks", string(wire.AppendEnqueueRequest(nil, &r)))
	out := c.answered(err)
	if err != nil {
		return out
	}
	task, err := wire.ParseTask(answer.Body)
	if err != nil {
		c.t.Errorf("an enqueue is answered with %s: %v", answer.Body, err)
		return output{unknown: true}
	}
	return output{id: task.ID, replayed: answer.Header.Get("Idempotent-Replayed") == "true"}
}

// produceSession posts over a session, a new one after each loss.
func (c *client) produceSession() {
	p := c.dial()
	c.produce(func(r wire.EnqueueRequest) output {
		if p == nil {
			return output{unknown: true}
		}
		ctx, cancel := c.ask()
		defer cancel()
		ok, err := p.Ask(ctx, func(ref wire.Ref) wire.ClientFrame { return &wire.Enqueue{Ref: ref, EnqueueRequest: r} })
		out := c.answered(err)
		if err == nil {
			out.id, out.replayed = ok.TaskID, ok.Replayed
		}
		if out.unknown {
			p.Close()
			p = c.dial()
		}
		return out
	})
	if p != nil {
		p.Close()
	}
}

// readTasks reads tasks that became known of late, until the end.
func (c *client) readTasks() {
	for c.over.Err() == nil && !c.calm.Load() {
		k, ok := c.history.recent(c.chance.Float64())
		if !ok {
			c.pause(redialAfter)
			continue
		}
		wait := 0
		if c.one(8) {
			wait = 1
		}
		if out := c.readOne(k, c.one(2), wait); out.unknown {
			c.pause(redialAfter)
		}
		c.pause(time.Duration(c.chance.IntN(4)) * time.Millisecond)
	}
}

// readOne reads a task, or its result, and notes what it is.
func (c *client) readOne(k known, withResult bool, waitSeconds int) output {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin+time.Duration(waitSeconds)*time.Second)
	defer cancel()
	call := c.history.now()
	out := output{}
	if withResult {
		out = c.readResult(ctx, k, waitSeconds)
	} else {
		task, err := c.api.Read(ctx, k.id)
		if out = c.answered(err); err == nil {
			out = seen(task)
		}
	}
	if out.code != wire.CodeResultNotFound {
		c.history.note(c.number, k.label, call, input{verb: read}, out)
	}
	return out
}

// seen is what a task says of itself.
func seen(task *wire.Task) output {
	return output{id: task.ID, status: task.Status, deliveries: task.Deliveries, attempts: task.Attempts}
}
