package main

import (
	"context"
	"errors"
	"fmt"

	"codeq/client"
	"codeq/wire"
)

type queueDeleteCmd struct {
	Command       string `arg:"" help:"Name of the queue."`
	Purge         bool   `help:"Delete all its tasks, results and dead letters, too."`
	CancelRunning bool   `help:"Cancel tasks in progress; their workers are told. Without it such a queue is not deleted."`
}

// Help is the longer text of "codeq queue delete --help".
func (q *queueDeleteCmd) Help() string {
	return `Without --purge only a queue without tasks is deleted; ended tasks count, too. Its settings are deleted with it, and the next task with its name makes a new queue. During the deletion its tasks are not granted and new ones are refused. If this program or the server stops meanwhile, the server continues the deletion. Then the same command waits for it, also without --purge.`
}

// Run deletes a queue and waits until it is gone.
func (q *queueDeleteCmd) Run(a *app) error {
	if refusal := wire.CheckCommand(q.Command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	if q.CancelRunning && !q.Purge {
		return wrong("--cancel-running needs --purge, which deletes the cancelled tasks")
	}
	return a.ask(func(ctx context.Context, c *client.Client) error { return q.untilGone(ctx, a, c) })
}

// untilGone asks the server to delete the queue until it answers that it has.
func (q *queueDeleteCmd) untilGone(ctx context.Context, a *app, c *client.Client) error {
	for begun := false; ; begun = true {
		answer, err := c.DeleteQueue(ctx, q.Command, client.DeleteOptions{Purge: q.Purge, CancelRunning: q.CancelRunning})
		if begun && refusedWith(err, wire.CodeQueueNotFound) {
			answer, err = &client.DeleteAnswer{Deleted: true}, nil // it went between the two
			a.answer = []byte(`{"deleted":true}`)
		}
		if err != nil && begun {
			return q.goesOn(ctx, err)
		}
		if err != nil {
			return q.withFlag(err)
		}
		if a.JSON {
			if err := a.writeLine(a.answer); err != nil {
				return err
			}
		}
		if answer.Deleted {
			a.say("queue %s is deleted", q.Command)
			return nil
		}
		a.say("%s", countedOf(answer.Remaining, "task", q.Command, "are left to delete"))
	}
}

// goesOn is the error of a wait for a deletion that the server has begun. It is certain
// that the deletion continues, even if no answer came.
func (q *queueDeleteCmd) goesOn(ctx context.Context, err error) error {
	said := fmt.Sprintf("the server continues to delete %s, and \"codeq queue delete %s\" waits for it", q.Command, q.Command)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", said, context.Cause(ctx))
	case errors.Is(err, client.ErrOutcomeUnknown):
		return tryAgain("%s: no answer came", said)
	}
	return fmt.Errorf("%s: %w", said, err)
}

// withFlag names the flag with which a queue that has tasks is deleted.
func (q *queueDeleteCmd) withFlag(err error) error {
	if !refusedWith(err, wire.CodeQueueNotEmpty) {
		return err
	}
	if q.Purge {
		return fmt.Errorf("%w; --cancel-running cancels them", err)
	}
	return fmt.Errorf("%w; --purge deletes it with them", err)
}

// createFlag is for commands that change settings of a queue.
type createFlag struct {
	Create bool `help:"Make the queue if nobody has used it yet."`
}

// known is a queue as it is. It refuses one that nobody has used, unless it may be made.
func (f *createFlag) known(ctx context.Context, c *client.Client, command string) (*wire.QueueFigures, error) {
	now, err := c.Queue(ctx, command)
	if err == nil && now.Unknown && !f.Create {
		err = noQueue(ctx, c, command, "; --create makes it")
	}
	return now, err
}

// knownQueue refuses a queue that nobody has used. Commands call it when they found no task.
func knownQueue(ctx context.Context, c *client.Client, command string) error {
	now, err := c.Queue(ctx, command)
	if err == nil && now.Unknown {
		err = noQueue(ctx, c, command, orOneTask(command))
	}
	return err
}

// noQueue is the error about a queue that nobody has used. It proposes the queue with a
// similar name, or else remedy.
func noQueue(ctx context.Context, c *client.Client, command, remedy string) error {
	var names []string
	if all, err := c.Queues(ctx); err == nil { // without the others the sentence holds as well
		for i := range all {
			names = append(names, all[i].Command)
		}
	}
	if near := wire.Nearest(command, names); near != "" && near != command { // its first task may have come meanwhile
		remedy = fmt.Sprintf("; did you mean %q?", near)
	}
	return &exitError{fmt.Errorf("no queue %q is known%s", command, remedy), exitNotThere}
}
