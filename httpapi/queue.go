package httpapi

import (
	"net/http"

	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// queueOf is the queue of the caller's tenant that the path names.
func (c *call) queueOf() (q record.QueueKey, refusal *wire.Error) {
	q = record.QueueKey{Command: c.r.PathValue("command"), Tenant: c.who.Tenant}
	if refusal := wire.CheckCommand(q.Command); refusal != nil {
		return q, refusal
	}
	if !c.who.MayUse(q.Command) {
		return q, notForCommand(q.Command)
	}
	return q, nil
}

// getQueue answers with the figures and settings of one queue.
func (a *api) getQueue(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	return a.queueFigures(c, q)
}

func (a *api) queueFigures(c *call, q record.QueueKey) answer {
	figures, failed := a.readQueue(c, q)
	if figures == nil {
		return failed
	}
	return answer{status: http.StatusOK, body: wire.AppendQueueFigures(nil, figures)}
}

// readQueue reads the figures of a queue behind the barrier. Without figures
// the answer says why.
func (a *api) readQueue(c *call, q record.QueueKey) (*wire.QueueFigures, answer) {
	figures, err := a.o.Store.ReadQueue(q)
	if err == nil {
		err = a.allDurable(c)
	}
	if err != nil {
		return nil, a.failedRead(c, err)
	}
	figures.Effective = a.o.Engine.Effective(figures.Settings)
	return figures, answer{}
}

// putQueue sets what an admin decides for a queue, all of it at once.
func (a *api) putQueue(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	settings, refusal := wire.ParseQueueSettings(body)
	if refusal != nil {
		return refuse(refusal)
	}
	c.record.RawJSON("settings", wire.AppendQueueSettings(nil, settings))
	return a.configure(c, q, shardactor.SettingsChange{Settings: settings})
}

// pauseQueue keeps the tasks of a queue from workers until it is resumed.
func (a *api) pauseQueue(c *call) answer { return a.setPaused(c, true) }

// resumeQueue ends a pause.
func (a *api) resumeQueue(c *call) answer { return a.setPaused(c, false) }

func (a *api) setPaused(c *call, paused bool) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	if refusal := c.readBareBody(); refusal != nil {
		return refuse(refusal)
	}
	return a.configure(c, q, shardactor.SettingsChange{Paused: &paused})
}

// configure changes settings and answers when every shard has them on disk.
// Like enqueue it does not look at the request's context.
func (a *api) configure(c *call, q record.QueueKey, what shardactor.SettingsChange) answer {
	if refusal := a.change(q, what); refusal != nil {
		return refuse(refusal)
	}
	return a.queueFigures(c, q)
}

// change returns when every shard has it on disk.
func (a *api) change(q record.QueueKey, what shardactor.SettingsChange) *wire.Error {
	done := make(chan *wire.Error, 1)
	a.o.Engine.Configure(&shardactor.Change{
		Queue: q, What: what,
		Done: func(_ record.Settings, refusal *wire.Error) { done <- refusal },
	})
	return <-done
}
