package client

import (
	"context"
	"fmt"
	"net/http"

	"codeq/wire"
)

// Replay gives a dead letter all its attempts back and returns the task after that. If the
// task is no dead letter, the error is a *wire.Error with the code not_in_dlq. If there
// was no answer, the error is ErrOutcomeUnknown.
func (c *Client) Replay(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "replay", nil)
}

// RunNow makes a delayed task ready before its time and returns the task after that. If
// the task is not delayed, the error is a *wire.Error with the code not_waiting. If there
// was no answer, the error is ErrOutcomeUnknown.
func (c *Client) RunNow(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "run", nil)
}

// Move gives a waiting task another priority, from 0 to 9, and returns the task after
// that. If the task does not wait, the error is a *wire.Error with the code not_waiting.
// If there was no answer, the error is ErrOutcomeUnknown.
func (c *Client) Move(ctx context.Context, id wire.TaskID, toPriority int) (*wire.Task, error) {
	return c.manage(ctx, id, "move", fmt.Appendf(nil, `{"toPriority":%d}`, toPriority))
}

// TakeBack takes a task in progress from its worker and returns the task, which is ready
// again. If the task is not in progress, the error is a *wire.Error with the code
// not_in_progress. If there was no answer, the error is ErrOutcomeUnknown.
func (c *Client) TakeBack(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	return c.manage(ctx, id, "take-back", nil)
}

// manage sends one request of an admin about one task.
func (c *Client) manage(ctx context.Context, id wire.TaskID, verb string, body []byte) (*wire.Task, error) {
	in := call{
		method: http.MethodPost, path: apiPath + "/admin/tasks/" + id.String() + "/" + verb, body: body,
		remedy: fmt.Sprintf("look with \"codeq task %v\" before it is done again", id),
	}
	return ask(ctx, c, in, "a task", wire.ParseTask)
}
