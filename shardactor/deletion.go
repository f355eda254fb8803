package shardactor

import (
	"fmt"
	"sync"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// deletions are the queues that go, each by one deletion.
type deletions struct {
	mu sync.Mutex
	of map[record.QueueKey]*deletion
}

// deletion has the shards forget the settings of a queue that is marked as deleted,
// each once it has nothing of it left, and the home last; see delete.go.
type deletion struct {
	engine *Engine
	queue  record.QueueKey
	home   int
	done   chan struct{}

	mu sync.Mutex
	// waits is how many shards have not answered, atHome that the home was asked.
	waits  int
	atHome bool
}

// drop begins to remove what is left of a queue that is marked, unless that has
// begun. It does not block. When the engine stops it is forgotten; the next start
// begins it again.
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

// Deleting is closed when a queue that is being deleted is gone; nil if none of that
// name is.
func (e *Engine) Deleting(q record.QueueKey) <-chan struct{} {
	e.deletions.mu.Lock()
	defer e.deletions.mu.Unlock()
	if d := e.deletions.of[q]; d != nil {
		return d.done
	}
	return nil
}

// ask posts to a shard; one that has stopped does not answer.
func (d *deletion) ask(shardNo int) {
	m := &shard.Drop{Asker: shard.Asker{Sink: d, Ref: shard.Ref(shardNo)}, Queue: d.queue}
	d.engine.loops[shardNo].box.PushSlot(new(mailbox.Slot[shard.Message]), m, nil)
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

// end frees the name.
func (d *deletion) end() {
	d.engine.router.learn(d.queue, &record.Settings{})
	d.engine.deletions.mu.Lock()
	delete(d.engine.deletions.of, d.queue)
	d.engine.deletions.mu.Unlock()
	close(d.done)
}
