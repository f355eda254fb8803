package testserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/server"
)

// begin is the time at which a clock starts.
var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// memoryBytes is the memory of a server, little, because tests start many.
const memoryBytes = 160 << 20

// Options are the options of a Server. The zero value is usable.
type Options struct {
	// Listen is host:port; "" is a free port of the loopback address.
	Listen string
	// Tokens are those of the clients; nil admits every client on the loopback address.
	Tokens *auth.Tokens
	// PingSeconds is the time between two pings, by the clock of the machine; 0 is 20.
	PingSeconds int
	// Seed is that of the ids.
	Seed    uint64
	Log     zerolog.Logger
	Version string
}

// Server is a server for tests. Restart and Close must not run at the same time as another of its
// methods; otherwise they may be called from any goroutine.
type Server struct {
	options server.Options
	manual  *server.Manual
	running *server.Server
}

// Start starts a server.
func Start(o Options) (*Server, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	manual := server.NewManual(begin, o.Seed)
	s := &Server{manual: manual, options: server.Options{
		DataDir: "data", Listen: o.Listen, Shards: 1, Access: server.Access{Tokens: o.Tokens}, PingSeconds: o.PingSeconds,
		MemoryBytes: memoryBytes, EventsBytes: 1 << 20, Log: o.Log, Version: o.Version, FS: vfs.NewMem(), Time: manual.Time(),
		RetentionFor: 24 * time.Hour, DLQRetentionFor: 7 * 24 * time.Hour,
	}}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.options.Listen = s.running.Addr()
	return s, nil
}

func (s *Server) open() (err error) {
	if s.running, err = server.Open(s.options); err != nil {
		return fmt.Errorf("start a server for tests: %w", err)
	}
	return nil
}

// Addr is host:port of the server, the same after a restart.
func (s *Server) Addr() string { return s.options.Listen }

// URL is the address of the server.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Now is the time of the clock.
func (s *Server) Now() time.Time { return s.manual.Now() }

// Advance moves the clock, and returns when all that became due is worked off and on disk.
func (s *Server) Advance(ctx context.Context, by time.Duration) error {
	return s.running.Advance(ctx, by)
}

// ReloadTokens reads the file of the tokens again.
func (s *Server) ReloadTokens() { s.running.ReloadTokens() }

// Stop ends the server as TERM does, within the time of ctx, and as a crash does if that is over.
// Its data stay for Again.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.running.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("stop a server for tests: %w", err)
	}
	return nil
}

// Again starts a server that was stopped, with its data and clock, at the same address.
func (s *Server) Again() error { return s.open() }

// Close ends the server. A second call does nothing.
func (s *Server) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.running.Shutdown(now); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("end a server for tests: %w", err)
	}
	return nil
}
