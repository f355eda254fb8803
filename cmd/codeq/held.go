package main

import (
	"bytes"
	"context"
	"time"

	"codeq/client"
	"codeq/wire"
)

// held are the arguments that name a delivery: the first words that "codeq claim" prints.
type held struct {
	ID         string `arg:"" name:"id" help:"Id of the task, the first word that \"codeq claim\" prints."`
	LeaseToken string `arg:"" name:"lease-token" help:"Token of the lease, the second word that \"codeq claim\" prints."`
}

// ref reads both.
func (h *held) ref() (ref wire.TaskRef, err error) {
	if ref.TaskID, err = parseID(h.ID); err != nil {
		return ref, err
	}
	token, ok := wire.ParseToken(h.LeaseToken)
	if !ok {
		return ref, wrong("%q is not a lease token: it has 32 hexadecimal digits and is the second word that \"codeq claim\" prints", h.LeaseToken)
	}
	ref.Token = token
	return ref, nil
}

// exited are the flags that tell how the program of a task ended.
type exited struct {
	ExitCode *int   `xor:"exit" least:"0" most:"4294967295" help:"Exit code of the program that worked on the task. It is kept with the task."`
	Signal   string `xor:"exit" placeholder:"NAME" help:"Signal that ended the program, like SIGKILL. It is kept with the task."`
}

// exit reads both.
func (e *exited) exit() (exit wire.Exit, err error) {
	if e.ExitCode != nil {
		return wire.Exit{Code: *e.ExitCode, Coded: true}, nil
	}
	if e.Signal != "" {
		if problem := wire.NameProblem(e.Signal, wire.MaxSignalBytes); problem != "" {
			return exit, wrong("--signal %s", problem)
		}
	}
	return wire.Exit{Signal: e.Signal}, nil
}

// end ends a delivery. Without --json it prints nothing, unless the task is a dead letter
// or has expired.
func (h *held) end(a *app, out client.Outcome) error {
	answer, err := h.ask(a, out)
	if err != nil {
		return err
	}
	return h.tell(a, answer)
}

// ask ends a delivery.
func (h *held) ask(a *app, out client.Outcome) (*client.EndAnswer, error) {
	ref, err := h.ref()
	if err != nil {
		return nil, err
	}
	var answer *client.EndAnswer
	err = a.ask(func(ctx context.Context, c *client.Client) error {
		answer, err = c.Claimed(ref).End(ctx, out)
		return err
	})
	return answer, err
}

// tell prints the outcome.
func (h *held) tell(a *app, answer *client.EndAnswer) error {
	if a.JSON {
		return a.writeLine(a.answer)
	}
	if answer.DeadLetter {
		a.say("task %s is a dead letter: that was its last attempt", h.ID)
	}
	if answer.Expired {
		a.say("task %s has expired and is not retried: its time is over", h.ID)
	}
	return nil
}

type completeCmd struct {
	held
	Result *string `arg:"" optional:"" help:"The result, a JSON object; - reads standard input."`
	Error  *string `placeholder:"TEXT" help:"The task failed for good, for this reason. It is not retried."`
	exited
}

// Run completes a claimed task, or fails it for good.
func (c *completeCmd) Run(a *app) error {
	exit, err := c.exit()
	switch {
	case err != nil:
		return err
	case exit != (wire.Exit{}) && c.Error == nil:
		return wrong("--exit-code and --signal need --error: they say how the work failed")
	case (c.Result == nil) == (c.Error == nil):
		return wrong("give either a result, like '{}', or --error with the reason")
	case c.Error != nil && *c.Error == "":
		return wrong("--error must not be empty: it says why the task failed")
	case c.Error != nil:
		return c.end(a, client.Fail(*c.Error).Exited(exit))
	}
	result, err := c.result(a)
	if err != nil {
		return err
	}
	return c.end(a, client.Complete(result))
}

