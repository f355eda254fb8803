package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"codeq/actor"
	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// closeGrace is how long clients may take to close their sockets after the grace of a
// shutdown.
const closeGrace = 2 * time.Second

// Engine is what sessions use of the engine of the shards.
type Engine interface {
	Router
	// Post pushes messages into the mailbox of a shard, all or none.
	Post(shardNo int, batch []shard.Message, bytes int, class mailbox.Class) mailbox.Verdict
	// NewConsumer makes the consumer of a new session.
	NewConsumer(o shardactor.ConsumerOptions) *shardactor.Consumer
	// EnterSession refuses one more session of a tenant and of a subject that have so many
	// open.
	EnterSession(tenant string, ofTenant, ofSubject int) *wire.Error
}

// Options are the options of a Registry. All but MaxSessions, MaxGreeting, PingSeconds,
// OutboxBytes, Refused, Secret and Random are required.
type Options struct {
	Engine Engine
	Auth   auth.Authenticator
	// NowMs is the engine's clock, Unix milliseconds.
	NowMs func() int64
	Log   zerolog.Logger
	// Refused is called for each hello that is refused because of its client; nil is no
	// report.
	Refused func(auth.Attempt)
	// Version and Durability are parts of the welcome.
	Version    string
	Durability string
	// Leader is where clients reach this node while it leads a cluster; empty for none.
	Leader string
	// MaxSessions bounds the open sessions; 0 is no bound.
	MaxSessions int
	// MaxGreeting bounds the sockets without a hello; 0 and more than wire.MaxSocketsNoHello
	// are wire.MaxSocketsNoHello.
	MaxGreeting int
	// PingSeconds is the time between two regular pings of a session; 0 is
	// wire.PingSeconds.
	PingSeconds int
	// OutboxBytes bounds the payloads that all sessions together hold for clients that have not
	// taken them; 0 is no bound.
	OutboxBytes int64
	// Secret signs the keys by which sessions are resumed; without one no session can be.
	Secret []byte
	// Random is the source of session ids; crypto/rand when nil.
	Random io.Reader
}

// Registry upgrades requests to sessions and has those that are open. Its methods may be called
// from any goroutine.
type Registry struct {
	o          Options
	keys       keyring
	goroutines sync.WaitGroup
	// unsentBytes is the payload that all sessions hold; relieving says that a session was
	// closed to lower it.
	unsentBytes atomic.Int64
	relieving   atomic.Bool

	mu sync.Mutex
	// sessions are those whose goroutines run.
	sessions map[*session]state
	// newest is the newest socket of every session, until its goroutines end.
	newest map[wire.SessionID]*session
	// lately are sessions without a socket in their grace. Those whose grace is over are
	// removed from lookLateAtMs on.
	lately       map[wire.SessionID]lateSession
	lookLateAtMs int64
	// greeting counts the sockets without a hello, those that are being upgraded included; open
	// counts the sessions.
	greeting int
	open     int
	draining bool
	// openOf counts the sessions of each subject and, without a name, of each tenant.
	openOf map[subject]int
}

// subject is whom sessions are of.
type subject struct{ tenant, name string }

// state is how far a session is.
type state int

const (
	stateGreeting state = iota
	stateOpen
	stateOver
)

// NewRegistry makes a Registry without sessions.
func NewRegistry(o Options) *Registry {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.MaxGreeting <= 0 || o.MaxGreeting > wire.MaxSocketsNoHello {
		o.MaxGreeting = wire.MaxSocketsNoHello
	}
	return &Registry{
		o: o, keys: keyring{o.Secret}, sessions: make(map[*session]state),
		newest: make(map[wire.SessionID]*session), lately: make(map[wire.SessionID]lateSession), openOf: make(map[subject]int),
	}
}

// Count is the number of open sessions: they had a good hello and have not ended.
func (r *Registry) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// reserve counts one more socket, or says why it is refused.
func (r *Registry) reserve() *wire.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return drainingError
	}
	if r.greeting >= r.o.MaxGreeting {
		return tooManySockets
	}
	r.greeting++
	r.goroutines.Add(1)
	return nil
}

