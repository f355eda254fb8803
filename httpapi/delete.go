package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"codeq/shardactor"
	"codeq/store"
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
		// Whoever was faster has begun the same.
		if refusal := a.change(q, shardactor.SettingsChange{Delete: d}); refusal != nil && refusal.Code != wire.CodeQueueDeleted {
			return refuse(refusal)
		}
	}
	return a.untilDeleted(c, q)
}

func (a *api) untilDeleted(c *call, q store.QueueKey) answer {
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
	left := figures.Ready + figures.Delayed + figures.InProgress + figures.Dead
	return answer{status: http.StatusOK, body: fmt.Appendf(nil, `{"deleted":false,"remaining":%d}`, left)}
}
