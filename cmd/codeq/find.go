package main

import (
	"context"
	"math"
	"time"

	"codeq/client"
	"codeq/wire"
)

type findCmd struct {
	ID       string        `arg:"" optional:"" name:"id" help:"Id of the task."`
	Label    []string      `sep:"none" placeholder:"NAME=VALUE" help:"Only tasks with this label, like customer=acme. It may be given eight times; then all must be there."`
	Command  string        `placeholder:"COMMAND" help:"Only tasks of this queue, or like 'billing.*' of the queues whose names begin so."`
	State    string        `choice:"ready,delayed,inProgress,dlq,done" help:"Only tasks in this state: ready, delayed, inProgress, dlq or done."`
	Payload  string        `placeholder:"TEXT" help:"Only tasks whose payload contains this text."`
	Older    time.Duration `help:"Only tasks that were posted at least this long ago, like 36h."`
	Attempts int           `least:"0" help:"Only tasks with at least this number of failed attempts."`
	tasksFilter
}

// Help is the longer text of "codeq find --help".
func (f *findCmd) Help() string {
	return `An id and a label are looked up. For the rest the server looks at the tasks one by one, in parts that it bounds; the
command asks for part after part until it has found enough, or there is no more. It says how many tasks were looked at.`
}

// Run finds tasks over all queues.
func (f *findCmd) Run(a *app) error {
	if f.State != "" && tasksOf[f.State] == "" {
		return wrong("--state must be ready, delayed, inProgress, dlq or done, got %.40q", f.State)
	}
	if _, refusal := wire.MakeLabels(f.Label); refusal != nil {
		return wrong("--%s", refusal.Sentence)
	}
	q := client.FindQuery{
		ID: f.ID, Labels: f.Label, Command: f.Command, State: f.State, ErrorPart: f.ErrorPart, PayloadPart: f.Payload,
		Worker: f.Worker, OlderThan: f.Older, MinAttempts: f.Attempts, Cursor: f.Cursor,
	}
	if f.ID != "" {
		if _, err := parseID(f.ID); err != nil {
			return err
		}
	}
	most, err := f.most(a)
	if err != nil {
		return err
	}
	return a.ask(func(ctx context.Context, c *client.Client) error { return a.find(ctx, c, q, most) })
}

// find shows pages until there are enough tasks, and says how many it looked at. A command that
// is stopped shows what it has found so far.
func (a *app) find(ctx context.Context, c *client.Client, q client.FindQuery, most int) error {
	var tasks []*wire.Task
	var err error
	found, scanned := 0, 0
	for more := true; more && err == nil; {
		var page *client.FoundPage
		q.Limit = min(most-found, wire.MaxListTasks)
		if page, err = c.Find(ctx, q); err != nil {
			break
		}
		found, scanned, q.Cursor = found+len(page.Tasks), scanned+page.Scanned, page.Cursor
		switch {
		case a.JSON:
			err = a.writeLine(a.answer)
		case a.Quiet:
			err = a.writeIDs(page.Tasks)
		default:
			tasks = append(tasks, page.Tasks...)
		}
		more = q.Cursor != "" && found < most
	}
	stopped := ctx.Err() != nil
	switch {
	case err != nil && !stopped:
		return err
	case !stopped && q.ID != "" && found == 0:
		return wire.Refuse(wire.CodeTaskNotFound, "there is no task "+q.ID+", or the other flags leave it out")
	case len(tasks) > 0:
		if printed := a.taskRows(tasks, true); printed != nil {
			return printed
		}
	}
	switch {
	case a.JSON:
	case q.Cursor != "":
		a.say("%s looked at, %d found; go on with --cursor %s", counted(scanned, "task"), found, q.Cursor)
	default:
		a.say("%s looked at, %d found", counted(scanned, "task"), found)
	}
	return err
}

// most is the largest number of tasks that are shown.
func (f *tasksFilter) most(a *app) (int, error) {
	switch {
	case f.All && a.given["limit"]:
		return 0, wrong("give either --all or --limit, not both")
	case f.All || a.Quiet && !a.given["limit"]:
		return math.MaxInt, nil
	}
	return f.Limit, nil
}