// unreserve subtracts a socket that did not become a session.
func (r *Registry) unreserve() {
	r.mu.Lock()
	r.greeting--
	r.mu.Unlock()
	r.goroutines.Done()
}

// start starts the goroutines of a session that is reserved.
func (r *Registry) start(s *session) {
	r.mu.Lock()
	r.sessions[s] = stateGreeting
	draining := r.draining
	r.mu.Unlock()
	s.writer = actor.Start(s.box, s.write)
	go s.read()
	if draining {
		s.happened(&serverDrains{})
	}
}

// Open is the number of open sessions of a tenant.
func (r *Registry) Open(tenant string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.openOf[subject{tenant, ""}]
}

// admit counts a session as open, or says which limit of sessions is reached.
func (r *Registry) admit(s *session, p *auth.Principal) *wire.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o.MaxSessions > 0 && r.open >= r.o.MaxSessions {
		return tooManySessions
	}
	if refusal := r.o.Engine.EnterSession(p.Tenant, r.openOf[subject{p.Tenant, ""}], r.openOf[subject{p.Tenant, p.Subject}]); refusal != nil {
		return refusal
	}
	r.sessions[s], s.of = stateOpen, subject{p.Tenant, p.Subject}
	r.greeting--
	r.counts(s, 1)
	return nil
}

// counts adds to the numbers of open sessions. r.mu is held.
func (r *Registry) counts(s *session, n int) {
	r.open += n
	for _, of := range []subject{s.of, {s.of.tenant, ""}} {
		if r.openOf[of] += n; r.openOf[of] == 0 {
			delete(r.openOf, of)
		}
	}
}

// ended subtracts a session. A second call does nothing.
func (r *Registry) ended(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.sessions[s] {
	case stateGreeting:
		r.greeting--
	case stateOpen:
		r.counts(s, -1)
	case stateOver:
		return
	}
	r.sessions[s] = stateOver
	r.late(s)
}

// remove removes a session whose goroutines end.
func (r *Registry) remove(s *session) {
	r.mu.Lock()
	delete(r.sessions, s)
	if r.newest[s.id] == s {
		delete(r.newest, s.id)
	}
	r.mu.Unlock()
	r.goroutines.Done()
}

// drawID draws the id of a new session.
func (r *Registry) drawID(s *session) (wire.SessionID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var random [10]byte
	if _, err := io.ReadFull(r.o.Random, random[:]); err != nil {
		return wire.SessionID{}, fmt.Errorf("draw session id: %w", err)
	}
	s.id = wire.SessionID(wire.NewUUIDv7(r.o.NowMs(), random))
	r.newest[s.id] = s
	return s.id, nil
}

// replace makes s the socket of a session and ends its older socket, if the server still has
// it. The lock of s is held and that of the older socket is taken: a newer socket may wait
// for an older one, never the other way.
func (r *Registry) replace(s *session, id wire.SessionID) {
	r.mu.Lock()
	s.id = id
	older := r.newest[id]
	r.newest[id] = s
	delete(r.lately, id)
	r.mu.Unlock()
	if older != nil {
		older.happened(&Replaced{})
	}
}

// Shutdown ends all sessions and returns when their goroutines have ended. It refuses new ones
// and tells clients to drain. A session without a task in flight and an unanswered request is
// closed at once, the others when they have none or when ctx ends. The error says how many
// did not take the close frame. A second call waits as well.
func (r *Registry) Shutdown(ctx context.Context) error {
	grace := 0
	if until, ok := ctx.Deadline(); ok {
		grace = max(0, int(time.Until(until)/time.Second))
	}
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	for _, s := range r.running() {
		s.happened(&serverDrains{GraceSeconds: grace})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.goroutines.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, s := range r.running() {
		s.happened(&serverCloses{})
	}
	select {
	case <-ended:
		return nil
	case <-time.After(closeGrace):
	}
	cut := r.running()
	for _, s := range cut {
		s.socket.Cut()
	}
	<-ended
	if len(cut) > 0 {
		return fmt.Errorf("close sessions: %d did not take the close and were cut", len(cut))
	}
	return nil
}

func (r *Registry) running() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*session, 0, len(r.sessions))
	for s := range r.sessions {
		all = append(all, s)
	}
	return all
}
