package shardactor

import (
	"fmt"
	"sync"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// deletions are the queues that are being deleted.
type deletions struct {
	mu sync.Mutex
	of map[record.QueueKey]*deletion
}

// deletion makes the shards forget the settings of a queue that is marked as
// deleted, each once it has no task of it left, and the home last; see beingDeleted
// in package shard.
type deletion struct {
	engine *Engine
	queue  record.QueueKey
	home   int
	done   chan struct{}

	mu sync.Mutex
	// waits is how many shards have not answered; atHome reports that the home was
	// asked.
	waits  int
	atHome bool
}

// drop begins the deletion of a marked queue, unless it has begun. It does not
// block. A deletion ends with the engine; the next start begins it again.
func (e *Engine) drop(q record.QueueKey) {
	e.deletions.mu.Lock()
	defer e.deletions.mu.Unlock()
	if e.deletions.of[q] != nil {
		return
	}
	d := &deletion{
		engine: e, queue: q, home: wire.ShardOfQueue(q.Tenant, q.Command, len(e.loops)), done: make(chan struct{}), waits: len(e.loops) - 1,
	}
	if e.deletions.of == nil {
		e.deletions.of = make(map[record.QueueKey]*deletion)
	}
	e.deletions.of[q] = d
	if d.waits == 0 {
		d.askHome()
		return
	}
	for shard := range e.loops {
		if shard != d.home {
			d.ask(shard)
		}
	}
}

// Deleting returns a channel that is closed when the deletion of the queue is done;
// nil if it is not being deleted. Any goroutine may call it.
func (e *Engine) Deleting(q record.QueueKey) <-chan struct{} {
	e.deletions.mu.Lock()
	defer e.deletions.mu.Unlock()
	if d := e.deletions.of[q]; d != nil {
		return d.done
	}
	return nil
}

// ask posts Drop to a shard. A stopped shard does not answer.
func (d *deletion) ask(shardNo int) {
	d.engine.Control(shardNo, nil, &shard.Drop{Asker: shard.Asker{Sink: d, Ref: shard.Ref(shardNo)}, Queue: d.queue})
}

func (d *deletion) askHome() {
	d.atHome, d.waits = true, 1
	d.ask(d.home)
}

// Deliver implements Sink.
func (d *deletion) Deliver(effects []shard.Effect) {
	if d.engine.heard != nil {
		d.engine.heard(effects)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range effects {
		if _, ok := e.(*shard.Dropped); !ok {
			panic(fmt.Sprintf("shardactor: a drop was answered by %T", e))
		}
		d.waits--
	}
	switch {
	case d.waits > 0:
	case !d.atHome:
		d.askHome()
	default:
		d.end()
	}
}

// end frees the name and closes done.
func (d *deletion) end() {
	d.engine.router.learn(d.queue, &record.Settings{})
	d.engine.deletions.mu.Lock()
	delete(d.engine.deletions.of, d.queue)
	d.engine.deletions.mu.Unlock()
	close(d.done)
}
