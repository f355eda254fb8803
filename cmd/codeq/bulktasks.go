package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

// bulkFilter leaves out tasks of those that a command works on.
type bulkFilter struct {
	Worker    string   `help:"Only those that this worker has, or had last."`
	ErrorPart string   `name:"error" help:"Only those whose error contains this text."`
	KeyPrefix string   `help:"Only those whose idempotency key begins with this."`
	Priority  *int     `help:"Only those of this priority."`
	Attempts  int      `help:"Only those of which at least so many executions have failed."`
	Match     []string `sep:"none" placeholder:"NAME=VALUE" help:"Only those whose payload has this member, like customer=42 or customer.id=42. May be given four times; all must hold."`
	DryRun    bool     `help:"Do nothing, say how many there are and show some of them."`
}

// into puts the filter into a query.
func (f *bulkFilter) into(q *client.BulkQuery) error {
	if f.Priority != nil && (*f.Priority < 0 || *f.Priority > wire.MaxPriority) {
		return wrong("--priority must be from 0 to %d, got %d", wire.MaxPriority, *f.Priority)
	}
	if f.Attempts < 0 {
		return wrong("--attempts must not be negative, got %d", f.Attempts)
	}
	if len(f.Match) > wire.MaxFilterMembers {
		return wrong("--match may be given %d times, got %d", wire.MaxFilterMembers, len(f.Match))
	}
	q.Worker, q.ErrorPart, q.KeyPrefix, q.Priority, q.MinAttempts, q.DryRun =
		f.Worker, f.ErrorPart, f.KeyPrefix, f.Priority, f.Attempts, f.DryRun
	for _, text := range f.Match {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return wrong("--match must be a name and a value with = between them, like customer=42, got %.80q", text)
		}
		q.Match = append(q.Match, wire.MemberIs{Name: name, Value: value})
	}
	return nil
}

// taskFilter says which tasks of a queue, of those that have not ended, a command
// is about.
type taskFilter struct {
	bulkFilter
	OlderThan time.Duration `help:"Only those that were posted at least so long ago, like 36h."`
	NewerThan time.Duration `help:"Only those that were posted within this time, like 10m."`
	Limit     int           `help:"How many at most; all if left out."`
	times
	All bool `help:"All of them: needed where nothing else says which."`
}

// query is about the tasks of a queue in a state.
func (f *taskFilter) query(command, state string) (client.BulkQuery, error) {
	q := client.BulkQuery{Command: command, State: state}
	if refusal := wire.CheckCommand(command); refusal != nil {
		return q, wrong("%s", refusal.Sentence)
	}
	if err := f.into(&q); err != nil {
		return q, err
	}
	if f.OlderThan < 0 || f.NewerThan < 0 {
		return q, wrong("--older-than and --newer-than must not be negative")
	}
	if f.Limit < 0 {
		return q, wrong("--limit must be at least 1, got %d", f.Limit)
	}
	if f.OlderThan > 0 {
		q.CreatedBefore = time.Now().Add(-f.OlderThan)
	}
	if f.NewerThan > 0 {
		q.CreatedAfter = time.Now().Add(-f.NewerThan)
	}
	filtered := q.Worker+q.ErrorPart+q.KeyPrefix != "" || q.Priority != nil || q.MinAttempts > 0 || len(q.Match) > 0 ||
		f.OlderThan > 0 || f.NewerThan > 0 || f.Limit > 0
	if !filtered && !f.All && !f.DryRun {
		return q, wrong("this is about all tasks of %s: say which, like --match customer=42, or --all", command)
	}
	return q, nil
}

// withTask does something with one task and shows what it is then, but with --quiet.
func (a *app) withTask(do func(context.Context, *client.Client) (*client.TaskAnswer, error)) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	answer, err := do(ctx, c)
	if err == nil && a.Quiet && !a.JSON {
		return nil
	}
	return a.showTask(answer, err)
}

const (
	// bulkPart is how many tasks one request is about: few, so that a stop finds most
	// of what is done answered and counted.
	bulkPart = 1000
	// answerFor is how long after a stop an answer is waited for, for its count.
	answerFor = 5 * time.Second
)

// bulkWords say what is done: "12 <what> of <command> <became>".
type bulkWords struct{ what, became, would string }

// bulkCall is one request of the many that a command makes.
type bulkCall func(*client.Client, context.Context, client.BulkQuery) (*client.BulkAnswer, error)

// workBulk sends requests until there is no more to do, or as many as the limit
// are done; 0 is no limit. However it ends, it says how many are done. With --json
// each answer is a line as it came. A dry run shows some of the tasks.
func (a *app) workBulk(q client.BulkQuery, limit int, words *bulkWords, work bulkCall) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	asks, release := endsLater(ctx, answerFor)
	defer release()
	var all int64
	var sample []*wire.Task
	ended := func(err error, counted bool) error {
		if all == 0 && ctx.Err() == nil && counted || q.DryRun {
			return err
		}
		rest := ""
		if !counted {
			rest = ", and perhaps some of the request that was not answered"
		}
		return fmt.Errorf("%d %s of %s %s before this ended%s: %w", all, words.what, q.Command, words.became, rest, err)
	}
	for {
		q.Limit = bulkPart
		if q.DryRun {
			q.Limit = wire.MaxEndedTasks
		}
		if limit > 0 {
			q.Limit = int(min(int64(limit)-all, int64(q.Limit)))
		}
		answer, err := work(c, asks, q)
		if err != nil {
			return ended(err, !errors.Is(err, client.ErrOutcomeUnknown))
		}
		all, q.Cursor = all+answer.Done, answer.Cursor
		if len(sample) == 0 {
			sample = answer.Sample
		}
		if a.JSON {
			if err := a.writeLine(answer.Raw); err != nil {
				return ended(err, true)
			}
		}
		if q.Cursor == "" && all+answer.Remaining == 0 {
			if err := knownQueue(asks, c, q.Command); err != nil {
				return err
			}
		}
		if q.Cursor == "" || limit > 0 && all >= int64(limit) {
			return a.toldBulk(&q, words, all, answer, sample)
		}
		if ctx.Err() != nil {
			return ended(context.Cause(ctx), true)
		}
	}
}

// toldBulk says what a command has done with all, by its last answer.
func (a *app) toldBulk(q *client.BulkQuery, words *bulkWords, all int64, last *client.BulkAnswer, sample []*wire.Task) error {
	switch {
	case a.JSON:
	case q.DryRun:
		a.say("%d %s of %s %s", all, words.what, q.Command, words.would)
		if len(sample) > 0 {
			return a.taskTable(sample)
		}
	case words.what == deadLetters:
		a.say("%d %s of %s %s, %d are left%s", all, words.what, q.Command, words.became, last.Remaining, failedLeft(q, last))
	default:
		a.say("%d %s of %s %s", all, words.what, q.Command, words.became)
	}
	return nil
}

// endsLater is a context that ends so much later than ctx: a request that is under
// way at a stop may be answered still. Call the returned function when done.
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
