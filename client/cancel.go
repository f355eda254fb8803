package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"codeq/wire"
)

// Cancel ends a task that has not ended yet, wherever it is; the worker that
// has it is told. It returns the task as it is then; a task that was cancelled
// before is no error. A task that ended otherwise is a *wire.Error with the
// code already_terminal and that task in it. Without an answer the error is
// ErrOutcomeUnknown; cancelling twice does no harm.
func (c *Client) Cancel(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	in := call{method: http.MethodPost, path: apiPath + "/tasks/" + id.String() + "/cancel", remedy: repeatable}
	return ask(ctx, c, in, "a cancelled task", wire.ParseTask)
}

// Cancel is Client.Cancel over this session. It returns when the end of the
// task is on the server's disk, with nil also if the task was cancelled before;
// one that ended otherwise is a *wire.Error with the code already_terminal and
// the status of the task. After a lost connection the cancel is repeated. An
// error that is no *wire.Error leaves open whether the task was cancelled.
func (s *Session) Cancel(ctx context.Context, id wire.TaskID) error {
	_, err := s.wait(ctx, &posting{cancel: id})
	var refusal *wire.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return fmt.Errorf("cancel task %v: %w", id, err)
}
