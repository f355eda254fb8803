package main

import "codeq/client"

type cancelCmd struct {
	Thing string `arg:"" help:"Id of a task, or the queue whose tasks are cancelled."`
	State string `default:"waiting" enum:"waiting,ready,delayed,inProgress,open" help:"State of the tasks of a queue: ready, delayed, inProgress, waiting (ready or delayed) or open (all three)."`
	taskFilter
}

// Run cancels one task, or those of a queue.
func (t *cancelCmd) Run(a *app) error {
	return a.workOn(t.Thing, t.Limit, func() (client.BulkQuery, error) { return t.query(t.Thing, t.State) }, &bulkVerb{
		what: "task", became: "are cancelled", would: "would be cancelled",
		one: (*client.Client).Cancel, many: (*client.Client).CancelTasks,
	})
}
