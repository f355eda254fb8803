package shardactor

import (
	"sync"

	"codeq/shard"
)

// asking is the part of what concerns all shards that asks: one shard, the home,
// decides, and the others follow. Its owner is the sink of the answers.
type asking struct {
	engine *Engine
	home   int
	// heard gets every answer; nil outside a simulation.
	heard func([]shard.Effect)

	// mu guards the owner too. waits is how many shards have not answered.
	mu    sync.Mutex
	waits int
}

// ask sends a message to one shard, and reports false if the engine stops. Then no
// answer comes.
func (a *asking) ask(sink shard.Sink, shardNo int, message func(to shard.Asker) shard.Message) bool {
	return a.engine.Control(shardNo, nil, message(shard.Asker{Sink: sink, Ref: shard.Ref(shardNo)}))
}

// askHome asks the home.
func (a *asking) askHome(sink shard.Sink, message func(to shard.Asker) shard.Message) bool {
	a.waits = 1
	return a.ask(sink, a.home, message)
}

// askOthers asks every shard but the home.
func (a *asking) askOthers(sink shard.Sink, message func(to shard.Asker) shard.Message) bool {
	a.waits = len(a.engine.loops) - 1
	for shardNo := range a.engine.loops {
		if shardNo != a.home && !a.ask(sink, shardNo, message) {
			return false
		}
	}
	return true
}

// hear hands each answer to take, and calls next after the last one that was missing.
func (a *asking) hear(effects []shard.Effect, take func(shard.Effect), next func()) {
	if a.heard != nil {
		a.heard(effects)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range effects {
		take(e)
		a.waits--
		if a.waits == 0 {
			next()
		}
	}
}
