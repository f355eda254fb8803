package main

import "codeq/client"

type releaseCmd struct{ held }

// Run hands a task that was claimed back to its old place.
func (r *releaseCmd) Run(a *app) error { return r.settle(a, client.Release()) }
