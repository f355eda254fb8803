package main

import (
	"time"

	"codeq/client"
)

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
