package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

// bulkFilter selects the tasks that a command works on.
type bulkFilter struct {
	Worker    string   `help:"Only tasks whose worker, now or last, has this name."`
	ErrorPart string   `name:"error" help:"Only tasks whose error contains this text."`
	KeyPrefix string   `help:"Only tasks whose idempotency key begins with this text."`
	Priority  *int     `least:"0" most:"9" help:"Only tasks with this priority."`
	Attempts  int      `least:"0" help:"Only tasks with at least this number of failed attempts."`
	Match     []string `sep:"none" placeholder:"NAME=VALUE" help:"Only tasks whose payload has this member, like customer=42 or customer.id=42. It may be given four times; then all must be there."`
	DryRun    bool     `help:"Change nothing: count the tasks and show some of them."`
	Cursor    string   `help:"Continue the same command where it stopped, with the tasks that existed when it began."`

	NewerThan time.Duration `help:"Only tasks that were posted within this time, like 10m."`
	Limit     int           `least:"1" help:"Number of tasks at most. Without it: all."`
	times
}

// into checks the filter and puts it into the query of a queue.
func (f *bulkFilter) into(q *client.BulkQuery) error {
	if refusal := wire.CheckCommand(q.Command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	if len(f.Match) > wire.MaxFilterMembers {
		return wrong("--match may be given %d times, got %d", wire.MaxFilterMembers, len(f.Match))
	}
	q.Worker, q.ErrorPart, q.KeyPrefix, q.Priority, q.MinAttempts, q.DryRun, q.Cursor =
		f.Worker, f.ErrorPart, f.KeyPrefix, f.Priority, f.Attempts, f.DryRun, f.Cursor
	for _, text := range f.Match {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return wrong("--match must be a name and a value with = between them, like customer=42, got %.80q", text)
		}
		q.Match = append(q.Match, wire.MemberIs{Name: name, Value: value})
	}
	if f.NewerThan > 0 {
		q.CreatedAfter = time.Now().Add(-f.NewerThan)
	}
	return nil
}

// taskFilter selects tasks of a queue that have not ended.
type taskFilter struct {
	bulkFilter
	OlderThan time.Duration `help:"Only tasks that were posted at least this long ago, like 36h."`
	All       bool          `help:"All tasks of the queue. Needed if no other flag selects tasks."`
}

// query selects tasks of a queue in a state.
func (f *taskFilter) query(command, state string) (client.BulkQuery, error) {
	q := client.BulkQuery{Command: command, State: state}
	if err := f.into(&q); err != nil {
		return q, err
	}
	if f.OlderThan > 0 {
		q.CreatedBefore = time.Now().Add(-f.OlderThan)
	}
	filtered := q.Worker+q.ErrorPart+q.KeyPrefix != "" || q.Priority != nil || q.MinAttempts > 0 || len(q.Match) > 0 ||
		f.OlderThan > 0 || f.NewerThan > 0 || f.Limit > 0
	if !filtered && !f.All && !f.DryRun {
		return q, wrong("no flag selects tasks of %s: select some, like --match customer=42, or give --all", command)
	}
	return q, nil
}

const (
	// bulkPart is how many tasks one request changes at most. It is small, so that a stop
	// leaves at most this many tasks uncounted.
	bulkPart = 1000
	// answerFor is how long a stopped command waits for the last answer, for its count.
	answerFor = 5 * time.Second
	// progressEvery is how often a long command prints its count.
	progressEvery = 10 * time.Second
)

// endsLater is a context that ends that much later than ctx, so that a request in flight
// at a stop can still be answered. Call the returned function when done.
func endsLater(ctx context.Context, by time.Duration) (context.Context, func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		time.AfterFunc(by, func() { cancel(context.Cause(ctx)) })
	})
	return later, func() {
		unhook()
		cancel(nil)
	}
}

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

type taskTakeCmd struct {
	ID string `arg:"" name:"id" help:"Id of the task."`
}

// Help is the longer text of "codeq task take-back --help".
func (t *taskTakeCmd) Help() string {
	return `The worker is told to drop the work, and its result is refused. The task returns to its old place in the queue, and no attempt is counted. Any worker may get it next, also the same one.`
}

// Run takes one task from its worker.
func (t *taskTakeCmd) Run(a *app) error {
	id, err := parseID(t.ID)
	if err != nil {
		return err
	}
	return a.showTask(id, !a.Quiet, (*client.Client).TakeBack)
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
