package client

import (
	"context"
	"net/http"
	"net/url"

	"codeq/wire"
)

// Queue reads the figures and settings of one queue. A queue without tasks and settings
// is no error: its figures are zero and its field Unknown is true.
func (c *Client) Queue(ctx context.Context, command string) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{method: http.MethodGet, path: queuePath(command)})
}

// SetQueue replaces the settings of a queue; a setting that is zero gets the server's
// default. It does not pause or resume the queue. Spread can be set at any time. It can be
// cleared only while all tasks of the queue, ended ones too, lie on one shard; otherwise
// the error is a *wire.Error with the code queue_not_empty.
func (c *Client) SetQueue(ctx context.Context, command string, settings *wire.QueueSettings) (*wire.QueueFigures, error) {
	return c.queue(ctx, call{
		method: http.MethodPut, path: queuePath(command), body: wire.AppendQueueSettings(nil, settings),
		remedy: repeatable,
	})
}

// PauseQueue stops the delivery of the tasks of a queue until ResumeQueue, also after a
// restart of the server. Workers keep the tasks that they have.
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

// DeleteOptions say what DeleteQueue may remove besides the settings.
type DeleteOptions struct {
	// Purge removes the tasks of the queue, ended ones too. Without it the queue must have
	// none.
	Purge bool
	// CancelRunning cancels tasks in progress. Without it the queue must have none.
	CancelRunning bool
}

// DeleteAnswer says how far the deletion of a queue has come.
type DeleteAnswer struct {
	// Deleted: the queue is gone.
	Deleted bool
	// Remaining is the number of tasks, ended ones too, that are still to be removed.
	Remaining int64
}

// DeleteQueue deletes a queue with its settings, and with its tasks if o allows that.
// After the first answer without an error the server goes on by itself, also after a
// restart; call DeleteQueue again until Deleted is true. Until then the server refuses
// new tasks of the queue with the code queue_deleted.
//
// If there is no such queue, the error is a *wire.Error with the code queue_not_found. If
// it has tasks that o does not allow to remove, the code is queue_not_empty.
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
