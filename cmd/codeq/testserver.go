//go:build unix && !clientonly

package main

import (
	"errors"
	"io"
	"os"
	"time"

	"codeq/internal/auth"
	"codeq/internal/testserver"
)

type testServerCmd struct {
	Listen      string `default:"127.0.0.1:0" help:"Address and port of the server; port 0 is any free one."`
	Tokens      string `type:"path" placeholder:"FILE" help:"Tokens of the clients. Without it, everybody on this machine is a client."`
	PingSeconds int    `default:"20" help:"Seconds between two pings of a session, by the clock of the machine."`
	Seed        uint64 `default:"1" help:"Number from which the ids of tasks follow."`
	UntilEOF    bool   `help:"End at the end of standard input, so that the server does not outlive the test that started it."`
}

// Help is the longer text of "codeq test-server --help".
func (*testServerCmd) Help() string {
	return `It is the real server with its real sockets, on a file system in memory. It prints its address as one line of JSON, and
forgets everything at its end.

Its clock begins at 2026-01-01T00:00:00Z and stands still. The request POST /advance with {"ms":60000} moves it, and is
answered when all that became due is done and on disk: delays, leases, backoff, the grace of lost sessions, retention
and rates follow this clock. Sockets, pings and the waits of HTTP requests follow that of the machine.`
}

// testServerAnnounced is what a server for tests prints.
type testServerAnnounced struct {
	URL string    `json:"url"`
	PID int       `json:"pid"`
	Now time.Time `json:"now"`
}

// Run serves until it is told to stop.
func (c *testServerCmd) Run(a *app) (err error) {
	o := testserver.Options{Listen: c.Listen, PingSeconds: c.PingSeconds, Seed: c.Seed, Version: version}
	if c.Tokens != "" {
		if o.Tokens, err = auth.OpenTokens(c.Tokens); err != nil {
			return err
		}
	}
	s, err := testserver.Start(o)
	if err != nil {
		return err
	}
	if err := a.writeJSON(testServerAnnounced{s.URL(), os.Getpid(), s.Now()}); err != nil {
		return errors.Join(err, s.Close())
	}
	over := make(chan struct{})
	if c.UntilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, a.in) // however it ends
			close(over)
		}()
	}
	select {
	case <-over:
	case <-a.stops:
	}
	return s.Close()
}
