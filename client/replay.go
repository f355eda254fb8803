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
func (c *Client) Replay(ctx context.Context, id wire.TaskID) (*TaskAnswer, error) {
	answer, err := c.do(ctx, call{
		method: http.MethodPost, path: apiPath + "/admin/tasks/" + id.String() + "/replay",
		remedy: fmt.Sprintf("look with \"codeq task %v\" before it is done again", id),
	})
	if err != nil {
		return nil, err
	}
	task, err := wire.ParseTask(answer.body)
	if err != nil {
		return nil, answer.misunderstood("a replayed task", err)
	}
	return &TaskAnswer{Task: task, Raw: answer.body}, nil
}
