package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"codeq/server"
	"codeq/wire"
)

const (
	// drainFor is how long a server that is told to stop waits for sessions to
	// finish what they hold.
	drainFor = 10 * time.Second
	// cutFor is how long it may take to end after that. Nothing is lost when
	// the process ends before it is through.
	cutFor = 10 * time.Second

	maxShards = 32

	defaultListen = "127.0.0.1:8080"
)

type serveCmd struct {
	Listen         string `env:"CODEQ_LISTEN" default:"127.0.0.1:8080" help:"Address to listen on; port 0 takes a free one."`
	Data           string `env:"CODEQ_DATA" default:"./codeq-data" help:"Directory of the data; made if it is not there."`
	Shards         int    `env:"CODEQ_SHARDS" help:"Shards of a new data directory, 1 to 32, 4 if not given; what a directory has can not be changed."`
	InsecureNoAuth bool   `env:"CODEQ_INSECURE_NO_AUTH" help:"Listen on any address although everybody who reaches it may do everything."`
}

// Run serves until it is told to stop.
func (s *serveCmd) Run(a *app) error {
	if s.Shards < 0 || s.Shards > maxShards {
		return wrong("--shards must be from 1 to %d, got %d", maxShards, s.Shards)
	}
	srv, err := server.Open(server.Options{
		DataDir: s.Data, Listen: s.Listen, Shards: s.Shards, InsecureNoAuth: s.InsecureNoAuth,
		Log: a.log(), Version: version,
	})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve() }()
	if err := a.announce(s, srv); err != nil {
		return errors.Join(err, a.shutdown(srv))
	}
	select {
	case err := <-served:
		return errors.Join(err, a.shutdown(srv))
	case <-a.stops:
		a.say("stopping: what is under way is finished, up to %s; Ctrl-C again stops at once", drainFor)
		return a.shutdown(srv)
	}
}

// log writes to standard error: for people on a terminal, else as JSON lines.
func (a *app) log() zerolog.Logger {
	out := a.err
	if a.errIsTerminal && !a.JSON {
		out = zerolog.ConsoleWriter{Out: a.err, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(out).Level(zerolog.InfoLevel).With().Timestamp().Logger()
}

// shutdown stops the server in order. A signal meanwhile cuts it short; if it
// does not end even then, the process does, which loses nothing accepted.
func (a *app) shutdown(srv *server.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-a.stops:
		cancel()
	case <-ctx.Done():
	}
	select {
	case err := <-stopped:
		return err
	case <-a.stops:
	case <-time.After(cutFor):
	}
	return errors.New("the server did not stop in time and is ended; what it accepted is on disk")
}

// announce says what serves where, and what to try.
func (a *app) announce(s *serveCmd, srv *server.Server) error {
	url := "http://" + srv.Addr()
	if a.JSON {
		return a.writeLine(announcement(s, srv, url))
	}
	state := "found"
	if srv.Created() {
		state = "new"
	}
	f := &fields{}
	f.add("data", fmt.Sprintf("%s (%s)", s.Data, state))
	f.add("shards", fmt.Sprint(srv.Shards()))
	f.add("durability", server.Durability+": what is answered survives kill -9 and a power cut")
	f.add("access", s.access())
	f.add("address", url)
	f.add("stop", "Ctrl-C; a second one stops at once")
	fmt.Fprintf(a.out, "codeq %s\n", version)
	if err := f.write(a.out); err != nil {
		return err
	}
	flag := ""
	if srv.Addr() != defaultListen {
		flag = " --url " + url
	}
	fmt.Fprintf(a.out, "\nTry it in other terminals:\n")
	fmt.Fprintf(a.out, "  %s work sha256%s --window 8 -- sha256sum\n", a.program, flag)
	fmt.Fprintf(a.out, "  %s enqueue sha256%s '{\"file\":\"a.iso\"}'\n", a.program, flag)
	fmt.Fprintf(a.out, "  %s result%s --wait 30s ID\n\n", a.program, flag)
	return nil
}

func (s *serveCmd) access() string {
	if s.InsecureNoAuth {
		return "no authentication: whoever reaches the address may do everything (--insecure-no-auth)"
	}
	return "no authentication, loopback only"
}

// announcement is the same for programs.
func announcement(s *serveCmd, srv *server.Server, url string) []byte {
	line := wire.AppendQuoted([]byte(`{"version":`), version)
	line = wire.AppendQuoted(append(line, `,"data":`...), s.Data)
	line = fmt.Appendf(line, `,"created":%t,"shards":%d,"durability":`, srv.Created(), srv.Shards())
	line = wire.AppendQuoted(line, server.Durability)
	line = append(line, `,"authentication":"none","address":`...)
	line = wire.AppendQuoted(line, srv.Addr())
	line = wire.AppendQuoted(append(line, `,"url":`...), url)
	return fmt.Appendf(line, `,"pid":%d}`, os.Getpid())
}
