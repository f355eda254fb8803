package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"codeq/wire"
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
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	server, failed := c.Version(ctx)
	if a.JSON {
		line := wire.AppendQuoted([]byte(`{"version":`), version)
		line = wire.AppendQuoted(append(line, `,"commit":`...), commit)
		line = wire.AppendQuoted(append(line, `,"go":`...), runtime.Version())
		if server != "" {
			line = wire.AppendQuoted(append(line, `,"server":`...), server)
		}
		return a.writeLine(append(line, '}'))
	}
	if failed != nil {
		server = "none answers; " + sentence(failed)
	}
	_, err = fmt.Fprintf(a.out, "%s\nserver at %s: %s\n", programVersion(), c.URL(), printable(server))
	return err
}
