package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"codeq/record"
	"codeq/shardactor"
	"codeq/wire"
)

// deleteFor is how long a request waits for a queue to be gone before it says what
// is left.
const deleteFor = 10 * time.Second

// deleteQueue deletes a queue: at once if it has no task, with all of them if it is
// asked to. The answer comes when it is gone, or after deleteFor, when the server
// goes on with it alone.
func (a *api) deleteQueue(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	d := &shardactor.QueueDelete{}
	for name, to := range map[string]*bool{"purge": &d.Purge, "cancelRunning": &d.CancelRunning} {
		switch text := c.query.Get(name); text {
		case "", "false":
		case "true":
			*to = true
		default:
			return refuse(wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("%s must be true or false, got %.40q", name, text)))
		}
	}
	c.record.Bool("purge", d.Purge).Bool("cancelRunning", d.CancelRunning)
	figures, failed := a.readQueue(c, q)
	switch {
	case figures == nil:
		return failed
	case figures.Unknown:
		return refuse(wire.Refuse(wire.CodeQueueNotFound, "there is no queue "+q.Command+": it has no task and no settings"))
	case !figures.Deleting:
		// A request that was faster has begun the same.
		if refusal := a.change(q, shardactor.SettingsChange{Delete: d}); refusal != nil && refusal.Code != wire.CodeQueueDeleted {
			return refuse(notEmpty(refusal, figures, d.Purge))
		}
	}
	return a.untilDeleted(c, q)
}

func (a *api) untilDeleted(c *call, q record.QueueKey) answer {
	gone := a.o.Engine.Deleting(q)
	if gone == nil {
		return answer{status: http.StatusOK, body: []byte(`{"deleted":true}`)}
	}
	late := time.NewTimer(deleteFor)
	defer late.Stop()
	select {
	case <-gone:
		return answer{status: http.StatusOK, body: []byte(`{"deleted":true}`)}
	case <-late.C:
	case <-a.o.Draining:
	case <-c.r.Context().Done():
	}
	figures, failed := a.readQueue(c, q)
	if figures == nil {
		return failed
	}
	return answer{status: http.StatusOK, body: fmt.Appendf(nil, `{"deleted":false,"remaining":%d}`, allTasks(figures))}
}

// allTasks is how many tasks a queue has, whatever their state.
func allTasks(f *wire.QueueFigures) int64 {
	return f.Ready + f.Delayed + f.InProgress + f.Dead + f.Ended
}

// notEmpty gives the refusal of a shard the figures of the whole queue, which were
// read before; those that it had no task by then are as they were.
func notEmpty(refusal *wire.Error, f *wire.QueueFigures, purge bool) *wire.Error {
	all := allTasks(f)
	switch {
	case refusal.Code != wire.CodeQueueNotEmpty:
	case !purge && all > 0:
		return wire.Refuse(refusal.Code, fmt.Sprintf("queue %s has tasks: %d that have not ended, %d dead letters, %d ended otherwise; "+
			"have them purged with it, or let them end and be removed first", f.Command, all-f.Dead-f.Ended, f.Dead, f.Ended))
	case purge && f.InProgress > 0:
		return wire.Refuse(refusal.Code, fmt.Sprintf("queue %s has tasks in progress: %d; wait for their end, or have them cancelled with it",
			f.Command, f.InProgress))
	}
	return refusal
}
