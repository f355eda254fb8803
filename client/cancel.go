package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"codeq/wire"
)

// Cancel ends a task that has not ended yet and returns it; the server tells the worker
// that has it. To cancel a task twice is no error. If the task ended otherwise, the error
// is a *wire.Error with the code already_terminal and with that task in it. If there was
// no answer, the error is ErrOutcomeUnknown; the cancel can be sent again.
func (c *Client) Cancel(ctx context.Context, id wire.TaskID) (*wire.Task, error) {
	in := call{method: http.MethodPost, path: apiPath + "/tasks/" + id.String() + "/cancel", remedy: repeatable}
	return ask(ctx, c, in, "a cancelled task", wire.ParseTask)
}

// Cancel is Client.Cancel over this session. It returns nil when the end of the task is
// on the server's disk, also if the task was cancelled before. If the task ended
// otherwise, the error is a *wire.Error with the code already_terminal and the status of
// the task. After a lost connection the session repeats the cancel. After an error that
// is no *wire.Error the task may or may not be cancelled.
func (s *Session) Cancel(ctx context.Context, id wire.TaskID) error {
	_, err := s.wait(ctx, &posting{cancel: id})
	var refusal *wire.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return fmt.Errorf("cancel task %v: %w", id, err)
}
