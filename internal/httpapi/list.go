package httpapi

import (
	"fmt"

	"codeq/store"
	"codeq/wire"
)

const (
	// listDefault is how many tasks a page has without a limit in the request.
	listDefault = 100
	// listMostRead bounds the records that are read for one page, listMostBytes the bytes of
	// payloads and errors on it but for its last task. JSON makes them six times as large at
	// most, which clients still read whole.
	listMostRead  = 5000
	listMostBytes = 2 << 20
)

// tasksQuery are the parameters of getTasks.
var tasksQuery = []string{"state", "limit", "cursor", "status", "worker", "error", "cause"}

// listStates are the states by their names in a query.
var listStates = map[string]store.ListState{
	"ready": store.ListReady, "delayed": store.ListDelayed, "inProgress": store.ListInProgress,
	"dlq": store.ListDead, "done": store.ListDone,
}

// getTasks lists the tasks of one queue in one state, a page at a time.
func (a *api) getTasks(c *call) answer {
	query, refusal := c.listQuery()
	if refusal != nil {
		return refuse(refusal)
	}
	if cursor := c.query.Get("cursor"); cursor != "" {
		if query.After, refusal = decodeCursor(cursor, query.Queue, query.State); refusal != nil {
			return refuse(refusal)
		}
	}
	page, err := a.listTasks(c, query)
	if err != nil {
		return a.failedRead(c, err)
	}
	body := append(c.appendTasks([]byte(`{"tasks":[`), page.Tasks), ']')
	return okay(append(appendCursorMember(body, encodeCursor(query.Queue, query.State, page.Places)), '}'))
}

// listTasks reads a page that is on disk, with the leases of its tasks.
func (a *api) listTasks(c *call, query *store.ListQuery) (*store.ListPage, error) {
	page, err := a.o.Store.ListTasks(query)
	if err = a.durable(c, err); err != nil {
		return nil, err
	}
	a.addLeases(c, page.Tasks...)
	return page, nil
}

// listQuery reads all parameters but the cursor, whose check needs the state.
func (c *call) listQuery() (*store.ListQuery, *wire.Error) {
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
	limit, refusal := c.integer("limit", listDefault, 1, wire.MaxListTasks)
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
		Queue: c.queue, State: state, Limit: limit, MostRead: listMostRead, MostBytes: listMostBytes,
		Filter: store.ListFilter{
			Status: status, Causes: causes, TaskFilter: wire.TaskFilter{Worker: c.query.Get("worker"), ErrorPart: c.query.Get("error")},
		},
	}, nil
}
