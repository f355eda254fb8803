package main

import "codeq/wire"

type dlqCmd struct {
	Replay dlqReplayCmd `cmd:"" help:"Give dead letters all their attempts back."`
}

type dlqReplayCmd struct {
	Command string `arg:"" help:"Command whose dead letters are replayed, or the id of one."`
	Limit   int    `default:"10000" help:"How many at most, oldest first; 1 to 10000."`
}

// Help is the longer text of "codeq dlq replay --help".
func (d *dlqReplayCmd) Help() string {
	return `They become ready at the tail of their queue, oldest first. "codeq tasks COMMAND --state dlq" shows what there is.`
}

// Run replays one dead letter, or those of a queue.
func (d *dlqReplayCmd) Run(a *app) error {
	if d.Limit < 1 || d.Limit > wire.MaxEndedTasks {
		return wrong("--limit must be from 1 to %d, got %d", wire.MaxEndedTasks, d.Limit)
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	if id, ok := wire.ParseTaskID(d.Command); ok {
		return a.showTask(c.Replay(ctx, id))
	}
	if refusal := wire.CheckCommand(d.Command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	answer, err := c.ReplayQueue(ctx, d.Command, d.Limit)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeLine(answer.Raw)
	}
	a.say("%d dead letters of %s are ready again, %d are left", answer.Replayed, d.Command, answer.Remaining)
	return nil
}
