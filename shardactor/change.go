package shardactor

import (
	"fmt"
	"sync"

	"codeq/mailbox"
	"codeq/store"
	"codeq/wire"
)

// Change is one change of the settings of a queue on its way through the
// shards: its home decides first and makes that durable, then every other shard
// has it copied. So whoever is answered knows that it holds in all of them, and
// a crash half-way is healed from the home.
type Change struct {
	Queue store.QueueKey
	What  SettingsChange
	// Done is told once how it ended, from the goroutine that released the
	// last sync or, when the server stops, from one that posts. It must not
	// block.
	Done func(settings store.Settings, refusal *wire.Error)
	// Heard is shown every effect that comes back, nil outside a simulation.
	Heard func([]Effect)

	engine *Engine
	home   int

	mu      sync.Mutex
	decided bool
	waits   int
	latest  store.Settings
}

// Configure begins a change of settings. It does not block.
func (e *Engine) Configure(c *Change) {
	c.engine, c.home = e, wire.ShardOfQueue(c.Queue.Tenant, c.Queue.Command, len(e.loops))
	c.waits = 1
	if !c.post(c.home, &Configure{Asker: Asker{Sink: c}, Queue: c.Queue, Change: c.What}) {
		c.Done(store.Settings{}, stoppingError())
	}
}

// post sends a message that is never refused while the shard lives. The slot
// serves this one message.
func (c *Change) post(shard int, m Message) bool {
	return c.engine.loops[shard].box.PushSlot(new(mailbox.Slot[Message]), m, nil) != mailbox.Closed
}

// Deliver implements Sink.
func (c *Change) Deliver(effects []Effect) {
	if c.Heard != nil {
		c.Heard(effects)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case *Configured:
			c.configured(e.Settings)
		case *Refused:
			c.Done(store.Settings{}, e.Err)
		default:
			panic(fmt.Sprintf("shardactor: a change of settings was answered by %T", e))
		}
	}
}

// configured counts a shard that has the settings, the home first.
func (c *Change) configured(now store.Settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Version > c.latest.Version {
		c.latest = now
	}
	c.waits--
	if !c.decided {
		c.decided = true
		c.copyToOthers()
	}
	if c.waits == 0 {
		c.Done(c.latest, nil)
	}
}

func (c *Change) copyToOthers() {
	c.waits += len(c.engine.loops) - 1
	for shard := range c.engine.loops {
		if shard == c.home {
			continue
		}
		m := &CopySettings{Asker: Asker{Sink: c, Ref: uint64(shard)}, Queue: c.Queue, Settings: c.latest}
		if !c.post(shard, m) {
			// The engine stops: the next start copies it. Nobody is told that it
			// holds everywhere.
			c.waits = -1
			c.Done(store.Settings{}, stoppingError())
			return
		}
	}
}

func stoppingError() *wire.Error {
	return wire.Refuse(wire.CodeDraining, "the server is shutting down; try again when it is back")
}

// copyNewest gives every shard the newest settings that any of them has, which
// are those of the home: a crash may have come between it and the others.
func copyNewest(recovered []*store.Recovered) {
	newest := make(map[store.QueueKey]store.Settings)
	var order []store.QueueKey
	for _, r := range recovered {
		for _, found := range r.Settings {
			known, ok := newest[found.Key]
			if !ok {
				order = append(order, found.Key)
			}
			if !ok || found.Settings.Version > known.Version {
				newest[found.Key] = found.Settings
			}
		}
	}
	for _, r := range recovered {
		has := make(map[store.QueueKey]int64)
		for _, found := range r.Settings {
			has[found.Key] = found.Settings.Version
		}
		all := make([]store.SettingsState, 0, len(order))
		for _, key := range order {
			all = append(all, store.SettingsState{
				Key: key, Settings: newest[key], Unsaved: has[key] < newest[key].Version,
			})
		}
		r.Settings = all
	}
}
