package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"codeq/wire"
)

// Replay gives a dead letter all its attempts back and returns the task as it
// is then. A task that is no dead letter is a *wire.Error with the code
// not_in_dlq.
func (c *Client) Replay(ctx context.Context, id wire.TaskID) (*TaskAnswer, error) {
	answer, err := c.do(ctx, call{method: http.MethodPost, path: apiPath + "/admin/tasks/" + id.String() + "/replay"})
	if err != nil {
		return nil, err
	}
	task, err := wire.ParseTask(answer.body)
	if err != nil {
		return nil, c.misunderstood("a replayed task", err)
	}
	return &TaskAnswer{Task: task, Raw: answer.body}, nil
}

// ReplayAnswer says how many dead letters were replayed and how many of the
// queue are left, and is the answer as it came.
type ReplayAnswer struct {
	Replayed  int64
	Remaining int64
	Raw       []byte
}

// ReplayQueue replays up to limit dead letters of a queue, 1 to 10,000, oldest
// first. A request that broke off may be repeated: it goes on where it stopped.
func (c *Client) ReplayQueue(ctx context.Context, command string, limit int) (*ReplayAnswer, error) {
	answer, err := c.do(ctx, call{
		method: http.MethodPost, path: queuePath(command) + "/dlq/replay",
		body: fmt.Appendf(nil, `{"limit":%d}`, limit), harmless: true,
	})
	if err != nil {
		return nil, err
	}
	said := &ReplayAnswer{Raw: answer.body}
	if err := json.Unmarshal(answer.body, said); err != nil {
		return nil, c.misunderstood("a replay", err)
	}
	return said, nil
}
