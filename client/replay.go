package client

import (
	"context"
	"fmt"
	"net/http"

	"codeq/wire"
)

// Replay gives a dead letter all its attempts back and returns the task as it
// is then. A task that is no dead letter is a *wire.Error with the code
// not_in_dlq; without an answer the error is ErrOutcomeUnknown.
func (c *Client) Replay(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "replay", nil)
}

// RunNow makes a delayed task ready before its time and returns it as it is then. A
// task that is not delayed is a *wire.Error with the code not_waiting; without an
// answer the error is ErrOutcomeUnknown.
func (c *Client) RunNow(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "run", nil)
}

// Move gives a waiting task another priority and returns it as it is then. A task
// that does not wait is a *wire.Error with the code not_waiting; without an answer
// the error is ErrOutcomeUnknown.
func (c *Client) Move(ctx context.Context, id wire.TaskID, toPriority int) (*wire.Task, error) {
	return c.manage(ctx, id, "move", fmt.Appendf(nil, `{"toPriority":%d}`, toPriority))
}

// manage does what an admin may do with one task.
func (c *Client) manage(ctx context.Context, id wire.TaskID, verb string, body []byte) (*wire.Task, error) {
	in := call{
		method: http.MethodPost, path: apiPath + "/admin/tasks/" + id.String() + "/" + verb, body: body,
		remedy: fmt.Sprintf("look with \"codeq task %v\" before it is done again", id),
	}
	return ask(ctx, c, in, "a task", wire.ParseTask)
}
