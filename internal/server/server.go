package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/callback"
	"codeq/internal/events"
	"codeq/internal/httpapi"
	"codeq/internal/identity"
	"codeq/internal/peer"
	"codeq/internal/replica"
	"codeq/internal/watch"
	"codeq/session"
	"codeq/shardactor"
	"codeq/store"
	"codeq/ui"
)

// Durability is the durability of every answer: what it says is synced before it is sent.
const Durability = "fsync"

// Options are the options of a server. DataDir and Listen are required.
type Options struct {
	// DataDir is made if it does not exist.
	DataDir string
	// Listen is host:port; port 0 is any free one, which Addr returns.
	Listen string
	// Shards is the number of shards of a new data directory; 0 is the default, or the number
	// of an existing directory.
	Shards int
	Access
	Names
	Artifacts Artifacts
	// RequireLeaseToken refuses calls over HTTP about a delivery without its lease token.
	RequireLeaseToken bool
	// MaxSessions is how many sessions may be open at once; 0 is any number.
	MaxSessions int
	// PingSeconds is the time between two pings of a session; 0 is 20.
	PingSeconds int
	// RetentionFor and DLQRetentionFor are how long ended tasks and dead letters stay in
	// queues without a retention of their own; 0 is for ever.
	RetentionFor    time.Duration
	DLQRetentionFor time.Duration
	// MemoryBytes sizes memtables, block cache, mailboxes and outboxes; 0 is the defaults of
	// the packages.
	MemoryBytes int64
	// EventsBytes bounds the memory of the last events and of the figures of queues; 0 is
	// 48 MiB.
	EventsBytes int64
	Log         zerolog.Logger
	// LogLost returns how many lines of the log were lost; nil is none.
	LogLost func() int64
	Version string
	// Settings is the answer of GET /v1/codeq/admin/config: JSON with all settings and their
	// origins; nil is an empty list.
	Settings []byte
	// FS is the file system of DataDir; nil is that of the machine.
	FS vfs.FS
	// Time is the source of the server's clock; the zero value is the machine.
	Time TimeSource
	Others
}

// Others are the programs that the server calls by itself.
type Others struct {
	// OTLPEndpoint is the URL of the collector that gets spans; empty is none.
	OTLPEndpoint string
	// Cluster makes the server a node of a cluster; nil is a server alone.
	Cluster *Cluster
}

// Access is by what clients are admitted.
type Access struct {
	// Tokens authenticates clients. With nil every client is admitted, on loopback addresses
	// only unless InsecureNoAuth is set. Providers authenticates the clients of providers of
	// identities as well; the server starts it, and closes it at Shutdown.
	Tokens         *auth.Tokens
	Providers      *identity.Providers
	InsecureNoAuth bool
	// Certificate is that of a server that speaks TLS; nil is one that speaks none.
	Certificate *Certificate
}

// Names are names of the server in Host, besides localhost and the name in Listen, and the origins
// of pages on other servers that may send requests. See httpapi.Guard.
type Names struct {
	PublicHosts, AllowOrigins []string
	// PublicURL begins the URLs that callbacks hold. WebhookAllow are the hosts, addresses and
	// networks that callbacks may go to besides public ones over https.
	PublicURL string
	// NodeURL is where clients reach this node, which they are told while it leads a cluster.
	NodeURL      string
	WebhookAllow []string
}

// Server is a running codeq. Its methods may be called from any goroutine. In a cluster there
// is a further one over the same port for each time that the node leads.
type Server struct {
	*port
	store *store.Store
	watched
	webhooks
	engine   *shardactor.Engine
	sessions *session.Registry

	draining chan struct{}
	stop     ending

	// cluster is set of the node itself, lead of the time that it leads; a server alone has
	// neither.
	cluster *cluster
	lead    *lead
}

// port is what of a server is there for as long as the process.
type port struct {
	o        Options
	files    files
	listener *limitListener
	http     *http.Server
	conns    *conns
	front    *front
	// served is closed when the listener's goroutine has ended; serveErr is
	// set before that.
	served   chan struct{}
	serveErr error

	auth    auth.Authenticator
	guard   *httpapi.Guard
	hooks   *callback.Guard
	pages   *ui.Pages
	unwatch []func() // stop watching the credentials

	refusedLog zerolog.Logger // bounded, because strangers can cause any number of lines

	// node is the log of a node of a cluster, peers its port; nil for a server alone.
	node  *replica.Node
	peers *peer.Peers
}

