package main

import (
	"context"
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
	bulkFilter
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

func (f *deadFilter) query(command string) (client.BulkQuery, error) {
	q := client.BulkQuery{Command: command, Cause: f.Cause}
	if err := f.into(&q, f.OlderThan); err != nil {
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
	Command string `arg:"" help:"Command whose dead letters are replayed, or the id of one."`
	deadFilter
	Limit int `help:"How many at most, oldest first; all if left out."`
	times
}

// Help is the longer text of "codeq dlq replay --help".
func (d *dlqReplayCmd) Help() string {
	return `They become ready at the tail of their queue, oldest first. Those that a worker ended FAILED stay, because they would most likely fail again: "--cause failed" or "--cause all" replays them too, and so does the id of one. "codeq dlq list COMMAND" shows what there is, "codeq dlq reasons COMMAND" why.`
}

// Run replays one dead letter, or those of a queue.
func (d *dlqReplayCmd) Run(a *app) error {
	if d.Limit < 0 || d.Limit == 0 && a.given["limit"] {
		return wrong("--limit must be at least 1, got %d", d.Limit)
	}
	if id, ok := wire.ParseTaskID(d.Command); ok {
		return a.withTask(func(ctx context.Context, c *client.Client) (*wire.Task, error) { return c.Replay(ctx, id) })
	}
	q, err := d.query(d.Command)
	if err != nil {
		return err
	}
	return a.workBulk(q, d.Limit, &bulkWords{what: deadLetter, became: replayedNow, would: "would be ready again"}, (*client.Client).ReplayQueue)
}

type dlqPurgeCmd struct {
	Command string `arg:"" help:"Command whose dead letters are removed."`
	deadFilter
	Limit int `help:"How many at most, oldest first; all if left out."`
	times
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
	return a.workBulk(q, d.Limit, &bulkWords{what: deadLetter, became: "are gone", would: "would be gone"}, (*client.Client).PurgeQueue)
}

// deadLetter is what replay and purge are about.
const deadLetter = "dead letter"

// replayedNow is what becomes of those that are replayed.
const replayedNow = "are ready again"

// failedLeft says how many letters a replay has left because nobody named their
// cause.
func failedLeft(q *client.BulkQuery, answer *client.BulkAnswer) string {
	if q.Cause != "" || answer.RemainingFailed == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of them ended FAILED by their worker, --cause failed replays those", answer.RemainingFailed)
}
