package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/wire"
)

// getResult answers with the outcome of a task, and waits for it if asked to.
func (a *api) getResult(c *call) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	wait, refusal := c.wait()
	if refusal != nil {
		return refuse(refusal)
	}
	if wait == 0 {
		ans, _ := a.readResult(c, id)
		return ans
	}
	return a.waitForResult(c, id, wait)
}

// waitForResult waits until there is a result or the time is over. A task that
// ends and is replayed before anybody has read how is waited for again.
func (a *api) waitForResult(c *call, id wire.TaskID, wait time.Duration) answer {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if ans, over := a.waitForEnd(c, id, timer.C); over {
			return ans
		}
	}
}

// waitForEnd registers with the shard first and reads second: a result that the
// first read does not see is one that the shard will tell of. It is over unless
// the task ended and what is left of that has no result.
func (a *api) waitForEnd(c *call, id wire.TaskID, late <-chan time.Time) (ans answer, over bool) {
	told, shard := newReply(), a.o.Engine.ShardOf(id)
	asker := shardactor.Asker{Sink: told}
	watch := &shardactor.Watch{Asker: asker, Tenant: c.who.Tenant, TaskID: id}
	// Not as new work: an Unwatch must never overtake its Watch.
	if refusal := a.post(shard, watch, 0, mailbox.ClassKeep); refusal != nil {
		return refuse(refusal), true
	}
	defer func() {
		var slot mailbox.Slot[shardactor.Message]
		a.o.Engine.Unwatch(shard, &slot, &shardactor.Unwatch{Asker: asker, TaskID: id})
	}()
	if ans, final := a.readResult(c, id); final {
		return ans, true
	}
	select {
	case <-told.effect: // ended, or unknown; the store knows which
	case <-late:
		over = true
	case <-c.r.Context().Done():
		return answer{abort: true}, true
	case <-a.o.Draining:
		return refuse(drainingError()), true
	}
	if c.who.Current() == nil {
		return refuse(credentialGone()), true
	}
	ans, final := a.readResult(c, id)
	return ans, over || final
}

// readResult reads behind the barrier. final is false if a later read could
// find more: the task is known and has no result.
func (a *api) readResult(c *call, id wire.TaskID) (ans answer, final bool) {
	task, record, err := a.o.Store.ReadResult(c.who.Tenant, id)
	if err == nil {
		err = a.o.Store.WaitDurable(c.r.Context(), a.o.Engine.ShardOf(id))
	}
	switch {
	case err != nil:
		return a.failedRead(c, err), true
	case task == nil:
		return refuse(unknownTask(id)), true
	case record == nil:
		missing := wire.Refuse(wire.CodeResultNotFound, fmt.Sprintf("task %v has no result yet, it is %s", id, task.Status))
		missing.Status = task.Status
		return refuse(missing), false
	}
	body := append(make([]byte, 0, len(task.Payload)+len(record.Result)+1024), `{"task":`...)
	body = wire.AppendTask(body, task, wire.PayloadAsString)
	body = append(body, `,"result":`...)
	body = wire.AppendResultRecord(body, record)
	return answer{status: http.StatusOK, body: append(body, '}')}, true
}

// wait reads waitSeconds; absent is 0.
func (c *call) wait() (time.Duration, *wire.Error) {
	text := c.query.Get("waitSeconds")
	if text == "" {
		return 0, nil
	}
	seconds, ok := wire.ParseInteger(text)
	if !ok || seconds < 0 || seconds > wire.MaxWaitSeconds {
		return 0, wire.Refuse(wire.CodeInvalidArgument,
			fmt.Sprintf("waitSeconds must be an integer from 0 to %d", wire.MaxWaitSeconds))
	}
	return time.Duration(seconds) * time.Second, nil
}
