package shardactor

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"

	"codeq/store"
	"codeq/wire"
)

// router draws task ids. An id decides the shard of its task, so a task of an
// ordered queue gets an id that hashes to the home of the queue, and any other
// with an idempotency key one that hashes to the shard of the key.
type router struct {
	shards int

	mu     sync.Mutex
	random *bufio.Reader
	// ordered are the queues that are, as far as it was told. A task that is
	// routed by what was true before comes back from the shard that gets it.
	ordered map[store.QueueKey]bool
}

func newRouter(shards int, random io.Reader) *router {
	return &router{shards: shards, random: bufio.NewReaderSize(random, 4096), ordered: make(map[store.QueueKey]bool)}
}

// learn takes note of the settings of a queue.
func (r *router) learn(q store.QueueKey, set *store.Settings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set.Ordered {
		r.ordered[q] = true
	} else {
		delete(r.ordered, q)
	}
}

// route draws the id of a new task and says which shard owns it. It panics if
// the source of chance fails, which crypto/rand never does.
func (r *router) route(nowMs int64, tenant, command, key string) (wire.TaskID, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place(nowMs, tenant, command, key, r.ordered[store.QueueKey{Command: command, Tenant: tenant}])
}

// reroute routes a task that came back from a shard, by the settings which that
// shard knew.
func (r *router) reroute(nowMs int64, m *Enqueue, ordered bool) (wire.TaskID, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place(nowMs, m.Tenant, m.Command, m.IdempotencyKey, ordered)
}

func (r *router) place(nowMs int64, tenant, command, key string, ordered bool) (wire.TaskID, int) {
	var shard int
	switch {
	case ordered:
		shard = wire.ShardOfQueue(tenant, command, r.shards)
	case key == "":
		id := r.draw(nowMs)
		return id, wire.ShardOfTask(id, r.shards)
	default:
		shard = wire.ShardOfKey(tenant, command, key, r.shards)
	}
	for {
		id := r.draw(nowMs)
		if wire.ShardOfTask(id, r.shards) == shard {
			return id, shard
		}
	}
}

func (r *router) draw(nowMs int64) wire.TaskID {
	var chance [10]byte
	if _, err := io.ReadFull(r.random, chance[:]); err != nil {
		panic("shardactor: draw task id: " + err.Error())
	}
	return wire.TaskID(wire.NewUUIDv7(nowMs, chance))
}

// FingerprintOf is what must be equal for two requests with one idempotency
// key to be the same request: SHA-256 over command, payload bytes, priority
// and maxAttempts, each behind its length. Times and trace do not count.
func FingerprintOf(r *wire.EnqueueRequest) [32]byte {
	h := sha256.New()
	var length [8]byte
	part := func(data []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		// hash.Hash documents that Write never fails.
		_, _ = h.Write(length[:])
		_, _ = h.Write(data)
	}
	part([]byte(r.Command))
	part(r.Payload)
	part([]byte{byte(r.Priority)})
	// What the queue says may change between two requests that are the same.
	part(binary.BigEndian.AppendUint64(nil, uint64(cmp.Or(r.MaxAttempts, wire.DefaultMaxAttempts))))
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
