package server

import (
	"crypto/rand"
	"io"
	"time"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/internal/httpapi"
	"codeq/internal/tracing"
	"codeq/session"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
)

// The functions below make the options of each part of the server. For each field that
// stays zero parts_test.go has a reason.

func guardOptions(o *Options) *httpapi.GuardOptions {
	return &httpapi.GuardOptions{
		Tokens: o.Tokens != nil || o.Providers != nil, Listen: o.Listen, PublicHosts: o.PublicHosts, AllowOrigins: o.AllowOrigins,
	}
}

func (s *Server) storeOptions(gates *shardactor.Gates, budget memory) store.Options {
	return store.Options{
		FS: s.o.FS, Dir: s.o.DataDir, Shards: s.o.Shards,
		Log: s.o.Log, Random: s.random(), Synced: gates.Synced,
		LevelChanged: gates.SpaceChanged, MemTableBytes: budget.memTableBytes, CacheBytes: budget.cacheBytes,
		MaxOpenTables: s.files.tables,
	}
}

func (s *Server) eventsOptions() events.Options {
	return events.Options{Shards: s.store.Shards(), MemoryBytes: s.o.EventsBytes}
}

func (s *Server) engineOptions(gates *shardactor.Gates, budget memory) shardactor.EngineOptions {
	o := shardactor.EngineOptions{
		Store: s.store, Gates: gates, Random: s.random(), Log: s.o.Log, Fatal: s.fatal,
		Mailbox: budget.mailbox(s.store.Shards()), Events: s.artifacts, Notes: s.reports.Add, Settings: s.callbacks.Follow, PublicURL: s.o.PublicURL,
		Retention: shard.Retention{
			DoneForMs: s.o.RetentionFor.Milliseconds(), DeadForMs: s.o.DLQRetentionFor.Milliseconds(),
		},
		StartClock: func(floorMs int64) func() int64 {
			clock := newEngineClock(floorMs, s.o.Time)
			clock.tell = s.clockDiffers
			return clock.NowMs
		},
	}
	if m := s.o.Time.manual; m != nil {
		m.serves(gates)
		o.Observe = m.observe
	}
	if s.tracer != nil {
		o.Events, o.TraceParent = s.tracer, s.tracer.TraceParent
	}
	return o
}

// openTracing makes the tracer of a server with a collector. It gets the events of the engine
// first.
func (s *Server) openTracing() (err error) {
	if s.o.OTLPEndpoint != "" {
		s.tracer, err = tracing.New(tracing.Options{
			Endpoint: s.o.OTLPEndpoint, Version: s.o.Version, Next: s.artifacts, Log: atMost(s.o.Log, 1, time.Minute),
			NowMs: func() int64 { return s.engine.NowMs() },
		})
	}
	return err
}

// random is the source of ids, secrets and jitter.
func (s *Server) random() io.Reader {
	if m := s.o.Time.manual; m != nil {
		return m.random
	}
	return rand.Reader
}

// socketMs is the clock of sockets: that of the engine, but in a server for tests.
func (s *Server) socketMs() func() int64 {
	if m := s.o.Time.manual; m != nil {
		return m.socketMs
	}
	return s.engine.NowMs
}

func (s *Server) sessionOptions(budget memory) session.Options {
	return session.Options{
		Engine: s.engine, Auth: s.auth, NowMs: s.socketMs(), Log: s.o.Log,
		Version: s.o.Version, Durability: Durability, Leader: s.o.NodeURL, MaxSessions: s.o.MaxSessions,
		MaxGreeting: s.files.connections / greetingPart,
		PingSeconds: s.o.PingSeconds,
		Secret:      s.store.Secret(), OutboxBytes: budget.outboxesBytes,
		Refused: s.refused,
	}
}

// logins are the logins of pages, nil without tokens.
func (s *Server) logins() *auth.Logins {
	if s.o.Tokens == nil && s.o.Providers == nil {
		return nil
	}
	return auth.NewLogins(s.o.Tokens, s.auth, s.store.Secret())
}

func (s *Server) apiOptions() httpapi.Options {
	o := httpapi.Options{
		Engine: s.engine, Store: s.store, Auth: s.auth, Sessions: s.sessions, Events: s.hub, Guard: s.guard,
		NowMs: s.engine.NowMs, WallMs: s.o.Time.orMachine().wallMs,
		Log: s.o.Log, Version: s.o.Version, Durability: Durability,
		Ready: s.ready, Ends: httpapi.Ends{Draining: s.draining}, RequireLeaseToken: s.o.RequireLeaseToken,
		Refused: s.refused, Settings: s.o.Settings, WriteMetrics: s.writeMetrics, AnswerBytes: splitMemory(s.o.MemoryBytes).outboxesBytes,
		Site: httpapi.Site{Logins: s.logins(), Pages: s.pages, LeaderURL: s.o.NodeURL, Cluster: s.clusterOf()}, Hooks: httpapi.Hooks{Callbacks: s.callbacks, Post: s.poster.Send, Files: s.artifacts.Keeper, Notifier: s.notifier},
	}
	if s.lead != nil {
		o.Lost = s.lead.lost
	}
	return o
}
