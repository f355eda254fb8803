package main

import (
	"time"

	"codeq/client"
)

type nackCmd struct {
	held
	Reason string         `arg:"" optional:"" help:"What went wrong, for people; it is kept with the task."`
	Delay  *time.Duration `placeholder:"10s" help:"Try again after so long, 0s is at once; the policy of the queue if not given."`
}

// Run has a task that was claimed tried again.
func (n *nackCmd) Run(a *app) error {
	if n.Delay == nil {
		return n.settle(a, client.Nack(n.Reason))
	}
	if *n.Delay < 0 || *n.Delay%time.Second != 0 {
		return wrong("--delay must be whole seconds and not negative, got %s", *n.Delay)
	}
	return n.settle(a, client.NackAfter(n.Reason, *n.Delay))
}
