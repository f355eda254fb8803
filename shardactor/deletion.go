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
	asking
	queue record.QueueKey
	done  chan struct{}
	// atHome reports that the home was asked.
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
		asking: asking{engine: e, home: wire.ShardOfQueue(q.Tenant, q.Command, len(e.loops)), heard: e.heard}, queue: q, done: make(chan struct{}),
	}
	if e.deletions.of == nil {
		e.deletions.of = make(map[record.QueueKey]*deletion)
	}
	e.deletions.of[q] = d
	// A stopped shard does not answer: then the next start begins the deletion again.
	if len(e.loops) > 1 {
		d.askOthers(d, d.drop)
		return
	}
	d.last()
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

func (d *deletion) drop(to shard.Asker) shard.Message { return &shard.Drop{Asker: to, Queue: d.queue} }

// last asks the home.
func (d *deletion) last() {
	d.atHome = true
	d.askHome(d, d.drop)
}

// Deliver implements Sink.
func (d *deletion) Deliver(effects []shard.Effect) {
	d.hear(effects, func(e shard.Effect) {
		if _, ok := e.(*shard.Dropped); !ok {
			panic(fmt.Sprintf("shardactor: a drop was answered by %T", e))
		}
	}, func() {
		if d.atHome {
			d.end()
			return
		}
		d.last()
	})
}

// end frees the name and closes done.
func (d *deletion) end() {
	d.engine.router.learn(d.queue, &record.Settings{})
	d.engine.deletions.mu.Lock()
	delete(d.engine.deletions.of, d.queue)
	d.engine.deletions.mu.Unlock()
	close(d.done)
}
