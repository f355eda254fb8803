package main

import (
	"context"
	"fmt"

	"codeq/client"
	"codeq/wire"
)

type limitsCmd struct {
	List  limitsListCmd  `cmd:"" eg:"codeq limits list" help:"Show the limits of every tenant that has some."`
	Show  limitsShowCmd  `cmd:"" eg:"codeq limits show acme" help:"Show the limits of a tenant and what is used of them."`
	Set   limitsSetCmd   `cmd:"" eg:"codeq limits set acme --enqueues-per-second 100 --pending-tasks 50000" help:"Change limits of a tenant. 0 removes one."`
	Clear limitsClearCmd `cmd:"" eg:"codeq limits clear acme" help:"Remove all limits of a tenant."`
}

type limitsListCmd struct{ times }

// Run lists the tenants with limits.
func (l *limitsListCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) ([]wire.LimitsFigures, error) { return c.AllLimits(ctx) },
		func(all []wire.LimitsFigures) error {
			if len(all) == 0 {
				a.say("no tenant has limits")
				return nil
			}
			t := a.table(column{name: "TENANT", least: 10}, column{name: "ENQUEUES/S"}, column{name: "CLAIMS/S", spare: 2},
				column{name: "PENDING"}, column{name: "PENDING BYTES", spare: 3}, column{name: "ARTIFACT BYTES", spare: 4}, column{name: "SESSIONS"}, column{name: "WEIGHT", spare: 1})
			for i := range all {
				f := &all[i]
				t.row(f.TenantID, boundOf(f.EnqueuesPerSecond), boundOf(f.ClaimsPerSecond),
					usedOf(f.Used.Pending, f.PendingTasks), usedOf(f.Used.Bytes, f.PendingBytes), usedOf(f.Used.Files, f.ArtifactBytes), usedOf(int64(f.Used.Open), int64(f.Sessions)), max(f.Weight, 1))
			}
			return t.write()
		})
}

