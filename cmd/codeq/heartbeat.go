package main

import (
	"time"

	"codeq/wire"
)

type heartbeatCmd struct {
	held
	Extend time.Duration `help:"Keep the task for so long from now on; the length of its lease if not given."`
}

// Run keeps a task that was claimed.
func (h *heartbeatCmd) Run(a *app) error {
	if h.Extend < 0 || h.Extend == 0 && a.given["extend"] || h.Extend > wire.MaxLeaseSeconds*time.Second || h.Extend%time.Second != 0 {
		return wrong("--extend must be whole seconds from 1s to %s, got %s", wire.MaxLeaseSeconds*time.Second, h.Extend)
	}
	ref, err := h.ref()
	if err != nil {
		return err
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	until, err := c.Claimed(ref).Heartbeat(ctx, h.Extend)
	if err != nil {
		return err
	}
	if !a.JSON {
		a.say("the lease of task %s ends %s", h.ID, a.moment(until.UnixMilli()))
		return nil
	}
	return a.writeLine(append(wire.AppendTimeMs([]byte(`{"ok":true,"leaseUntil":`), until.UnixMilli()), '}'))
}
