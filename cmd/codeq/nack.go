package main

import (
	"time"

	"codeq/client"
	"codeq/wire"
)

type nackCmd struct {
	held
	Reason string         `arg:"" optional:"" help:"Why the attempt failed. It is kept with the task."`
	Delay  *time.Duration `help:"Retry after this time; 0s is at once. Without it the backoff of the queue holds."`
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
		// No queue can be set to let a task wait longer.
		const most = wire.MaxBackoffSeconds * time.Second
		if err := checkSpans(wholeSpan{"delay", *n.Delay, 0, most}); err != nil {
			return err
		}
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
