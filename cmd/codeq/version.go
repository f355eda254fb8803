package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"codeq/client"
)

// versionPatience is how long "codeq version" looks for a server.
const versionPatience = 2 * time.Second

type versionCmd struct{}

// programVersion is what this program is, in a line.
func programVersion() string {
	return fmt.Sprintf("codeq %s, commit %s, %s", version, commit, runtime.Version())
}

// Run shows what this program is, and what the server is if one answers.
func (v *versionCmd) Run(a *app) error {
	return a.ask(func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithTimeout(ctx, versionPatience)
		defer cancel()
		server, failed := c.Version(ctx)
		if a.JSON {
			return a.writeJSON(struct {
				Version string `json:"version"`
				Commit  string `json:"commit"`
				Go      string `json:"go"`
				Server  string `json:"server,omitempty"`
			}{version, commit, runtime.Version(), server})
		}
		if failed != nil {
			server = "none answers; " + sentence(failed)
		}
		return a.writeLine(fmt.Appendf(nil, "%s\nserver at %s: %s", programVersion(), c.URL(), printable(server)))
	})
}
