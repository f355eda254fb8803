package httpapi

import (
	"fmt"
	"time"

	"codeq/shard"
	"codeq/wire"
)

// deleteFor bounds the wait of a request until a queue is deleted.
const deleteFor = 10 * time.Second

// deleteQueue deletes a queue without tasks, or with purge a queue and its tasks. It answers
// when the queue is deleted, or after deleteFor with the number of tasks that are left; the
// server goes on with the deletion.
func (a *api) deleteQueue(c *call) answer {
	d := &shard.QueueDelete{}
	for name, to := range map[string]*bool{"purge": &d.Purge, "cancelRunning": &d.CancelRunning} {
		var refusal *wire.Error
		if *to, refusal = c.yes(name); refusal != nil {
			return refuse(refusal)
		}
	}
	c.record.Bool("purge", d.Purge).Bool("cancelRunning", d.CancelRunning)
	if refusal := wire.CheckOwnCommand(c.queue.Command); refusal != nil {
		return refuse(refusal)
	}
	figures, failed := a.readQueue(c)
	switch {
	case figures == nil:
		return failed
	case figures.Unknown:
		return refuse(wire.Refuse(wire.CodeQueueNotFound, "there is no queue "+c.queue.Command+": it has no task and no settings"))
	case !figures.Deleting:
		// queue_deleted: another request has begun the deletion meanwhile.
		if refusal := a.change(c, shard.SettingsChange{Delete: d}); refusal != nil && refusal.Code != wire.CodeQueueDeleted {
			return refuse(notEmpty(refusal, figures, d.Purge))
		}
	}
	return a.untilDeleted(c)
}

// untilDeleted waits for the end of the deletion, which the engine tells; it tells none for a
// queue that is deleted already.
func (a *api) untilDeleted(c *call) answer {
	deleted := a.o.Engine.Deleting(c.queue)
	if deleted == nil {
		return okay([]byte(`{"deleted":true}`))
	}
	late := time.NewTimer(deleteFor)
	defer late.Stop()
	select {
	case <-deleted:
		return okay([]byte(`{"deleted":true}`))
	case <-late.C:
	case <-a.o.Draining:
	case <-c.r.Context().Done():
	}
	figures, failed := a.readQueue(c)
	if figures == nil {
		return failed
	}
	return okay(fmt.Appendf(nil, `{"deleted":false,"remaining":%d}`, allTasks(figures)))
}

// allTasks is the number of tasks of a queue in all states.
func allTasks(f *wire.QueueFigures) int64 {
	return f.Ready + f.Limited + f.Delayed + f.InProgress + f.Dead + f.Ended
}

// notEmpty puts the figures of the whole queue into the refusal of a shard. They were read
// before; if they do not explain the refusal, it stays as it is.
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
