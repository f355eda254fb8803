package httpapi

import (
	"fmt"
	"time"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// resultQuery are the parameters of getResult.
var resultQuery = []string{"waitSeconds"}

// getResult answers with the outcome of a task, and waits for it up to waitSeconds if
// shards are here.
func (a *api) getResult(c *call) answer {
	seconds, refusal := c.integer("waitSeconds", 0, 0, wire.MaxWaitSeconds)
	if refusal != nil {
		return refuse(refusal)
	}
	if seconds == 0 || a.o.Engine == nil {
		ans, _ := a.readResult(c)
		return ans
	}
	return a.waitForResult(c, time.Duration(seconds)*time.Second)
}

// waitForResult waits until there is a result or the time is over. It waits again for a task
// that ended and was replayed before its result was read.
func (a *api) waitForResult(c *call, wait time.Duration) answer {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if ans, over := a.waitForEnd(c, timer.C); over {
			return ans
		}
	}
}

// waitForEnd registers with the shard first and reads second: the shard reports every result
// that the first read does not see. over is false only if the task ended and the read after
// that found no result.
func (a *api) waitForEnd(c *call, late <-chan time.Time) (ans answer, over bool) {
	ended, id, shardNo := newReply(), c.taskID, a.o.Engine.ShardOf(c.taskID)
	asker := shard.Asker{Sink: ended}
	watch := &shard.Watch{Asker: asker, Tenant: c.who.Tenant, TaskID: id}
	// ClassKeep, because an Unwatch must not overtake its Watch.
	if refusal := a.post(shardNo, watch, 0, mailbox.ClassKeep); refusal != nil {
		return refuse(refusal), true
	}
	defer a.o.Engine.Control(shardNo, nil, &shard.Unwatch{Asker: asker, TaskID: id})
	if ans, final := a.readResult(c); final {
		return ans, true
	}
	select {
	case <-ended.effect: // ended or unknown; the store knows which
	case <-late:
		over = true
	case <-c.r.Context().Done():
		return answer{abort: true}, true
	case <-a.o.Draining:
		return refuse(a.leaving()), true
	}
	if c.who.Current() == nil {
		return refuse(credentialRevoked), true
	}
	ans, final := a.readResult(c)
	return ans, over || final
}

// readResult answers with task and result. final is false if the task has no result yet.
func (a *api) readResult(c *call) (ans answer, final bool) {
	task, record, failed := a.resultOf(c)
	if record == nil {
		return failed, failed.refusal == nil || failed.refusal.Code != wire.CodeResultNotFound
	}
	body := append(make([]byte, 0, len(task.Payload)+len(record.Result)+1024), `{"task":`...)
	body = wire.AppendTask(body, task, wire.PayloadAsString)
	body = append(body, `,"result":`...)
	body = wire.AppendResultRecord(body, record)
	return okay(append(body, '}')), true
}

// resultOf reads task and result, and waits until what it read is on disk. Without a result the
// answer says why.
func (a *api) resultOf(c *call) (*wire.Task, *wire.ResultRecord, answer) {
	id := c.taskID
	task, record, err := a.o.Store.ReadResult(c.who.Tenant, id)
	if err == nil {
		err = a.o.Store.WaitDurable(c.r.Context(), a.shardOf(id))
	}
	switch {
	case err != nil:
		return nil, nil, a.failedRead(c, err)
	case task == nil:
		return nil, nil, refuse(unknownTask(id))
	case !c.who.MaySee(task.Command):
		return nil, nil, refuse(c.who.CheckSight(task.Command))
	case record == nil:
		missing := wire.Refuse(wire.CodeResultNotFound, fmt.Sprintf("task %v has no result yet, it is %s", id, task.Status))
		missing.Status = task.Status
		return nil, nil, refuse(missing)
	}
	return task, record, answer{}
}
