package shardactor

import (
	"sync"

	"codeq/shard"
	"codeq/store"
)

// Observer gets every event of every shard, in order per shard, once it is durable
// and before the effects of its round are delivered. Load comes once for each shard
// before the first: number is that of the last event before the start, queues are
// the counters after it. Both must not block, must not keep what they get and are
// never called at the same time for one shard.
type Observer interface {
	Load(shard int, number uint64, queues []store.QueueState)
	Observe(shard int, events []shard.Event)
}

// effectGate holds the effects and events of one shard back until the sync that
// covers them. The shard's actor puts rounds in, in order; the goroutine that ran the
// barrier releases them. The lock is held over Observe and Deliver so that the
// observer and every sink get those of a shard in their order; neither blocks.
type effectGate struct {
	shard int
	// events gets the events, notes the reports of workers; nil if nobody wants them.
	events Observer
	notes  func(shard int, notes []shard.Note)

	mu      sync.Mutex
	synced  uint64
	pending []pendingRound
	// spare are slices of observed events, to be used again.
	spare [][]shard.Event
}

type pendingRound struct {
	batch   uint64
	effects []shard.Addressed
	events  []shard.Event
	notes   []shard.Note
}

// put adds the effects, events and reports of a round; the sync of batch covers them. It
// returns a slice of events that nobody reads any more, nil if there is none.
func (o *effectGate) put(batch uint64, out *shard.Outcome) (free []shard.Event) {
	round := pendingRound{batch: batch, effects: out.Effects, events: out.Events, notes: out.Notes}
	if o.events == nil {
		free, round.events = round.events, nil
	}
	if o.notes == nil {
		round.notes = nil
	}
	if len(round.effects) == 0 && len(round.events) == 0 && len(round.notes) == 0 {
		return free
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if batch <= o.synced && len(o.pending) == 0 {
		o.observe(&round)
		deliver(round.effects)
	} else {
		o.pending = append(o.pending, round)
	}
	if n := len(o.spare); n > 0 {
		free, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	return free
}

// observe passes the reports and the events of a round on, and keeps the slice of events. A report
// comes before the end of its delivery.
func (o *effectGate) observe(round *pendingRound) {
	if len(round.notes) > 0 {
		o.notes(o.shard, round.notes)
	}
	if len(round.events) > 0 {
		o.events.Observe(o.shard, round.events)
		o.spare = append(o.spare, round.events)
	}
}

// release passes the events of the batches up to upTo on, and then delivers their
// effects.
func (o *effectGate) release(upTo uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = max(o.synced, upTo)
	var due []shard.Addressed
	n := 0
	for n < len(o.pending) && o.pending[n].batch <= o.synced {
		o.observe(&o.pending[n])
		due = append(due, o.pending[n].effects...)
		n++
	}
	if n == 0 {
		return
	}
	rest := copy(o.pending, o.pending[n:])
	clear(o.pending[rest:])
	o.pending = o.pending[:rest]
	if len(due) > 0 {
		deliver(due)
	}
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