// ending is how a server has stopped.
type ending struct {
	once sync.Once
	err  error
}

// Open takes the port, recovers the store and starts everything. When it returns, the
// server takes work. The error is a sentence for the person who starts the server, and
// nothing runs after it. A refusal of the store is a *store.RefusedError in its chain.
func Open(o Options) (*Server, error) {
	s, err := takePort(o)
	if err != nil {
		return nil, err
	}
	begin := s.begin
	if o.Cluster != nil {
		begin = s.join
	}
	if err := begin(); err != nil {
		return nil, errors.Join(err, s.closePeers(), s.leavePort())
	}
	if err := s.watchCredentials(); err != nil {
		return nil, errors.Join(err, s.Shutdown(context.Background()))
	}
	return s, nil
}

// begin opens the store and serves it.
func (s *Server) begin() error {
	gates, budget := &shardactor.Gates{}, splitMemory(s.o.MemoryBytes)
	opened, err := store.Open(s.storeOptions(gates, budget))
	if err != nil {
		return err
	}
	s.store = opened
	if err := s.recoverWork(gates, budget); err != nil {
		return err
	}
	s.store.StartSyncer()
	s.front.set(s.withAdvance(s.serveWork(budget)))
	return nil
}

// takePort listens and answers requests with the refusal of a server that is starting.
func takePort(o Options) (*Server, error) {
	who, err := authenticator(&o)
	if err != nil {
		return nil, err
	}
	guard, err := httpapi.NewGuard(guardOptions(&o))
	if err != nil {
		return nil, err
	}
	hooks, err := callback.NewGuard(o.WebhookAllow)
	if err != nil {
		return nil, err
	}
	pages := ui.New()
	s := &Server{port: &port{
		o:      o,
		conns:  newConns(),
		front:  newFront(httpapi.NewStarting(o.Log, o.Version, guard, pages)),
		served: make(chan struct{}),
		auth:   who,
		guard:  guard,
		hooks:  hooks,
		pages:  pages,

		refusedLog: atMost(o.Log, refusedAtOnce, time.Second),
	}, draining: make(chan struct{})}
	if err := s.planFiles(); err != nil {
		return nil, err
	}
	port, err := listen(o.Listen)
	if err != nil {
		return nil, err
	}
	s.warnOfLowLimits()
	s.listener = newLimitListener(port, s.files.connections, o.Log)
	s.listener.secured = o.Certificate != nil
	s.http = newHTTPServer(s.front, s.conns, o.Log)
	go s.accept()
	return s, nil
}

// accept is the goroutine of the listener.
func (s *Server) accept() {
	defer close(s.served)
	var l net.Listener = s.listener
	if s.o.Certificate != nil {
		l = tls.NewListener(l, s.o.Certificate.config())
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.serveErr = fmt.Errorf("accept connections on %s: %w", s.Addr(), err)
	}
}

// recoverWork makes the engine over the store, which is closed after an error.
func (s *Server) recoverWork(gates *shardactor.Gates, budget memory) (err error) {
	s.events = events.New(s.eventsOptions())
	s.reports = events.NewReports(s.o.MemoryBytes)
	s.openWebhooks()
	if err := errors.Join(s.openArtifacts(), s.openTracing()); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.engine, err = shardactor.NewEngine(s.engineOptions(gates, budget))
	if err != nil {
		return errors.Join(fmt.Errorf("start engine: %w", err), s.closeWork(context.Background()))
	}
	s.openHistory()
	s.reports.Begin(s.engine.NowMs())
	return nil
}

// serveWork starts the engine and everything around it, and makes the API.
func (s *Server) serveWork(budget memory) http.Handler {
	s.engine.Start()
	s.callbacks.Start(s.engine)
	s.artifacts.Start()
	s.openNotifier()
	s.ticker.start(func() {
		s.events.Tick(s.engine.NowMs())
		s.notifier.Tick(s.engine.NowMs())
	})
	s.sessions = session.NewRegistry(s.sessionOptions(budget))
	s.hub = watch.NewHub(s.watchOptions())
	s.reader = httpapi.New(s.apiOptions())
	return s.reader
}

