package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"codeq/wire"
)

// ListQuery says which tasks of a queue are wanted. Command and State are
// required, State is one of ready, delayed, inProgress, dlq and done.
type ListQuery struct {
	Command string
	State   string
	// Status, Worker and ErrorPart leave out tasks with another status, of
	// another worker, and those whose error does not contain the text, Cause dead
	// letters that died of another one; see BulkQuery. Empty leaves out none.
	Status    wire.Status
	Worker    string
	ErrorPart string
	Cause     string
	// Limit is the most tasks on a page, 0 for what the server likes.
	Limit int
	// Cursor is the one of the page before, empty for the first.
	Cursor string
}

// TaskPage is a part of a list of tasks.
type TaskPage struct {
	Tasks []*wire.Task
	// Cursor asks for the next page, which may be empty and have a cursor itself: a
	// filter looks at a bounded number of tasks at a time. It is "" on the last page.
	Cursor string
}

// Tasks reads one page of the tasks of a queue, in the order of the queue, or
// newest first those that have ended.
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

// queuePath is where a queue is administered.
func queuePath(command string) string {
	return apiPath + "/admin/queues/" + url.PathEscape(command)
}
