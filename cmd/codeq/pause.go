package main

import (
	"context"

	"codeq/client"
	"codeq/wire"
)

type pauseCmd struct {
	Command string `arg:"" help:"Command of the queue."`
	times
	createFlag
}

// Run keeps the tasks of a queue from workers.
func (p *pauseCmd) Run(a *app) error {
	return a.onQueue(p.Command, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		if err := p.mayChange(ctx, c, p.Command); err != nil {
			return nil, err
		}
		return c.PauseQueue(ctx, p.Command)
	})
}

type resumeCmd struct {
	Command string `arg:"" help:"Command of the queue."`
	times
	createFlag
}

// Run ends a pause.
func (r *resumeCmd) Run(a *app) error {
	return a.onQueue(r.Command, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		if err := r.mayChange(ctx, c, r.Command); err != nil {
			return nil, err
		}
		return c.ResumeQueue(ctx, r.Command)
	})
}

// onQueue does something to a queue and shows what it is then, but with --quiet.
func (a *app) onQueue(command string, do func(context.Context, *client.Client) (*wire.QueueFigures, error)) error {
	return a.showQueue(command, do, !a.Quiet)
}

// showQueue asks for a queue and shows it to people if they want that.
func (a *app) showQueue(command string, do func(context.Context, *client.Client) (*wire.QueueFigures, error), wanted bool) error {
	if refusal := wire.CheckCommand(command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	queue, err := do(ctx, c)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeLine(a.answer)
	}
	if !wanted {
		return nil
	}
	return a.queueFields(queue).write(a)
}
