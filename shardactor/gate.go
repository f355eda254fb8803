package shardactor

import (
	"sync"

	"codeq/shard"
)

// effectGate holds the effects of one shard back until the sync that covers them.
// The shard's actor puts rounds in, in order; the goroutine that ran the barrier
// releases them. The lock is held over Deliver so that every sink gets the effects
// of a shard in their order; Deliver never blocks.
type effectGate struct {
	mu      sync.Mutex
	synced  uint64
	pending []pendingRound
}

type pendingRound struct {
	batch   uint64
	effects []shard.Addressed
}

// put adds the effects of a round; the sync of batch covers them.
func (o *effectGate) put(batch uint64, effects []shard.Addressed) {
	if len(effects) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if batch <= o.synced && len(o.pending) == 0 {
		deliver(effects)
		return
	}
	o.pending = append(o.pending, pendingRound{batch: batch, effects: effects})
}

// release delivers the effects of the batches up to upTo.
func (o *effectGate) release(upTo uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = max(o.synced, upTo)
	var due []shard.Addressed
	n := 0
	for n < len(o.pending) && o.pending[n].batch <= o.synced {
		due = append(due, o.pending[n].effects...)
		n++
	}
	if n == 0 {
		return
	}
	rest := copy(o.pending, o.pending[n:])
	clear(o.pending[rest:])
	o.pending = o.pending[:rest]
	deliver(due)
}

// deliver gives every sink all its effects in one call, so that a session can send
// the effects of one sync in one message.
func deliver(effects []shard.Addressed) {
	if len(effects) == 1 {
		effects[0].Sink.Deliver([]shard.Effect{effects[0].Effect})
		return
	}
	var order []shard.Sink
	bySink := make(map[shard.Sink][]shard.Effect)
	for _, a := range effects {
		if _, known := bySink[a.Sink]; !known {
			order = append(order, a.Sink)
		}
		bySink[a.Sink] = append(bySink[a.Sink], a.Effect)
	}
	for _, sink := range order {
		sink.Deliver(bySink[sink])
	}
}
