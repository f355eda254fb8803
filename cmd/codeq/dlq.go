package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"codeq/client"
	"codeq/wire"
)

type dlqCmd struct {
	List    dlqListCmd    `cmd:"" eg:"codeq dlq list mail --cause failed" help:"List dead letters, the newest first."`
	Reasons dlqReasonsCmd `cmd:"" eg:"codeq dlq reasons mail" help:"Count the dead letters of a queue by reason, the most frequent first."`
	Replay  dlqReplayCmd  `cmd:"" eg:"codeq dlq replay mail --error timeout --limit 100" help:"Start dead letters again with all their attempts."`
	Purge   dlqPurgeCmd   `cmd:"" eg:"codeq dlq purge mail --older-than 30d" help:"Delete dead letters for good."`
}

// deadFilter selects dead letters.
type deadFilter struct {
	bulkFilter
	OlderThan time.Duration `help:"Only dead letters that are at least this old, like 36h or 7d."`
	deadCause
}

// deadCause selects dead letters by their cause.
type deadCause struct {
	Cause string `choice:"exhausted,released_too_often,failed,all" help:"Only dead letters with this cause: exhausted, released_too_often, failed, or all."`
}

func (d *deadCause) check() error {
	if d.Cause == "" {
		return nil
	}
	if _, refusal := wire.ParseDeadCauses(d.Cause); refusal != nil {
		return wrong("--%s", refusal.Sentence)
	}
	return nil
}

func (f *deadFilter) query(command string) (client.BulkQuery, error) {
	q := client.BulkQuery{Command: command, Cause: f.Cause}
	if err := f.into(&q); err != nil {
		return q, err
	}
	if err := f.check(); err != nil {
		return q, err
	}
	if f.OlderThan > 0 {
		q.Before = time.Now().Add(-f.OlderThan)
	}
	return q, nil
}

type dlqReplayCmd struct {
	Command string `arg:"" help:"Queue whose dead letters are replayed, or the id of one."`
	deadFilter
}

// Help is the longer text of "codeq dlq replay --help".
func (d *dlqReplayCmd) Help() string {
	return `They become ready at the end of their queue, the oldest first. Dead letters that a worker ended FAILED stay, because they would most likely fail again. "--cause failed" or "--cause all" replays them, too, and so does the id of one. "codeq dlq list COMMAND" shows the dead letters, "codeq dlq reasons COMMAND" why they failed.`
}

// Run replays one dead letter, or those of a queue.
func (d *dlqReplayCmd) Run(a *app) error {
	return a.workOn(d.Command, d.Limit, func() (client.BulkQuery, error) { return d.query(d.Command) }, &bulkVerb{
		what: deadLetter, became: "are ready again", would: "would be ready again", leavesFailed: true,
		one: (*client.Client).Replay, many: (*client.Client).ReplayTasks,
	})
}

type dlqPurgeCmd struct {
	Command string `arg:"" help:"Queue whose dead letters are deleted."`
	deadFilter
}

// Help is the longer text of "codeq dlq purge --help".
func (d *dlqPurgeCmd) Help() string {
	return `The oldest are deleted first. Nothing of them is kept: no record, no result, and their idempotency keys make new tasks.`
}

// Run removes dead letters of a queue.
func (d *dlqPurgeCmd) Run(a *app) error {
	return a.workOn(d.Command, d.Limit, func() (client.BulkQuery, error) { return d.query(d.Command) }, &bulkVerb{
		what: deadLetter, became: "are gone", would: "would be gone", many: (*client.Client).PurgeTasks,
	})
}

// deadLetter is the word for what replay and purge change.
const deadLetter = "dead letter"

// failedLeft tells how many dead letters were left because --cause did not name theirs.
func (w *bulkWork) failedLeft(answer *client.BulkAnswer) string {
	if !w.leavesFailed || w.query.Cause != "" || answer.RemainingFailed == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of them ended FAILED by their worker, --cause failed replays those", answer.RemainingFailed)
}

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
		rows.row(t.ID, t.DeadCause, failedOf(t), t.Deliveries, lastWorker(t), a.moment(t.UpdatedAtMs), wire.FirstLine(t.Error))
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
		t.row(r.Count, r.Cause, a.moment(r.EndedAtMs), r.TaskID, wire.FirstLine(r.Error), wire.FirstLine(example))
	}
	return t.write()
}
