package httpapi

import (
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// getQueue answers with the figures and settings of one queue.
func (a *api) getQueue(c *call) answer {
	figures, failed := a.readQueue(c)
	if figures == nil {
		return failed
	}
	return okay(wire.AppendQueueFigures(nil, figures))
}

// readQueue reads the figures of the queue of the path. Without figures the answer says why.
func (a *api) readQueue(c *call) (*wire.QueueFigures, answer) {
	figures, err := a.o.Store.ReadQueue(c.queue)
	if err = a.durable(c, err); err != nil {
		return nil, a.failedRead(c, err)
	}
	if a.o.Engine != nil {
		figures.Effective = a.o.Engine.Effective(c.queue.Command, figures.Settings)
	}
	return figures, answer{}
}

// putQueue replaces all settings of a queue.
func (a *api) putQueue(c *call, settings *wire.QueueSettings) answer {
	c.record.RawJSON("settings", wire.AppendQueueSettings(nil, settings))
	return a.configure(c, shard.SettingsChange{Settings: settings})
}

// pauseQueue stops the deliveries of a queue until it is resumed.
func (a *api) pauseQueue(c *call, _ struct{}) answer {
	paused := true
	return a.configure(c, shard.SettingsChange{Paused: &paused})
}

// resumeQueue ends a pause.
func (a *api) resumeQueue(c *call, _ struct{}) answer {
	paused := false
	return a.configure(c, shard.SettingsChange{Paused: &paused})
}

// configure changes the queue of the path and answers with its figures. The queue of callbacks
// can only be paused.
func (a *api) configure(c *call, what shard.SettingsChange) answer {
	var refusal *wire.Error
	if c.queue.Command != wire.CallbackQueue || what.Settings != nil {
		refusal = wire.CheckOwnCommand(c.queue.Command)
	}
	if refusal == nil {
		refusal = a.change(c, what)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return a.getQueue(c)
}

// change changes the queue of the path, and returns when every shard has the change on disk.
// It ignores the context of the request; see ask.
func (a *api) change(c *call, what shard.SettingsChange) *wire.Error {
	done := make(chan *wire.Error, 1)
	a.o.Engine.Configure(&shardactor.Change{
		Queue: c.queue, What: what,
		Done: func(_ record.Settings, refusal *wire.Error) { done <- refusal },
	})
	select {
	case refusal := <-done:
		return refusal
	case <-a.o.Lost:
		return notLeaderError
	}
}