// end ends the task. If the task had ended before, the server answers with the result that
// it keeps, which may be another one.
func (c *completeCmd) end(a *app, out client.Outcome) error {
	answer, err := c.ask(a, out)
	if err != nil {
		return err
	}
	stands, err := wire.ParseResultRecord(a.answer)
	if err != nil {
		return err
	}
	if !bytes.Equal(stands.Result, out.Result) || stands.Error != out.Reason {
		a.complain("task %s had ended before: its first result is kept", c.ID)
	}
	return c.tell(a, answer)
}

// result is the argument, or all of standard input. A result that is no object is refused:
// as an outcome it would be a nack, which is another command.
func (c *completeCmd) result(a *app) ([]byte, error) {
	text := []byte(*c.Result)
	if *c.Result == "-" {
		ctx, done := a.untilStopped()
		defer done()
		var err error
		if text, err = a.readAll(ctx, wire.MaxResultBytes); err != nil {
			return nil, err
		}
	}
	plain, err := wire.PlainText(text)
	if err != nil {
		return nil, wrong("the result: %w", err)
	}
	text = bytes.Trim(plain, " \t\r\n")
	if out := client.Complete(text); out.Kind != client.Completed {
		return nil, wrong("%s; write it like '{\"sum\":12}', with the single quotes", out.Reason)
	}
	return text, nil
}

type nackCmd struct {
	held
	Reason string         `arg:"" optional:"" help:"Why the attempt failed. It is kept with the task."`
	Delay  *time.Duration `whole:"" least:"0s" most:"24h" help:"Retry after this time; 0s is at once. Without it the backoff of the queue holds."`
	exited
}

// Run reports that the work on a claimed task failed.
func (n *nackCmd) Run(a *app) error {
	exit, err := n.exit()
	if err != nil {
		return err
	}
	out := client.Nack(n.Reason)
	if n.Delay != nil {
		out = client.NackAfter(n.Reason, *n.Delay)
	}
	answer, err := n.ask(a, out.Exited(exit))
	if err != nil {
		return err
	}
	switch {
	case a.JSON, answer.DeadLetter, answer.Expired: // it is told below
	case n.Delay != nil && answer.Wait < *n.Delay:
		a.say("task %s is retried in %s, not in %s: its queue allows no longer backoff", n.ID, answer.Wait, *n.Delay)
	case answer.Wait == 0:
		a.say("task %s is retried at once", n.ID)
	default:
		a.say("task %s is retried in %s", n.ID, answer.Wait)
	}
	return n.tell(a, answer)
}

type releaseCmd struct {
	held
	Unbegun  bool `xor:"why" help:"The work never began. Such a release is not counted."`
	Stopping bool `xor:"why" help:"The worker ends. Such a release is not counted."`
}

// Run hands back a claimed task, which keeps its place in the queue.
func (r *releaseCmd) Run(a *app) error {
	switch {
	case r.Unbegun:
		return r.end(a, client.NotStarted(""))
	case r.Stopping:
		return r.end(a, client.Stopped())
	}
	return r.end(a, client.Release())
}

type heartbeatCmd struct {
	held
	Extend time.Duration `whole:"" least:"1s" most:"12h" help:"Extend the lease to this long from now. Without it: to the length of the lease."`
}

// Run extends the lease of a claimed task.
func (h *heartbeatCmd) Run(a *app) error {
	ref, err := h.ref()
	if err != nil {
		return err
	}
	return a.ask(func(ctx context.Context, c *client.Client) error {
		until, err := c.Claimed(ref).Heartbeat(ctx, h.Extend)
		switch {
		case err != nil:
			return err
		case a.JSON:
			return a.writeLine(append(wire.AppendTimeMs([]byte(`{"ok":true,"leaseUntil":`), until.UnixMilli()), '}'))
		}
		a.say("the lease of task %s ends %s", h.ID, a.moment(until.UnixMilli()))
		return nil
	})
}