// boundOf is a limit in a table.
func boundOf(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func usedOf(used, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprint(used, "/", of)
}

type limitsShowCmd struct {
	Tenant string `arg:"" help:"Name of the tenant."`
	times
}

// Run shows the limits of one tenant.
func (l *limitsShowCmd) Run(a *app) error {
	return a.showLimits(true, func(ctx context.Context, c *client.Client) (*wire.LimitsFigures, error) {
		return c.Limits(ctx, l.Tenant)
	})
}

type limitsSetCmd struct {
	Tenant string `arg:"" help:"Name of the tenant."`
	times
	EnqueuesPerSecond     *int   `help:"Tasks that may be made in a second, on the long run."`
	Burst                 *int   `help:"Tasks that may be made at once after a pause. Without it as many as in a second."`
	ClaimsPerSecond       *int   `help:"Tasks that may be asked for over HTTP in a second."`
	PendingTasks          *int64 `placeholder:"N" help:"Tasks that may wait."`
	PendingBytes          *int64 `placeholder:"N" help:"Bytes that the payloads of waiting tasks may have together."`
	ArtifactBytes         *int64 `placeholder:"N" help:"Bytes that the files of tasks may have together."`
	Sessions              *int   `help:"Sessions that may be open."`
	Weight                *int   `help:"Turns that the tenant has when other tenants have one, 1 to 100."`
	EachEnqueuesPerSecond *int   `help:"As --enqueues-per-second, for each subject of the tenant."`
	EachBurst             *int   `help:"As --burst, for each subject."`
	EachClaimsPerSecond   *int   `help:"As --claims-per-second, for each subject."`
	EachSessions          *int   `help:"As --sessions, for each subject."`
}

// Run changes what is named and leaves the rest.
func (l *limitsSetCmd) Run(a *app) error {
	if *l == (limitsSetCmd{Tenant: l.Tenant, times: l.times}) {
		return wrong("nothing is changed: give a limit, like --pending-tasks 50000; \"codeq limits show %s\" shows the limits", l.Tenant)
	}
	return a.showLimits(!a.Quiet, func(ctx context.Context, c *client.Client) (*wire.LimitsFigures, error) {
		now, err := c.Limits(ctx, l.Tenant)
		if err != nil {
			return nil, err
		}
		change := now.LimitsChange
		l.apply(&change)
		return c.SetLimits(ctx, l.Tenant, &change)
	})
}

// apply changes the limits that are named.
func (l *limitsSetCmd) apply(to *wire.LimitsChange) {
	each := &to.PerCredential
	setIf(&to.EnqueuesPerSecond, l.EnqueuesPerSecond)
	setIf(&to.Burst, l.Burst)
	setIf(&to.ClaimsPerSecond, l.ClaimsPerSecond)
	setIf(&to.PendingTasks, l.PendingTasks)
	setIf(&to.PendingBytes, l.PendingBytes)
	setIf(&to.ArtifactBytes, l.ArtifactBytes)
	setIf(&to.Sessions, l.Sessions)
	setIf(&to.Weight, l.Weight)
	setIf(&each.EnqueuesPerSecond, l.EachEnqueuesPerSecond)
	setIf(&each.Burst, l.EachBurst)
	setIf(&each.ClaimsPerSecond, l.EachClaimsPerSecond)
	setIf(&each.Sessions, l.EachSessions)
}

// setIf sets what was given.
func setIf[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

type limitsClearCmd struct {
	Tenant string `arg:"" help:"Name of the tenant."`
	times
}

// Run removes the limits of one tenant.
func (l *limitsClearCmd) Run(a *app) error {
	return a.showLimits(!a.Quiet, func(ctx context.Context, c *client.Client) (*wire.LimitsFigures, error) {
		return c.ClearLimits(ctx, l.Tenant)
	})
}

// showLimits shows the limits that do returns, to people only if they want that.
func (a *app) showLimits(wanted bool, do func(context.Context, *client.Client) (*wire.LimitsFigures, error)) error {
	return showFields(a, wanted, do, limitsFields)
}

// limitsFields are the limits of a tenant for people.
func limitsFields(l *wire.LimitsFigures) *fields {
	f := &fields{}
	f.add("tenant", l.TenantID)
	addDoor := func(prefix string, d *wire.DoorLimits) {
		f.add(prefix+"enqueues per second", noneOr(int64(d.EnqueuesPerSecond)))
		f.add(prefix+"burst", noneOr(int64(d.BurstInForce())))
		f.add(prefix+"claims per second", noneOr(int64(d.ClaimsPerSecond)))
		f.add(prefix+"sessions", noneOr(int64(d.Sessions)))
	}
	addDoor("", &l.DoorLimits)
	f.add("pending tasks", noneOr(l.PendingTasks))
	f.add("pending bytes", noneOr(l.PendingBytes))
	f.add("artifact bytes", noneOr(l.ArtifactBytes))
	f.add("weight", fmt.Sprint(max(l.Weight, 1)))
	if l.PerCredential != (wire.DoorLimits{}) {
		addDoor("each: ", &l.PerCredential)
	}
	if l.PendingTasks != 0 {
		f.add("pending now", fmt.Sprint(l.Used.Pending))
	}
	if l.PendingBytes != 0 {
		f.add("pending bytes now", fmt.Sprint(l.Used.Bytes))
	}
	if l.ArtifactBytes != 0 {
		f.add("artifact bytes now", fmt.Sprint(l.Used.Files))
	}
	if l.Sessions != 0 {
		f.add("sessions now", fmt.Sprint(l.Used.Open))
	}
	f.add("refused", fmt.Sprintf("%d enqueues, %d claims, %d for pending tasks, %d for pending bytes, %d artifacts, %d sessions",
		l.Refused.Enqueues, l.Refused.Claims, l.Refused.Pending, l.Refused.Bytes, l.Refused.Files, l.Refused.Sessions))
	return f
}

func noneOr(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}
