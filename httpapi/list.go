package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const (
	// listDefault is how many tasks a page has when nothing is asked for.
	listDefault = 100
	// listMostRead is how many records are looked at for one page, listMostBytes
	// how many bytes of payloads and errors are on it, but for its last task. In
	// JSON, where the worst of them grows sixfold, that is still an answer that
	// clients read whole.
	listMostRead  = 5000
	listMostBytes = 2 << 20
)

// listStates are the states by their names in a query.
var listStates = map[string]store.ListState{
	"ready": store.ListReady, "delayed": store.ListDelayed, "inProgress": store.ListInProgress,
	"dlq": store.ListDead, "done": store.ListDone,
}

// getTasks lists the tasks of one queue of the caller's tenant in one state, a
// page at a time.
func (a *api) getTasks(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	query, refusal := c.listQuery(q)
	if refusal != nil {
		return refuse(refusal)
	}
	if cursor := c.query.Get("cursor"); cursor != "" {
		if query.After, refusal = decodeCursor(cursor, query.Queue, query.State); refusal != nil {
			return refuse(refusal)
		}
	}
	page, err := a.o.Store.ListTasks(query)
	if errors.Is(err, store.ErrListPlace) {
		return refuse(badCursor())
	}
	if err == nil {
		err = a.allDurable(c)
	}
	if err != nil {
		return a.failedRead(c, err)
	}
	a.lend(c, page.Tasks...)
	body := append([]byte(nil), `{"tasks":[`...)
	body = append(appendTasks(body, page.Tasks), ']')
	if page.More {
		body = appendCursorMember(body, query.Queue, query.State, page.Places)
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// appendTasks appends tasks with commas between them.
func appendTasks(body []byte, tasks []*wire.Task) []byte {
	for i, task := range tasks {
		if i > 0 {
			body = append(body, ',')
		}
		body = wire.AppendTask(body, task, wire.PayloadAsString)
	}
	return body
}

// allDurable waits until what was read of any shard is on disk.
func (a *api) allDurable(c *call) error {
	for shard := range a.o.Store.Shards() {
		if err := a.o.Store.WaitDurable(c.r.Context(), shard); err != nil {
			return err
		}
	}
	return nil
}

// listQuery reads the parameters but for the cursor, which is read when the list
// is known that it must be of.
func (c *call) listQuery(q record.QueueKey) (*store.ListQuery, *wire.Error) {
	state, known := listStates[c.query.Get("state")]
	if !known {
		return nil, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(
			"state is required: ready, delayed, inProgress, dlq or done, got %.40q", c.query.Get("state")))
	}
	status := wire.Status(c.query.Get("status"))
	switch status {
	case "", wire.StatusPending, wire.StatusInProgress, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled:
	default:
		return nil, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(
			"status must be PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED, got %.40q", string(status)))
	}
	limit, refusal := c.limit(listDefault, wire.MaxListTasks)
	if refusal != nil {
		return nil, refusal
	}
	causes, refusal := c.causes()
	if refusal == nil && causes != 0 && state != store.ListDead {
		refusal = wire.Refuse(wire.CodeInvalidArgument, "cause is for state=dlq alone: no other task has one")
	}
	if refusal != nil {
		return nil, refusal
	}
	return &store.ListQuery{
		Queue: q, State: state, Limit: limit, MostRead: listMostRead, MostBytes: listMostBytes,
		Filter: store.ListFilter{
			Status: status, Causes: causes, TaskFilter: wire.TaskFilter{Worker: c.query.Get("worker"), ErrorPart: c.query.Get("error")},
		},
	}, nil
}
