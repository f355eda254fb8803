package main

import (
	"context"

	"codeq/client"
	"codeq/wire"
)

// queueFlags are those of a command that changes a queue.
type queueFlags struct {
	Command string `arg:"" help:"Name of the queue."`
	times
	createFlag
}

type pauseCmd struct{ queueFlags }

// Run keeps the tasks of a queue from workers.
func (p *pauseCmd) Run(a *app) error { return p.apply(a, (*client.Client).PauseQueue) }

type resumeCmd struct{ queueFlags }

// Run ends a pause.
func (r *resumeCmd) Run(a *app) error { return r.apply(a, (*client.Client).ResumeQueue) }

// apply changes the queue and shows it, but not with --quiet.
func (f *queueFlags) apply(a *app, change func(*client.Client, context.Context, string) (*wire.QueueFigures, error)) error {
	return a.showQueue(f.Command, !a.Quiet, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		if _, err := f.known(ctx, c, f.Command); err != nil {
			return nil, err
		}
		return change(c, ctx, f.Command)
	})
}

// showQueue shows the queue that do returns, to people only if they want that.
func (a *app) showQueue(command string, wanted bool, do func(context.Context, *client.Client) (*wire.QueueFigures, error)) error {
	if refusal := wire.CheckCommand(command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	return show(a, do, func(queue *wire.QueueFigures) error {
		if !wanted {
			return nil
		}
		return a.queueFields(queue).write(a)
	})
}
