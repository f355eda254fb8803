package main

import "codeq/client"

type releaseCmd struct {
	held
	Unbegun  bool `xor:"why" help:"The work never began. Such a release is not counted."`
	Stopping bool `xor:"why" help:"The worker ends. Such a release is not counted."`
}

// Run hands a task that was claimed back to its old place.
func (r *releaseCmd) Run(a *app) error {
	switch {
	case r.Unbegun:
		return r.settle(a, client.NotStarted(""))
	case r.Stopping:
		return r.settle(a, client.Stopped())
	}
	return r.settle(a, client.Release())
}
