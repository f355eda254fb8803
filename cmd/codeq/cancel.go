package main

import (
	"context"

	"codeq/client"
	"codeq/wire"
)

type cancelCmd struct {
	Thing string `arg:"" help:"Id of the task, or the queue whose tasks are cancelled."`
	State string `default:"waiting" enum:"waiting,ready,delayed,inProgress,open" help:"Of a queue: waiting, which is ready and delayed, one of these, inProgress, or open, which is all three."`
	taskFilter
}

// Run cancels one task, or those of a queue.
func (t *cancelCmd) Run(a *app) error {
	if id, ok := wire.ParseTaskID(t.Thing); ok {
		return a.withTask(func(ctx context.Context, c *client.Client) (*wire.Task, error) { return c.Cancel(ctx, id) })
	}
	q, err := t.query(t.Thing, t.State)
	if err != nil {
		return err
	}
	return a.workBulk(q, t.Limit, &bulkWords{what: "task", became: "are cancelled", would: "would be cancelled"}, (*client.Client).CancelTasks)
}
