package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type resultCmd struct {
	ID   string        `arg:"" name:"id" help:"Id of the task."`
	Wait time.Duration `help:"Wait this long for the result, and for a server."`
	Once bool          `help:"Fail at once if no server answers, even with --wait."`
	times
}

// Run shows the result of a task. A task that did not complete is a failure.
func (r *resultCmd) Run(a *app) error {
	id, err := parseID(r.ID)
	if err != nil {
		return err
	}
	a.once = r.Once
	return a.ask(func(ctx context.Context, c *client.Client) error {
		answer, err := c.ResultWithin(ctx, id, r.Wait)
		if err != nil {
			return a.noResult(ctx, c, id, err)
		}
		if err := a.showResult(answer, a.answer); err != nil {
			return err
		}
		return completed(answer)
	})
}

// noResult adds to the error why a task has no result yet, as "codeq task" shows it. It
// returns other errors unchanged.
func (a *app) noResult(ctx context.Context, c *client.Client, id wire.TaskID, err error) error {
	if !refusedWith(err, wire.CodeResultNotFound) {
		return err
	}
	task, unread := c.Task(ctx, id)
	if unread != nil {
		return err
	}
	why := a.waitingLine(task.Waiting)
	if task.Status == wire.StatusInProgress {
		why = "worker " + task.WorkerID
	}
	if why == "" {
		return err
	}
	return wire.Refuse(wire.CodeResultNotFound, fmt.Sprintf("task %s has no result yet, it is %s, %s", id, task.Status, why))
}

// about is the text of an error with the id of its task in it once.
func about(id wire.TaskID, err error) string {
	said := sentence(err)
	if strings.Contains(said, id.String()) {
		return said
	}
	return fmt.Sprintf("task %s: %s", id, said)
}

// showResult prints the outcome of a task; body is the answer as it came.
func (a *app) showResult(answer *client.ResultAnswer, body []byte) error {
	if a.JSON {
		return a.writeLine(body)
	}
	r := answer.Result
	f := &fields{}
	f.add("task", r.TaskID.String())
	f.add("command", answer.Task.Command)
	f.add("status", string(r.Status))
	f.add("cause", endedBy(r.CancelCause))
	f.add("ended", a.moment(r.CompletedAtMs))
	f.add("error", r.Error)
	f.add("result", string(r.Result))
	for _, artifact := range r.Artifacts {
		f.add("artifact", artifact.Name+" "+artifact.URL)
	}
	return f.write(a)
}

// completed is nil for a task that completed, and else the reason why the
// command fails.
func completed(answer *client.ResultAnswer) error {
	if answer.Result.Status == wire.StatusCompleted {
		return nil
	}
	if answer.Result.CancelCause == wire.CancelExpired {
		return fmt.Errorf("task %s is %s, %s", answer.Result.TaskID, answer.Result.Status, endedBy(answer.Result.CancelCause))
	}
	return fmt.Errorf("task %s is %s", answer.Result.TaskID, answer.Result.Status)
}
