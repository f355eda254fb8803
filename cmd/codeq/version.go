package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"codeq/client"
	"codeq/record"
	"codeq/wire"
)

// versionPatience is how long "codeq version" looks for a server.
const versionPatience = 2 * time.Second

type versionCmd struct{}

// programVersion is what this program is and speaks, in a line.
func programVersion() string {
	return fmt.Sprintf("codeq %s, commit %s, %s, protocol %s, data format %d", version, commit, runtime.Version(), wire.Subprotocol, record.Format)
}

// Run shows what this program is, and what the server is if one answers.
func (v *versionCmd) Run(a *app) error {
	return a.ask(func(ctx context.Context, c *client.Client) error {
		ctx, cancel := context.WithTimeout(ctx, versionPatience)
		defer cancel()
		server, failed := c.Version(ctx)
		if a.JSON {
			return a.writeJSON(struct {
				Version    string `json:"version"`
				Commit     string `json:"commit"`
				Go         string `json:"go"`
				Protocol   string `json:"protocol"`
				DataFormat int    `json:"dataFormat"`
				Server     string `json:"server,omitempty"`
			}{version, commit, runtime.Version(), wire.Subprotocol, record.Format, server})
		}
		if failed != nil {
			server = "none answers; " + sentence(failed)
		}
		return a.writeLine(fmt.Appendf(nil, "%s\nserver at %s: %s", programVersion(), c.URL(), printable(server)))
	})
}
