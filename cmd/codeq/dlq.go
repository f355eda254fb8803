package main

import (
	"fmt"
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
