package httpapi

import (
	"slices"

	"errors"

	"codeq/store"
	"codeq/wire"
)

// getTask answers with a task, and with why it waits or when its lease ends.
func (a *api) getTask(c *call) answer {
	task, failed := a.readTask(c)
	if task != nil {
		task, failed = a.explained(c, task)
	}
	return c.taskAnswer(task, failed)
}

// taskAnswer answers with a task, or says why there is none.
func (c *call) taskAnswer(task *wire.Task, failed answer) answer {
	if task == nil {
		return failed
	}
	return okay(c.appendTask(nil, task))
}

// appendTask appends a task as the client may see it.
func (c *call) appendTask(dst []byte, task *wire.Task) []byte {
	if !c.who.SeesContents() {
		task = task.Outline()
	}
	return wire.AppendTask(dst, task, wire.PayloadAsString)
}

// readTask reads the task of the path, and waits until what it read is on disk. Without a
// task the answer says why.
func (a *api) readTask(c *call) (*wire.Task, answer) {
	task, err := a.o.Store.ReadTask(c.who.Tenant, c.taskID)
	if err == nil {
		err = a.o.Store.WaitDurable(c.r.Context(), a.shardOf(c.taskID))
	}
	if err != nil {
		return nil, a.failedRead(c, err)
	}
	if task == nil {
		return nil, refuse(unknownTask(c.taskID))
	}
	if refusal := c.who.CheckSight(task.Command); refusal != nil {
		return nil, refuse(refusal)
	}
	return task, answer{}
}

// shardOf is the shard that has a task.
func (a *api) shardOf(id wire.TaskID) int { return wire.ShardOfTask(id, a.o.Store.Shards()) }

// getQueues answers with the figures of all queues of the tenant that the credential may see;
// of those of the server only with system=true.
func (a *api) getQueues(c *call) answer {
	system, refusal := c.yes("system")
	if refusal != nil {
		return refuse(refusal)
	}
	queues, err := a.o.Store.ReadQueues(c.who.Tenant)
	if err = a.durable(c, err); err != nil {
		return a.failedRead(c, err)
	}
	queues = slices.DeleteFunc(queues, func(q wire.QueueFigures) bool {
		return !c.who.MaySee(q.Command) || !system && wire.IsSystemCommand(q.Command)
	})
	body := appendList([]byte(`{"queues":[`), len(queues), func(dst []byte, i int) []byte {
		return wire.AppendQueueFigures(dst, &queues[i])
	})
	return okay(append(body, "]}"...))
}

// durable waits, after a read without an error, until everything that was visible in any
// shard is on disk.
func (a *api) durable(c *call, err error) error {
	for shard := 0; err == nil && shard < a.o.Store.Shards(); shard++ {
		err = a.o.Store.WaitDurable(c.r.Context(), shard)
	}
	return err
}

// failedRead is the answer after a read that failed. It is none if the client has left, which
// also ends the wait for the disk.
func (a *api) failedRead(c *call, err error) answer {
	switch {
	case errors.Is(err, store.ErrListPlace):
		return refuse(badCursor)
	case c.r.Context().Err() != nil:
		return answer{abort: true}
	case errors.Is(err, store.ErrNotLeader):
		return refuse(notLeaderError)
	}
	a.o.Log.Error().Str("requestId", c.requestID).Err(err).Msg("read failed")
	return refuse(internalError)
}

// appendList appends n items with commas between them.
func appendList(dst []byte, n int, item func(dst []byte, i int) []byte) []byte {
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item(dst, i)
	}
	return dst
}

// appendTasks appends tasks with commas between them.
func (c *call) appendTasks(dst []byte, tasks []*wire.Task) []byte {
	return appendList(dst, len(tasks), func(dst []byte, i int) []byte { return c.appendTask(dst, tasks[i]) })
}
