package codeqtest

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/client"
	"codeq/internal/testserver"
)

// advanceFor is how long one advance may take.
const advanceFor = time.Minute

// Server is a server of one test, and ends with it. Its methods may be called from any goroutine.
type Server struct {
	// Client is a client of the server; its notices are dropped.
	Client *client.Client
	t      testing.TB
	server *testserver.Server
}

// New starts a server.
func New(t testing.TB) *Server {
	t.Helper()
	running, err := testserver.Start(testserver.Options{Log: zerolog.Nop(), Seed: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	quiet := client.WithNotices(func(string) {}) // a test may have ended when the last of them comes
	c, err := client.New(running.URL(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Server{Client: c, t: t, server: running}
}

// URL is the address of the server, for another client.
func (s *Server) URL() string { return s.server.URL() }

// Now is the time of the server.
func (s *Server) Now() time.Time { return s.server.Now() }

// Advance moves the clock of the server and returns when all that became due is done and on its disk.
// It stops at each moment at which something is due: a task whose lease ends after 30 s and that is
// tried again 5 s later is ready after an advance of 40 s.
func (s *Server) Advance(by time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), advanceFor)
	defer cancel()
	if err := s.server.Advance(ctx, by); err != nil {
		s.t.Fatal(err)
	}
}
