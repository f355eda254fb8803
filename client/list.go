package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"codeq/wire"
)

// ListQuery selects tasks of a queue. Command and State are required. Every other filter
// that is not empty leaves tasks out.
type ListQuery struct {
	Command string
	// State is one of ready, delayed, inProgress, dlq and done.
	State string
	// Status selects tasks with this status.
	Status wire.Status
	// Worker selects tasks that this worker has, or had last.
	Worker string
	// ErrorPart selects tasks whose error contains this text.
	ErrorPart string
	// Cause selects dead letters with this cause, as in a BulkQuery.
	Cause string
	// Limit is the largest number of tasks on a page; 0 leaves it to the server.
	Limit int
	// Cursor is that of the page before, and empty for the first page.
	Cursor string
}

// TaskPage is a part of a list of tasks.
type TaskPage struct {
	Tasks []*wire.Task
	// Cursor asks for the next page, which may be empty and have a cursor itself: a
	// filter looks at a bounded number of tasks at a time. It is "" on the last page.
	Cursor string
}

// Tasks reads one page of the tasks of a queue, in the order of the queue; tasks that have
// ended come newest first.
func (c *Client) Tasks(ctx context.Context, q ListQuery) (*TaskPage, error) {
	query := url.Values{"state": {q.State}}
	for name, value := range map[string]string{
		"status": string(q.Status), "worker": q.Worker, "error": q.ErrorPart, "cause": q.Cause, "cursor": q.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	path := queuePath(q.Command) + "/tasks?" + query.Encode()
	return ask(ctx, c, call{method: http.MethodGet, path: path}, "a list of tasks", func(body []byte) (page *TaskPage, err error) {
		page = &TaskPage{}
		page.Tasks, page.Cursor, err = wire.ParseTaskPage(body)
		return page, err
	})
}

// queuePath is the path of the routes of one queue.
func queuePath(command string) string {
	return apiPath + "/admin/queues/" + url.PathEscape(command)
}
