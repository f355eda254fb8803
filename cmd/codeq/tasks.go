package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"codeq/client"
	"codeq/wire"
)

type tasksCmd struct {
	Command string `arg:"" help:"Queue whose tasks are listed."`
	State   string `default:"ready" enum:"ready,delayed,inProgress,dlq,done" help:"ready, delayed, inProgress, dlq or done."`
	tasksFilter
	Status string `choice:"PENDING,IN_PROGRESS,COMPLETED,FAILED,CANCELLED" help:"Only those with this status: PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED."`
}

// tasksFilter is what every list of tasks takes.
type tasksFilter struct {
	Worker    string `placeholder:"NAME" help:"Only those that this worker has, or had last."`
	ErrorPart string `name:"error" placeholder:"TEXT" help:"Only those whose error contains this text."`
	Limit     int    `short:"n" default:"20" help:"How many to show."`
	Cursor    string `help:"Go on where a list before has ended."`
	times
}

// Run lists tasks of a queue.
func (t *tasksCmd) Run(a *app) error {
	status := wire.Status(strings.ToUpper(t.Status))
	switch status {
	case "", wire.StatusPending, wire.StatusInProgress, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled:
	default:
		return wrong("--status must be PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED, got %.40q", t.Status)
	}
	return a.listTasks(client.ListQuery{Command: t.Command, State: t.State, Status: status}, &t.tasksFilter, a.taskTable)
}

// placesOf says what the tasks of a state are, in words.
var placesOf = map[string]string{
	"ready": "the ready ones", "delayed": "the delayed ones", "inProgress": "those in progress",
	"dlq": "the dead letters", "done": "those that have ended",
}

// orOneTask is a hint for somebody who named a task where a queue is meant, empty
// for everybody else. A queue may have such a name, so it is no mistake before
// nothing was found.
func orOneTask(command string) string {
	if _, ok := wire.ParseTaskID(command); !ok {
		return ""
	}
	return "; \"codeq task " + command + "\" shows the task of this id"
}

// listTasks shows as many tasks as were asked for, over as many pages as that
// takes, and how to see more.
func (a *app) listTasks(q client.ListQuery, f *tasksFilter, show func([]*wire.Task) error) error {
	if f.Limit < 1 {
		return wrong("--limit must be at least 1, got %d", f.Limit)
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	q.Worker, q.ErrorPart, q.Cursor = f.Worker, f.ErrorPart, f.Cursor
	tasks, cursor, err := a.collect(ctx, c, q, f.Limit)
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
	case a.Quiet:
		for _, t := range tasks {
			err = cmp.Or(err, a.writeLine(t.ID.AppendTo(nil)))
		}
	case len(tasks) == 0:
		a.say("no such task among %s of %s%s", placesOf[q.State], printable(q.Command), orOneTask(q.Command))
	default:
		err = show(tasks)
	}
	if cursor != "" && !a.JSON {
		a.say("there are more: --cursor %s goes on", cursor)
	}
	return err
}

// collect reads pages until there are enough tasks. With --json it writes each
// page as it came, in a line of its own.
func (a *app) collect(ctx context.Context, c *client.Client, q client.ListQuery, limit int) ([]*wire.Task, string, error) {
	var tasks []*wire.Task
	for {
		q.Limit = min(limit-len(tasks), wire.MaxListTasks)
		page, err := c.Tasks(ctx, q)
		if err != nil {
			return nil, "", err
		}
		if a.JSON {
			if err := a.writeLine(page.Raw); err != nil {
				return nil, "", err
			}
		}
		tasks, q.Cursor = append(tasks, page.Tasks...), page.Cursor
		if q.Cursor == "" || len(tasks) >= limit {
			return tasks, q.Cursor, nil
		}
	}
}

// taskTable is a list of tasks. What they wait for has a column in place of what their
// state says anyway.
func (a *app) taskTable(tasks []*wire.Task) error {
	delayed := slices.ContainsFunc(tasks, func(t *wire.Task) bool { return t.Location == wire.LocationDelayed })
	leased := slices.ContainsFunc(tasks, func(t *wire.Task) bool { return t.LeaseUntilMs != 0 })
	status, updated := column{name: "STATUS", state: true}, column{name: "UPDATED"}
	if delayed || leased {
		status.spare, updated.spare = 6, 5
	}
	columns := []column{
		{name: "TASK"}, status, {name: "PRIORITY", spare: 3}, {name: "FAILED", spare: 1},
		{name: "DELIVERIES", spare: 4}, {name: "WORKER", least: 10, spare: 2},
	}
	if delayed {
		columns = append(columns, column{name: "DUE"})
	}
	if leased {
		columns = append(columns, column{name: "LEASE ENDS"})
	}
	rows := a.table(append(columns, updated, column{name: "ERROR", least: 12})...)
	for _, t := range tasks {
		cells := []any{t.ID, t.Status, t.Priority, failedOf(t), t.Deliveries, t.WorkerID}
		if delayed {
			cells = append(cells, a.moment(t.VisibleAtMs))
		}
		if leased {
			cells = append(cells, a.moment(t.LeaseUntilMs))
		}
		rows.row(append(cells, a.moment(t.UpdatedAtMs), firstLine(t.Error))...)
	}
	return rows.write()
}

// failedOf says how many executions of a task have failed, of how many that may.
func failedOf(t *wire.Task) string { return fmt.Sprintf("%d of %d", t.Attempts, t.MaxAttempts) }
