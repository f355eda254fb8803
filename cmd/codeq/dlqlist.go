package main

import (
	"cmp"
	"context"
	"slices"

	"codeq/client"
	"codeq/wire"
)

type dlqListCmd struct {
	Command string `arg:"" help:"Queue whose dead letters are listed."`
	tasksFilter
	deadCause
	History bool `help:"Show each dead letter with all its fields and its last deliveries."`
}

// Run lists the dead letters of a queue.
func (d *dlqListCmd) Run(a *app) error {
	if err := d.check(); err != nil {
		return err
	}
	show := a.deadTable
	if d.History {
		show = a.taskSheets
	}
	return a.listTasks(client.ListQuery{Command: d.Command, State: "dlq", Cause: d.Cause}, &d.tasksFilter, show)
}

func (a *app) deadTable(tasks []*wire.Task) error {
	rows := a.table(
		column{name: "TASK"}, column{name: "CAUSE"}, column{name: "FAILED", spare: 1}, column{name: "DELIVERIES", spare: 3},
		column{name: "WORKER", least: 10, spare: 2}, column{name: "DIED"}, column{name: "REASON", least: 12},
	)
	for _, t := range tasks {
		rows.row(t.ID, t.DeadCause, failedOf(t), t.Deliveries, lastWorker(t), a.moment(t.UpdatedAtMs), firstLine(t.Error))
	}
	return rows.write()
}

// lastWorker is the worker of the last delivery that failed.
func lastWorker(t *wire.Task) string {
	if t.WorkerID != "" || len(t.History) == 0 {
		return t.WorkerID
	}
	return t.History[len(t.History)-1].WorkerID
}

// taskSheets shows tasks one below the other.
func (a *app) taskSheets(tasks []*wire.Task) error {
	for i, t := range tasks {
		if i > 0 {
			if err := a.writeLine(nil); err != nil {
				return err
			}
		}
		if err := a.taskFields(t).write(a); err != nil {
			return err
		}
	}
	return nil
}

type dlqReasonsCmd struct {
	Command string `arg:"" help:"Queue whose dead letters are counted by reason."`
	deadCause
	Most int `least:"1" default:"100000" help:"Number of dead letters that are read, the newest first."`
	times
}

// Run shows why tasks of a queue are dead. In JSON each part of the answer is a
// line as it came.
func (d *dlqReasonsCmd) Run(a *app) error {
	if err := d.check(); err != nil {
		return err
	}
	if refusal := wire.CheckCommand(d.Command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	return a.ask(func(ctx context.Context, c *client.Client) error {
		all, err := a.allReasons(ctx, c, d)
		if err == nil && all.Read == 0 {
			err = knownQueue(ctx, c, d.Command)
		}
		switch {
		case err != nil, a.JSON:
			return err
		case len(all.Reasons) == 0:
			a.say("%s has no dead letters", d.Command)
			return nil
		}
		if all.Cursor != "" {
			defer a.say("these are the newest %d; --most reads more", all.Read)
		}
		return a.reasonTable(all.Reasons)
	})
}

// allReasons joins the parts of the answer.
func (a *app) allReasons(ctx context.Context, c *client.Client, d *dlqReasonsCmd) (*wire.DeadReasons, error) {
	all, at := &wire.DeadReasons{}, make(map[wire.DeadReason]int)
	for {
		part, err := c.DeadReasons(ctx, d.Command, d.Cause, int(min(int64(d.Most)-all.Read, wire.MaxEndedTasks)), all.Cursor)
		if err == nil && a.JSON {
			err = a.writeLine(a.answer)
		}
		if err != nil {
			return nil, err
		}
		for _, r := range part.Reasons {
			key := wire.DeadReason{Error: r.Error, Cause: r.Cause}
			i, known := at[key]
			if !known {
				at[key] = len(all.Reasons)
				all.Reasons = append(all.Reasons, r)
				continue
			}
			all.Reasons[i].Count += r.Count
		}
		all.Read, all.Cursor = all.Read+part.Read, part.Cursor
		if all.Cursor == "" || all.Read >= int64(d.Most) {
			slices.SortStableFunc(all.Reasons, func(x, y wire.DeadReason) int { return cmp.Compare(y.Count, x.Count) })
			return all, nil
		}
	}
}

func (a *app) reasonTable(reasons []wire.DeadReason) error {
	t := a.table(
		column{name: "COUNT"}, column{name: "CAUSE"}, column{name: "NEWEST", spare: 2}, column{name: "ITS TASK", spare: 3},
		column{name: "REASON", least: 24}, column{name: "EXAMPLE", least: 16, spare: 1},
	)
	for i := range reasons {
		r, example := &reasons[i], ""
		if r.Example != r.Error { // the reason is shortened
			example = r.Example
		}
		t.row(r.Count, r.Cause, a.moment(r.EndedAtMs), r.TaskID, firstLine(r.Error), firstLine(example))
	}
	return t.write()
}
