package main

import (
	"time"

	"codeq/client"
	"codeq/wire"
)

type nackCmd struct {
	held
	Reason string         `arg:"" optional:"" help:"What went wrong, for people; it is kept with the task."`
	Delay  *time.Duration `help:"Try again after so long, 0s is at once; the policy of the queue if not given."`
	exited
}

// Run has a task that was claimed tried again.
func (n *nackCmd) Run(a *app) error {
	exit, err := n.exit()
	if err != nil {
		return err
	}
	if n.Delay == nil {
		return n.settle(a, client.Nack(n.Reason).Exited(exit))
	}
	// No queue can be set to let a task wait longer.
	const most = wire.MaxBackoffSeconds * time.Second
	if *n.Delay < 0 || *n.Delay > most || *n.Delay%time.Second != 0 {
		return wrong("--delay must be whole seconds up to %s, got %s", most, *n.Delay)
	}
	answer, err := n.ask(a, client.NackAfter(n.Reason, *n.Delay).Exited(exit))
	if err != nil {
		return err
	}
	if !a.JSON && !answer.DeadLetter && !answer.Expired && answer.Wait < *n.Delay {
		a.say("task %s is tried again in %s, not in %s: its queue lets none wait longer", n.ID, answer.Wait, *n.Delay)
	}
	return n.tell(a, answer)
}
