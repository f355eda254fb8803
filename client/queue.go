package client

import (
	"context"
	"net/http"
	"net/url"

	"codeq/wire"
)

// Queue reads the figures and settings of one queue. One without tasks and
// settings is no error: all of it is zero.
func (c *Client) Queue(ctx context.Context, command string) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{method: http.MethodGet, path: queuePath(command)})
}

// SetQueue replaces the settings of a queue; what is zero goes back to the
// server's default. Whether the queue is paused stays. Spread may be set at any
// time, and taken back only while no shard but the home of the queue holds a task
// of it, ended ones included; otherwise the error has the code queue_not_empty.
func (c *Client) SetQueue(ctx context.Context, command string, settings *wire.QueueSettings) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{
		method: http.MethodPut, path: queuePath(command), body: wire.AppendQueueSettings(nil, settings),
		remedy: repeatable,
	})
}

// PauseQueue keeps the tasks of a queue from workers until ResumeQueue, also
// over a restart of the server. What workers have in hand stays theirs.
func (c *Client) PauseQueue(ctx context.Context, command string) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{method: http.MethodPost, path: queuePath(command) + "/pause", remedy: repeatable})
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, command string) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{method: http.MethodPost, path: queuePath(command) + "/resume", remedy: repeatable})
}

func (c *Client) queue(ctx context.Context, in call) (*wire.QueueFigures, error) {
	return ask(ctx, c, in, "a queue", wire.ParseQueueFigures)
}

// DeleteOptions say what may be lost with a queue that is deleted. Without Purge the
// queue must have no task, ended ones included; without CancelRunning none in
// progress.
type DeleteOptions struct {
	Purge         bool
	CancelRunning bool
}

// DeleteAnswer says whether the queue is gone, or else how many tasks of it, ended
// ones too, are left to remove.
type DeleteAnswer struct {
	Deleted   bool
	Remaining int64
}

// DeleteQueue deletes a queue with its settings, and with its tasks if it may. From
// the first answer on that is no error, the server goes on with it alone, over
// restarts too; a task that is posted to it until it is gone is refused with the
// code queue_deleted. Ask again until Deleted is true. A queue that is not there is
// a *wire.Error with the code queue_not_found, one that has what may not be lost
// one with the code queue_not_empty.
func (c *Client) DeleteQueue(ctx context.Context, command string, o DeleteOptions) (*DeleteAnswer, error) {
	query := url.Values{}
	for name, value := range map[string]bool{"purge": o.Purge, "cancelRunning": o.CancelRunning} {
		if value {
			query.Set(name, "true")
		}
	}
	path := queuePath(command)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	in := call{method: http.MethodDelete, path: path, remedy: repeatable}
	return ask(ctx, c, in, "what became of a queue", decoded[DeleteAnswer])
}
