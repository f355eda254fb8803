//go:build unix && !clientonly

package main

import (
	"context"
	"errors"
	"fmt"

	"codeq/internal/conform"
)

type conformCmd struct {
	Command []string `arg:"" optional:"" passthrough:"partial" help:"Driver of the SDK, with its arguments, behind --."`
	Only    string   `placeholder:"NAME" help:"Run the script of this name, or those whose names contain it."`
	List    bool     `help:"Print the scripts and what each proves, and run none."`
	AtOnce  int      `default:"8" help:"Scripts that run at the same time, most of which wait."`
}

// Help is the longer text of "codeq conform --help".
func (*conformCmd) Help() string {
	return `Tries an SDK in any language: it starts the driver of the SDK once for each script, speaks lines of JSON with it, and runs
scripted sessions: against a server in memory with a clock that the script moves, behind a network that it breaks, or as
the server itself. Each script proves one sentence of docs/sdk-guide.md; docs/sdk-lines.md has the lines.

It prints a line for each script that failed, and what was missing. The exit code is 1 if one did. --json prints one
object with all of them.`
}

// conformReport is the answer as JSON.
type conformReport struct {
	Passed  int               `json:"passed"`
	Failed  int               `json:"failed"`
	Skipped int               `json:"skipped"`
	Scripts []conform.Verdict `json:"scripts"`
}

// Run runs the scripts.
func (c *conformCmd) Run(a *app) error {
	switch {
	case c.List:
		return c.list(a)
	case len(c.Command) > 0 && c.Command[0] == "--":
		c.Command = c.Command[1:]
	}
	switch {
	case len(c.Command) == 0:
		return wrong("name the driver of the SDK behind --, for example: codeq conform -- ./driver")
	case c.AtOnce < 1:
		return wrong("--at-once must be at least 1, got %d", c.AtOnce)
	}
	ctx, done := a.untilStopped()
	defer done()
	r := conformReport{Scripts: []conform.Verdict{}}
	r.Scripts = append(r.Scripts, conform.Try(ctx, conform.Options{Command: c.Command, Only: c.Only, AtOnce: c.AtOnce}, func(v conform.Verdict) {
		r.count(&v)
		a.tellVerdict(&v)
	})...)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(r.Scripts) == 0 {
		return wrong("no script has %q in its name; \"codeq conform --list\" shows them", c.Only)
	}
	if err := a.reportConform(&r); err != nil || r.Failed == 0 {
		return err
	}
	return errSaid
}

func (a *app) reportConform(r *conformReport) error {
	if a.JSON {
		return a.writeJSON(r)
	}
	return a.writeLine(fmt.Appendf(nil, "%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped))
}

func (c *conformCmd) list(a *app) error {
	if a.JSON {
		return a.writeJSON(map[string]any{"scripts": conform.List()})
	}
	var all error
	for _, s := range conform.List() {
		all = errors.Join(all, a.writeLine([]byte(s.Name+": "+s.Proves)))
	}
	return all
}

func (r *conformReport) count(v *conform.Verdict) {
	switch {
	case v.Failed != "":
		r.Failed++
	case v.Skipped != "":
		r.Skipped++
	default:
		r.Passed++
	}
}

// tellVerdict says how a script ended, while others run.
func (a *app) tellVerdict(v *conform.Verdict) {
	switch {
	case v.Failed != "":
		a.complain("%s failed after %.1fs: %s", v.Name, float64(v.TookMs)/1000, v.Failed)
		a.complain("  it proves: %s", v.Proves)
		if v.Said != "" {
			a.complain("  the driver wrote: %s", v.Said)
		}
	case v.Skipped != "":
		a.say("%s skipped: %s", v.Name, v.Skipped)
	}
}
