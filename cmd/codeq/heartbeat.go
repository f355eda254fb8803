package main

import (
	"context"
	"time"

	"codeq/client"
	"codeq/wire"
)

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
