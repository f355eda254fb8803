package shardactor

import (
	"fmt"
	"sync"

	"codeq/internal/credit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
)

// limiters are those of all queues that have had a limit since the start, which is what
// bounds them. A limiter stays, because a shard may still use it.
type limiters struct {
	shards int
	heard  func([]shard.Effect)
	post   func(shardNo int, control *mailbox.Slot[shard.Message], m shard.Message) bool

	mu    sync.Mutex
	known map[record.QueueKey]*limiter
}

// limiter implements shard.Limiter: a place is a credit of a window.
type limiter struct {
	*credit.Window
	credit.Rate
	heard func([]shard.Effect)
}

// allPlaces are more than there can be tasks in progress: there is no limit.
const allPlaces = 1 << 28

// of finds or makes the limiter of a queue.
func (l *limiters) of(key record.QueueKey) shard.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[key]; known != nil {
		return known
	}
	made, slots := &limiter{heard: l.heard}, make([]mailbox.Slot[shard.Message], l.shards)
	made.Window = credit.New(1, 1, func(shardNo int) {
		l.post(shardNo, &slots[shardNo], &shard.HandedPlaces{Limiter: made, Queue: key, Places: 1})
	})
	if l.known == nil {
		l.known = make(map[record.QueueKey]*limiter)
	}
	l.known[key] = made
	return made
}

// Set implements shard.Limiter.
func (l *limiter) Set(maxInProgress, startsPerSecond int, nowMs int64) {
	if maxInProgress == 0 {
		maxInProgress = allPlaces
	}
	l.SetWindow(maxInProgress)
	l.SetRate(startsPerSecond, nowMs)
}

// Deliver implements shard.Sink: the places of deliveries whose end is durable.
func (l *limiter) Deliver(effects []shard.Effect) {
	if l.heard != nil {
		l.heard(effects)
	}
	for _, e := range effects {
		freed, ok := e.(*shard.Freed)
		if !ok {
			panic(fmt.Sprintf("shardactor: a limiter was told %T", e))
		}
		l.Return(freed.Places)
	}
}
