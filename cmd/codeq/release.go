package main

import "codeq/client"

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
