package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"codeq/wire"
)

// FindQuery selects tasks in all queues: those that every field that is not empty selects.
type FindQuery struct {
	// ID is the id of a task as text.
	ID string
	// Labels are labels like customer=acme, all of which a task has.
	Labels []string
	// Command is the name of a queue, or like billing.* what the names of queues begin with.
	Command string
	// State is one of ready, delayed, inProgress, dlq and done.
	State string
	// ErrorPart and PayloadPart are texts that the error and the payload contain.
	ErrorPart   string
	PayloadPart string
	// Worker is the worker that has a task, or had it last.
	Worker string
	// OlderThan is how long ago a task was created, at least.
	OlderThan time.Duration
	// MinAttempts is the least number of failed attempts.
	MinAttempts int
	// Limit is the largest number of tasks on a page; 0 leaves it to the server.
	Limit int
	// Cursor is that of the page before, and empty for the first page.
	Cursor string
}

// FoundPage is a part of the tasks that were found.
type FoundPage struct {
	TaskPage
	// Scanned is the number of tasks that were looked at for this page.
	Scanned int
}

// Find reads one page of the tasks that a query selects. By ID and by Labels the server looks
// tasks up; otherwise it looks at a bounded number of tasks for each page, so a page may be
// empty and have a cursor. While other searches run, it refuses with wire.CodeRateLimited.
func (c *Client) Find(ctx context.Context, q FindQuery) (*FoundPage, error) {
	query := url.Values{"label": q.Labels}
	for name, value := range map[string]string{
		"id": q.ID, "command": q.Command, "state": q.State, "error~": q.ErrorPart, "payload~": q.PayloadPart,
		"worker": q.Worker, "cursor": q.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.OlderThan != 0 {
		query.Set("olderThan", q.OlderThan.String())
	}
	for name, n := range map[string]int{"attempts>": q.MinAttempts, "limit": q.Limit} {
		if n != 0 {
			query.Set(name, strconv.Itoa(n))
		}
	}
	path := apiPath + "/admin/tasks?" + query.Encode()
	return ask(ctx, c, call{method: http.MethodGet, path: path}, "a page of found tasks", func(body []byte) (page *FoundPage, err error) {
		page = &FoundPage{}
		page.Tasks, page.Scanned, page.Cursor, err = wire.ParseFoundPage(body)
		return page, err
	})
}
