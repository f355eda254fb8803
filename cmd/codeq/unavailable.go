//go:build !unix || clientonly

package main

import (
	"runtime"

	"github.com/alecthomas/kong"

	"codeq/config"
)

// unavailable is a command that only a program for a Unix has: it serves, works on the files of a
// server, or runs programs in process groups. The tag clientonly makes such a program for a Unix,
// too, so that tests can run it.
type unavailable struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Not in this program."`
}

// Run refuses.
func (*unavailable) Run(parsed *kong.Context) error {
	return wrong("\"codeq %s\" needs Linux or macOS: this program, for %s, has the commands that ask a server", parsed.Selected().Path(), runtime.GOOS)
}

type (
	serveCmd struct {
		unavailable
		config.Serve `kong:"-"`
	}
	workCmd struct {
		unavailable
		Program []string `kong:"-"`
	}
	restoreCmd     struct{ unavailable }
	doctorCmd      struct{ unavailable }
	demoCmd        struct{ unavailable }
	benchCmd       struct{ unavailable }
	testServerCmd  struct{ unavailable }
	conformCmd     struct{ unavailable }
	clusterInitCmd struct{ unavailable }
	clusterJoinCmd struct{ unavailable }
)

// runAsInit takes in no orphans: there are none without a Unix.
func runAsInit() (code int, ok bool) { return 0, false }

const firstProcess = -1
