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
	State   string `choice:"ready,delayed,inProgress,dlq,done" help:"State: ready, delayed, inProgress, dlq or done. Without it and --status: ready."`
	tasksFilter
	Status string `choice:"PENDING,IN_PROGRESS,COMPLETED,FAILED,CANCELLED" help:"Only tasks with this status: PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED. Without --state it also selects the state."`
}

// tasksFilter is what every list of tasks takes.
type tasksFilter struct {
	Worker    string `placeholder:"NAME" help:"Only tasks whose worker, now or last, has this name."`
	ErrorPart string `name:"error" placeholder:"TEXT" help:"Only tasks whose error contains this text."`
	Limit     int    `short:"n" least:"1" default:"20" help:"Number of tasks that are shown. With -q and without it: all."`
	All       bool   `help:"Show all tasks."`
	Cursor    string `help:"Continue a list where it ended."`
	times
}

// statesOf are the states in which a task of a status may be; the first is listed where
// none is given.
var statesOf = map[wire.Status][]string{
	wire.StatusPending: {"ready", "delayed"}, wire.StatusInProgress: {"inProgress"}, wire.StatusFailed: {"dlq"},
	wire.StatusCompleted: {"done"}, wire.StatusCancelled: {"done"},
}

// Run lists tasks of a queue.
func (t *tasksCmd) Run(a *app) error {
	status := wire.Status(t.Status)
	states := statesOf[status]
	switch {
	case t.State != "" && tasksOf[t.State] == "":
		return wrong("--state must be ready, delayed, inProgress, dlq or done, got %.40q", t.State)
	case status == "":
		states = []string{"ready"}
	case states == nil:
		return wrong("--status must be PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED, got %.40q", t.Status)
	case t.State != "" && !slices.Contains(states, t.State):
		return wrong("no task in --state %s is %s: leave --state out, or give --state %s", t.State, status, strings.Join(states, " or "))
	}
	q := client.ListQuery{Command: t.Command, State: cmp.Or(t.State, states[0]), Status: status}
	return a.listTasks(q, &t.tasksFilter, a.taskTable)
}

// tasksOf says what the tasks of a state are, in words.
var tasksOf = map[string]string{
	"ready": "ready tasks", "delayed": "delayed tasks", "inProgress": "tasks in progress", "dlq": "dead letters", "done": "tasks that have ended",
}

// orOneTask is a hint for a name that is the id of a task, empty for another. A queue may
// have such a name, so the hint is for one that nobody has used.
func orOneTask(command string) string {
	if _, ok := wire.ParseTaskID(command); !ok {
		return ""
	}
	return "; \"codeq task " + command + "\" shows the task of this id"
}

// listTasks shows the tasks that the filter selects, up to its limit, and how to see more.
func (a *app) listTasks(q client.ListQuery, f *tasksFilter, show func([]*wire.Task) error) error {
	most, err := f.most(a)
	if err != nil {
		return err
	}
	q.Worker, q.ErrorPart, q.Cursor = f.Worker, f.ErrorPart, f.Cursor
	return a.ask(func(ctx context.Context, c *client.Client) error {
		tasks, cursor, err := a.collect(ctx, c, q, most)
		switch {
		case err != nil, a.JSON, a.Quiet:
		case len(tasks) == 0:
			matching := ""
			if q.Worker+q.ErrorPart+q.Cause+string(q.Status) != "" {
				matching = " that match"
			}
			a.say("%s has no %s%s", printable(q.Command), tasksOf[q.State], matching)
		default:
			err = show(tasks)
		}
		if cursor != "" && !a.JSON {
			a.say("there are more: --all shows all, --cursor %s continues", cursor)
		}
		return err
	})
}

// collect reads pages until there are enough tasks. With --json it writes each page as
// it came, in a line of its own, and with --quiet its ids, and keeps none.
func (a *app) collect(ctx context.Context, c *client.Client, q client.ListQuery, most int) ([]*wire.Task, string, error) {
	var tasks []*wire.Task
	for found := 0; ; {
		q.Limit = min(most, wire.MaxListTasks)
		page, err := c.Tasks(ctx, q)
		switch {
		case err != nil:
		case a.JSON:
			err = a.writeLine(a.answer)
		case a.Quiet:
			err = a.writeIDs(page.Tasks)
		default:
			tasks = append(tasks, page.Tasks...)
		}
		if err != nil {
			return nil, "", err
		}
		found, most, q.Cursor = found+len(page.Tasks), most-len(page.Tasks), page.Cursor
		if q.Cursor == "" && found == 0 {
			return nil, "", knownQueue(ctx, c, q.Command)
		}
		if q.Cursor == "" || most <= 0 {
			return tasks, q.Cursor, nil
		}
	}
}

// taskTable prints a list of tasks. Delayed tasks have the column DUE, tasks in progress the
// column LEASE ENDS.
func (a *app) taskTable(tasks []*wire.Task) error { return a.taskRows(tasks, false) }

// taskRows is taskTable, with the column QUEUE if the tasks may be of several queues.
func (a *app) taskRows(tasks []*wire.Task, queues bool) error {
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
	if queues {
		columns = slices.Insert(columns, 1, column{name: "QUEUE", least: 8})
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
		if queues {
			cells = slices.Insert(cells, 1, any(t.Command))
		}
		if delayed {
			cells = append(cells, a.moment(t.VisibleAtMs))
		}
		if leased {
			cells = append(cells, a.moment(t.LeaseUntilMs))
		}
		rows.row(append(cells, a.moment(t.UpdatedAtMs), wire.FirstLine(t.Error))...)
	}
	return rows.write()
}

// failedOf says how many executions of a task have failed, of how many that may.
func failedOf(t *wire.Task) string { return fmt.Sprintf("%d of %d", t.Attempts, t.MaxAttempts) }