// clockDiffers logs that the engine's clock differs from the clocks of clients.
func (s *Server) clockDiffers(ahead time.Duration) {
	line, why := s.o.Log.Warn(), "the system clock was set back, or an earlier run of this server had one that was ahead: "+
		"what is due at a time of day comes so much early, and what ended is removed so much early"
	if ahead < 0 {
		why = "the system clock was set ahead: what is due at a time of day comes so much late; a restart takes the system clock over"
	}
	line.Float64("aheadSeconds", ahead.Seconds()).Msg("the engine's clock differs from the system clock: " + why +
		"; 1 % of the time that passes is worked off, delays and leases are not touched")
}

// fatal ends the process. Memory is ahead of the disk then, and no answer was sent about
// the difference; the next start recovers what is on disk.
func (s *Server) fatal(cause error) {
	s.o.Log.WithLevel(zerolog.FatalLevel).Err(cause).Msg("the server cannot go on, the process ends")
	os.Exit(1)
}

func (s *Server) ready() bool {
	select {
	case <-s.draining:
		return false
	default:
		return true
	}
}

// Addr is the address of the listener, with the port that was taken.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Shards is the number of shards of the data directory.
func (s *Server) Shards() int { return s.database().Shards() }

// Created reports whether the data directory was made by this Open.
func (s *Server) Created() bool { return s.database().Created() }

func (s *Server) database() *store.Store {
	if s.cluster != nil {
		return s.cluster.store
	}
	return s.store
}

// Sessions is the number of sessions that are open now.
func (s *Server) Sessions() int {
	if working := s.work(); working != nil {
		return working.sessions.Count()
	}
	return 0
}

// Serve returns when the server accepts no more connections: nil after Shutdown. After an
// error the caller must still call Shutdown.
func (s *Server) Serve() error {
	<-s.served
	return s.serveErr
}

// Shutdown stops everything in order and returns when it has ended. Until ctx ends,
// requests under way may finish and sessions may drain; after that their connections are
// closed. What the server has accepted is on disk either way. A second call waits for the
// first one and returns the same error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop.once.Do(func() { s.stop.err = s.shutdown(ctx) })
	return s.stop.err
}

func (s *Server) shutdown(ctx context.Context) error {
	close(s.draining)
	for _, stop := range s.unwatch {
		stop()
	}
	if s.cluster != nil {
		return s.leaveCluster(ctx)
	}
	ended := s.endRequests(ctx)
	s.hub.Shutdown()
	s.callbacks.Stop()
	sessionsErr := s.sessions.Shutdown(ctx)
	requestsErr := ended()
	s.ticker.end()
	s.poster.Stop(ctx)
	// Stopping the engine answers the requests that still wait for a shard.
	engineErr := s.engine.Stop()
	s.closePort()
	return errors.Join(sessionsErr, requestsErr, engineErr, s.closeWork(ctx))
}

// endRequests accepts no request any more. ended returns when those under way have ended, which
// are cut when ctx ends.
func (p *port) endRequests(ctx context.Context) (ended func() error) {
	requests := make(chan error, 1)
	go func() { requests <- p.http.Shutdown(ctx) }()
	p.conns.closeUnused()
	return func() error {
		err := <-requests
		if err != nil {
			p.conns.cut()
			err = errors.Join(fmt.Errorf("finish requests: %w", err), p.http.Close())
		}
		<-p.served
		return err
	}
}

// closePort waits for the connections, whose requests have ended, and closes the providers.
func (p *port) closePort() {
	p.conns.wait()
	p.listener.answered.Wait()
	if p.o.Providers != nil {
		p.o.Providers.Close()
	}
}

// closeWork closes what is around an engine that has stopped, and its store.
func (s *Server) closeWork(ctx context.Context) error {
	if s.tracer != nil {
		s.tracer.Stop(ctx)
	}
	filesErr := s.artifacts.close()
	s.store.StopSyncer()
	return errors.Join(filesErr, s.events.Close(), s.store.Close())
}

// leavePort stops a server that never got ready.
func (s *Server) leavePort() error {
	s.conns.cut()
	err := s.http.Close()
	<-s.served
	s.conns.wait()
	s.listener.answered.Wait()
	if err != nil {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}
