package shardactor

import (
	"bufio"
	"io"
	"sync"

	"codeq/record"
	"codeq/wire"
)

// router draws task ids. An id decides the shard of its task, so a task gets one
// that hashes to the home of its queue; of a queue that is spread, one without an
// idempotency key keeps the one that was drawn.
type router struct {
	shards int

	mu     sync.Mutex
	random *bufio.Reader
	// spread are the queues that every shard knows to be spread.
	spread map[record.QueueKey]bool
}

func newRouter(shards int, random io.Reader) *router {
	return &router{shards: shards, random: bufio.NewReaderSize(random, 4096), spread: make(map[record.QueueKey]bool)}
}

// learn notes the settings of a queue.
func (r *router) learn(q record.QueueKey, set *record.Settings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set.Spread {
		r.spread[q] = true
	} else {
		delete(r.spread, q)
	}
}

// route draws the id of a new task and says which shard owns it. It panics if the
// random source fails, which crypto/rand never does.
func (r *router) route(nowMs int64, tenant, command, key string) (wire.TaskID, int) {
	id, spread := r.draw(nowMs, record.QueueKey{Command: command, Tenant: tenant})
	if spread && key == "" {
		return id, wire.ShardOfTask(id, r.shards)
	}
	home := wire.ShardOfQueue(tenant, command, r.shards)
	return id.MovedTo(home, r.shards), home
}

// draw is a new id, and whether the queue is spread.
func (r *router) draw(nowMs int64, q record.QueueKey) (wire.TaskID, bool) {
	var chance [10]byte
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := io.ReadFull(r.random, chance[:]); err != nil {
		panic("shardactor: draw task id: " + err.Error())
	}
	return wire.NewTaskID(nowMs, chance), r.spread[q]
}
