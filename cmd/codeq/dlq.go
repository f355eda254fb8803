package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codeq/client"
	"codeq/wire"
)

type dlqCmd struct {
	List    dlqListCmd    `cmd:"" eg:"codeq dlq list mail --cause failed" help:"List dead letters, the newest first."`
	Reasons dlqReasonsCmd `cmd:"" eg:"codeq dlq reasons mail" help:"Show why tasks of a queue are dead, the most frequent reason first."`
	Replay  dlqReplayCmd  `cmd:"" eg:"codeq dlq replay mail --error timeout --limit 100" help:"Give dead letters all their attempts back."`
	Purge   dlqPurgeCmd   `cmd:"" eg:"codeq dlq purge mail --older-than 30d" help:"Remove dead letters for good."`
}

// deadFilter says which dead letters a command is about.
type deadFilter struct {
	Worker    string        `placeholder:"NAME" help:"Only those that this worker had last."`
	ErrorPart string        `name:"error" placeholder:"TEXT" help:"Only those whose error contains this text."`
	OlderThan time.Duration `help:"Only those that have been dead for so long, like 36h or 7d."`
	deadCause
}

// deadCause says why the letters died that a command is about.
type deadCause struct {
	Cause string `choice:"exhausted,released_too_often,failed,all" help:"Only those with this cause: exhausted, released_too_often, failed, or all."`
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

func (f *deadFilter) query(command string) (client.DeadQuery, error) {
	if refusal := wire.CheckCommand(command); refusal != nil {
		return client.DeadQuery{}, wrong("%s", refusal.Sentence)
	}
	q := client.DeadQuery{Command: command, Cause: f.Cause, Worker: f.Worker, ErrorPart: f.ErrorPart}
	if err := f.check(); err != nil {
		return q, err
	}
	if f.OlderThan < 0 {
		return q, wrong("--older-than must not be negative, got %s", f.OlderThan)
	}
	if f.OlderThan > 0 {
		q.Before = time.Now().Add(-f.OlderThan)
	}
	return q, nil
}

type dlqReplayCmd struct {
	Command string `arg:"" help:"Command whose dead letters are replayed, or the id of one."`
	deadFilter
	Limit int `default:"10000" help:"How many at most, oldest first."`
	times
}

// Help is the longer text of "codeq dlq replay --help".
func (d *dlqReplayCmd) Help() string {
	return `They become ready at the tail of their queue, oldest first. Those that a worker ended FAILED stay, because they would most likely fail again: "--cause failed" or "--cause all" replays them too, and so does the id of one. "codeq dlq list COMMAND" shows what there is, "codeq dlq reasons COMMAND" why.`
}

// Run replays one dead letter, or those of a queue.
func (d *dlqReplayCmd) Run(a *app) error {
	if d.Limit < 1 {
		return wrong("--limit must be at least 1, got %d", d.Limit)
	}
	if id, ok := wire.ParseTaskID(d.Command); ok {
		ctx, c, done, err := a.connect()
		if err != nil {
			return err
		}
		defer done()
		return a.showTask(c.Replay(ctx, id))
	}
	q, err := d.query(d.Command)
	if err != nil {
		return err
	}
	return a.workDead(q, d.Limit, "are ready again", (*client.Client).ReplayQueue)
}

type dlqPurgeCmd struct {
	Command string `arg:"" help:"Command whose dead letters are removed."`
	deadFilter
	Limit int `help:"How many at most, oldest first; all if left out."`
}

// Help is the longer text of "codeq dlq purge --help".
func (d *dlqPurgeCmd) Help() string {
	return `Nothing of them is left: no record, no result, and their idempotency keys make new tasks.`
}

// Run removes dead letters of a queue.
func (d *dlqPurgeCmd) Run(a *app) error {
	if d.Limit < 0 || d.Limit == 0 && a.given["limit"] {
		return wrong("--limit must be at least 1, got %d", d.Limit)
	}
	q, err := d.query(d.Command)
	if err != nil {
		return err
	}
	return a.workDead(q, d.Limit, "are gone", (*client.Client).PurgeQueue)
}

// hint is for somebody who named a task whose queue is meant; dead are all letters
// that were found.
func hint(command string, dead int64) string {
	if dead > 0 {
		return ""
	}
	return orOneTask(command)
}

// failedLeft says how many letters a replay has left because nobody named their
// cause.
func failedLeft(q *client.DeadQuery, answer *client.DeadAnswer) string {
	if q.Cause != "" || answer.RemainingFailed == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of them ended FAILED by their worker, --cause failed replays those", answer.RemainingFailed)
}

const (
	// deadPart is how many dead letters one request is about: few, so that a stop
	// finds most of what is done answered and counted.
	deadPart = 1000
	// answerFor is how long after a stop an answer is waited for, for its count.
	answerFor = 5 * time.Second
)

// workDead sends requests until there is no more to do, or as many as the limit
// are done; 0 is no limit. However it ends, it says how many are done. With --json
// each answer is a line as it came.
func (a *app) workDead(
	q client.DeadQuery, limit int, became string,
	work func(*client.Client, context.Context, client.DeadQuery) (*client.DeadAnswer, error),
) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	asks, release := endsLater(ctx, answerFor)
	defer release()
	var all int64
	ended := func(err error, counted bool) error {
		if all == 0 && ctx.Err() == nil && counted {
			return err
		}
		rest := ""
		if !counted {
			rest = ", and perhaps some of the request that was not answered"
		}
		return fmt.Errorf("%d dead letters of %s %s before this ended%s: %w", all, q.Command, became, rest, err)
	}
	for {
		q.Limit = deadPart
		if limit > 0 {
			q.Limit = int(min(int64(limit)-all, deadPart))
		}
		answer, err := work(c, asks, q)
		if err != nil {
			return ended(err, !errors.Is(err, client.ErrOutcomeUnknown))
		}
		all, q.Cursor = all+answer.Done, answer.Cursor
		if a.JSON {
			if err := a.writeLine(answer.Raw); err != nil {
				return ended(err, true)
			}
		}
		if q.Cursor == "" || limit > 0 && all >= int64(limit) {
			if !a.JSON {
				a.say("%d dead letters of %s %s, %d are left%s%s", all, q.Command, became, answer.Remaining, failedLeft(&q, answer), hint(q.Command, all+answer.Remaining))
			}
			return nil
		}
		if ctx.Err() != nil {
			return ended(context.Cause(ctx), true)
		}
	}
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
