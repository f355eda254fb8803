package main

import (
	"context"
	"fmt"

	"codeq/client"
	"codeq/wire"
)

type taskRunCmd struct {
	Thing string `arg:"" help:"Id of a task, or the queue whose delayed tasks become ready."`
	taskFilter
}

// Help is the longer text of "codeq task run --help".
func (t *taskRunCmd) Help() string {
	return `A task that waits for a time, or for its next attempt, becomes ready at once, at the end of its priority.`
}

// Run makes one delayed task ready, or those of a queue.
func (t *taskRunCmd) Run(a *app) error {
	return a.workOn(t.Thing, t.Limit, func() (client.BulkQuery, error) { return t.query(t.Thing, "") }, &bulkVerb{
		what: "delayed task", became: "are ready", would: "would be ready",
		one: (*client.Client).RunNow, many: (*client.Client).RunTasksNow,
	})
}

type taskMoveCmd struct {
	Thing string `arg:"" help:"Id of a task, or the queue whose waiting tasks get the priority."`
	To    int    `required:"" least:"0" most:"9" placeholder:"PRIORITY" help:"The new priority, from 0 to 9; 9 goes first."`
	State string `default:"waiting" enum:"waiting,ready,delayed" help:"State of the tasks of a queue: ready, delayed, or waiting (both)."`
	taskFilter
}

// Help is the longer text of "codeq task move --help".
func (t *taskMoveCmd) Help() string {
	return `The tasks keep the order in which they became ready, also among the tasks that have the priority already.`
}

// Run gives one waiting task another priority, or those of a queue.
func (t *taskMoveCmd) Run(a *app) error {
	return a.workOn(t.Thing, t.Limit, func() (client.BulkQuery, error) { return t.query(t.Thing, t.State) }, &bulkVerb{
		what: "waiting task", became: fmt.Sprintf("have priority %d", t.To), would: fmt.Sprintf("would get priority %d", t.To),
		one: func(c *client.Client, ctx context.Context, id wire.TaskID) (*wire.Task, error) {
			return c.Move(ctx, id, t.To)
		},
		many: func(c *client.Client, ctx context.Context, q client.BulkQuery) (*client.BulkAnswer, error) {
			return c.MoveTasks(ctx, q, t.To)
		},
	})
}
