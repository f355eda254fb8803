package httpapi

import (
	"net/http"

	"codeq/wire"
)

// getTask answers with a task of the caller's tenant, and with why it waits or when
// its lease ends.
func (a *api) getTask(c *call) answer {
	id, ok := wire.ParseTaskID(c.r.PathValue("id"))
	if !ok {
		return refuse(unknownTaskID())
	}
	task, refused := a.readTask(c, id)
	if task == nil {
		return refused
	}
	if task, refused = a.explained(c, task); task == nil {
		return refused
	}
	return answer{status: http.StatusOK, body: wire.AppendTask(nil, task, wire.PayloadAsString)}
}

// taskAsItIs answers with a task.
func (a *api) taskAsItIs(c *call, id wire.TaskID) answer {
	task, refused := a.readTask(c, id)
	if task == nil {
		return refused
	}
	return answer{status: http.StatusOK, body: wire.AppendTask(nil, task, wire.PayloadAsString)}
}

// readTask reads a task of the caller's tenant behind the barrier. Without a
// task the answer says why.
func (a *api) readTask(c *call, id wire.TaskID) (*wire.Task, answer) {
	task, err := a.o.Store.ReadTask(c.who.Tenant, id)
	if err != nil {
		return nil, a.failedRead(c, err)
	}
	if err := a.o.Store.WaitDurable(c.r.Context(), a.o.Engine.ShardOf(id)); err != nil {
		return nil, a.failedRead(c, err)
	}
	if task == nil {
		return nil, refuse(unknownTask(id))
	}
	return task, answer{}
}

// getQueues answers with the figures of the caller's tenant.
func (a *api) getQueues(c *call) answer {
	queues, err := a.o.Store.ReadQueues(c.who.Tenant)
	if err != nil {
		return a.failedRead(c, err)
	}
	if err := a.allDurable(c); err != nil {
		return a.failedRead(c, err)
	}
	body := append([]byte(nil), `{"queues":[`...)
	for i := range queues {
		if i > 0 {
			body = append(body, ',')
		}
		body = wire.AppendQueueFigures(body, &queues[i])
	}
	return answer{status: http.StatusOK, body: append(body, "]}"...)}
}

// failedRead ends a request whose read failed: without a word if the client
// has gone, which also ends the wait for the disk.
func (a *api) failedRead(c *call, err error) answer {
	if c.r.Context().Err() != nil {
		return answer{abort: true}
	}
	a.o.Log.Error().Str("requestId", c.requestID).Err(err).Msg("read failed")
	return refuse(internalError())
}

// openSession hands the request over: a session answers by itself, and keeps
// the connection.
func (a *api) openSession(c *call) answer {
	a.o.Sessions.ServeHTTP(c.w, c.r)
	return answer{handedOver: true}
}
