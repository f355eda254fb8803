package client

import (
	"context"
	"net/http"

	"codeq/wire"
)

// QueueAnswer is the figures and settings of one queue, and the answer as it
// came.
type QueueAnswer struct {
	Queue *wire.QueueFigures
	Raw   []byte
}

// Queue reads the figures and settings of one queue. One without tasks and
// settings is no error: all of it is zero.
func (c *Client) Queue(ctx context.Context, command string) (*QueueAnswer, error) {
	return c.queue(ctx, call{method: http.MethodGet, path: queuePath(command)})
}

// SetQueue replaces the settings of a queue; what is zero goes back to the
// server's default. Whether the queue is paused stays. Spread may be set at any
// time, and taken back only while no shard but the home of the queue holds a task
// of it, ended ones included; otherwise the error has the code queue_not_empty.
func (c *Client) SetQueue(ctx context.Context, command string, settings *wire.QueueSettings) (*QueueAnswer, error) {
	return c.queue(ctx, call{
		method: http.MethodPut, path: queuePath(command), body: wire.AppendQueueSettings(nil, settings),
		remedy: repeatable,
	})
}

// PauseQueue keeps the tasks of a queue from workers until ResumeQueue, also
// over a restart of the server. What workers have in hand stays theirs.
func (c *Client) PauseQueue(ctx context.Context, command string) (*QueueAnswer, error) {
	return c.queue(ctx, call{method: http.MethodPost, path: queuePath(command) + "/pause", remedy: repeatable})
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, command string) (*QueueAnswer, error) {
	return c.queue(ctx, call{method: http.MethodPost, path: queuePath(command) + "/resume", remedy: repeatable})
}

func (c *Client) queue(ctx context.Context, in call) (*QueueAnswer, error) {
	answer, err := c.do(ctx, in)
	if err != nil {
		return nil, err
	}
	figures, err := wire.ParseQueueFigures(answer.body)
	if err != nil {
		return nil, answer.misunderstood("a queue", err)
	}
	return &QueueAnswer{Queue: figures, Raw: answer.body}, nil
}
