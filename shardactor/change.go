package shardactor

import (
	"fmt"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// Change is one change of the settings of a queue in all shards. The home decides
// first and makes that durable, then every other shard applies a copy; Done comes
// after the last. After a crash in between the next start copies the settings of
// the home. A change that may put a spread queue into one order first freezes the
// others: each confirms that it has no task of the queue, and makes none until it
// has the copy. A crash ends the freezes, without harm: either nothing was decided,
// or the next start copies it before the first message.
//
// The router spreads a queue from the end of the change, when every shard accepts
// its tasks, until the end of the change that reverts it. A frozen shard refuses
// tasks that it routes there meanwhile.
type Change struct {
	Queue record.QueueKey
	What  shard.SettingsChange
	// Done is called once with the result, from the goroutine that released the
	// last sync or, when the server stops, from one that posts. It must not block.
	Done func(settings record.Settings, refusal *wire.Error)
	// Heard gets every effect that answers the change; nil outside a simulation.
	Heard func([]shard.Effect)

	asking
	// stage is the last question to the shards.
	stage stage
	// frozen are the shards that this change has frozen, refusal is the refusal of
	// another shard or of the home, latest the newest settings of any shard.
	frozen  []int
	refusal *wire.Error
	latest  record.Settings
}

// stage is the progress of a change.
type stage int

const (
	freezing stage = iota
	deciding
	copying
	over
)

// Configure begins a change of settings. It does not block.
func (e *Engine) Configure(c *Change) {
	c.engine, c.home, c.heard = e, wire.ShardOfQueue(c.Queue.Tenant, c.Queue.Command, len(e.loops)), c.Heard
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.What.Delete != nil || c.What.Settings != nil && !c.What.Settings.Spread) && len(e.loops) > 1 {
		c.mustAsk(c.askOthers(c, func(to shard.Asker) shard.Message {
			return &shard.Freeze{Asker: to, Queue: c.Queue, Delete: c.What.Delete}
		}))
		return
	}
	c.decide()
}

// decide asks the home of the queue to decide.
func (c *Change) decide() {
	c.stage = deciding
	c.mustAsk(c.askHome(c, func(to shard.Asker) shard.Message {
		return &shard.Configure{Asker: to, Queue: c.Queue, Change: c.What}
	}))
}

// mustAsk ends the change if a shard was not asked, because the engine stops: the next
// start copies what was decided. The answer is a refusal, because not every shard has it.
func (c *Change) mustAsk(asked bool) {
	if !asked {
		c.end(stoppingError())
	}
}

// Deliver implements Sink.
func (c *Change) Deliver(effects []shard.Effect) {
	c.hear(effects, func(e shard.Effect) {
		switch e := e.(type) {
		case *shard.Frozen:
			c.frozen = append(c.frozen, int(e.Ref))
		case *shard.Configured:
			if e.Settings.Version > c.latest.Version {
				c.latest = e.Settings
			}
		case *shard.Refused:
			c.refusal = e.Err
		default:
			panic(fmt.Sprintf("shardactor: a change of settings was answered by %T", e))
		}
	}, c.next)
}

// next starts the next stage when all shards that were asked have answered.
func (c *Change) next() {
	switch {
	case c.stage == over:
	case c.refusal != nil:
		c.thaw()
		c.end(c.refusal)
	case c.stage == freezing:
		c.decide()
	case c.stage == deciding && len(c.engine.loops) > 1:
		c.stage = copying
		decided, thaw := c.latest, len(c.frozen) > 0
		c.mustAsk(c.askOthers(c, func(to shard.Asker) shard.Message {
			return &shard.CopySettings{Asker: to, Queue: c.Queue, Settings: decided, Thaw: thaw}
		}))
	default:
		c.engine.learn(c.Queue, &c.latest)
		if c.latest.Deleting {
			c.engine.drop(c.Queue)
		}
		c.end(nil)
	}
}

// thaw ends the freezes of a change that was refused. When the engine stops a
// freeze needs no end.
func (c *Change) thaw() {
	for _, shardNo := range c.frozen {
		c.engine.Control(shardNo, nil, &shard.CopySettings{Queue: c.Queue, Thaw: true})
	}
}

func (c *Change) end(refusal *wire.Error) {
	c.stage = over
	if refusal != nil {
		c.Done(record.Settings{}, refusal)
		return
	}
	c.Done(c.latest, nil)
}

func stoppingError() *wire.Error {
	return wire.Refuse(wire.CodeDraining, "the server is shutting down; try again when it is back")
}

// copyNewest gives every shard the newest settings that any of them has, which are
// those of the home: a crash may have come after the home decided and before the
// others had the copy.
func copyNewest(recovered []*store.Recovered) {
	newest := make(map[record.QueueKey]record.Settings)
	var order []record.QueueKey
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
		has := make(map[record.QueueKey]int64)
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
