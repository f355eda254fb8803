package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Options are the options of Open. All are required but Listener, Refusals, Data and MostPassed.
type Options struct {
	// DataDir has the file of the node.
	DataDir string
	// Listener accepts TCP connections of other nodes; nil listens at the address of the node.
	Listener net.Listener
	Log      zerolog.Logger
	// Refusals is a log whose lines are bounded, because strangers cause them.
	Refusals zerolog.Logger
	// Data says what a machine that joins must know of the database.
	Data func() Data
	// NowMs is the system clock, in Unix milliseconds.
	NowMs func() int64
	// Form is the newest form of entries of the log that this program reads.
	Form int
	// Open says that this node asks no client for a credential.
	Open bool
	// MostPassed is how many connections other nodes may have here for what they pass; 0 is any
	// number.
	MostPassed int
}

// Data is what a new node must know of the database of its cluster.
type Data struct {
	CreationID string
	Shards     int
}

// Member is a node of the cluster.
type Member struct {
	Node, Address string
	// Voter is false until the node has caught up.
	Voter bool
}

// Node is the replicated log as this package needs it. Any goroutine.
type Node interface {
	// Leader is the node that leads and its address, "" if none is known.
	Leader() (node, address string)
	// Changes has a token after each change of the leader, until stop is called.
	Changes() (changes <-chan struct{}, stop func())
	// Members are those of the newest configuration that this node knows.
	Members() []Member
	// LastLog is how far this node has the log.
	LastLog() uint64
	// HasNearlyAll reports whether a node that has that much of the log may vote.
	HasNearlyAll(lastLog uint64) bool
	// About is what the node says of itself.
	About() About
	// The leader alone can change the members: a node is a member first, and a voter when it has
	// that much of the log.
	AddNonvoter(ctx context.Context, m Member) error
	AddVoter(ctx context.Context, m Member, lastLog uint64) error
	Remove(ctx context.Context, node string) error
	// Transfer has another node lead, the best one for "".
	Transfer(ctx context.Context, node string) error
}

// Peers is the port of a node for the other nodes, and its certificate. Its methods may be
// called from any goroutine.
type Peers struct {
	log, refusals zerolog.Logger
	data          func() Data
	directory     *directory
	listener      net.Listener
	lanes
	way
	announced
	looks   looks
	closing chan struct{}
	running sync.WaitGroup
	renewal *time.Timer

	// changing is held during a change of the members. waiting is when each node without a vote
	// that has all data asked for it last.
	changing sync.Mutex
	waiting  map[string]time.Time

	mu     sync.Mutex
	closed bool
	// lines are the open connections that were accepted.
	lines map[*line]bool
	node  Node
	// seen are the nodes that were members at some time.
	seen    map[string]bool
	passing passing
}

// announced is what this node tells others of itself: Options.Form and Options.Open.
type announced struct {
	form int
	open bool
}

// lanes are the uses of the port.
type lanes struct {
	raft, passed, nodes *lane
	// handshakes has a token for each that is under way.
	handshakes chan struct{}
	// mostPassed is Options.MostPassed.
	mostPassed int
}

// way is where requests are passed, and how.
type way struct {
	leader    atomic.Pointer[target]
	proxy     *httputil.ReverseProxy
	transport *http.Transport
}

// Open reads which node the data directory is of, and listens for other nodes. Nothing is
// served before Serve but the replicated log.
func Open(o Options) (*Peers, error) {
	d, err := openDirectory(o.DataDir)
	if err != nil {
		return nil, err
	}
	if _, err := d.renew(time.Now()); err != nil {
		return nil, err
	}
	if o.Listener == nil {
		if o.Listener, err = net.Listen("tcp", d.has.Address); err != nil {
			return nil, fmt.Errorf("listen for other nodes: %w", err)
		}
	}
	p := &Peers{
		log: o.Log, refusals: o.Refusals, data: o.Data, looks: looks{nowMs: o.NowMs}, announced: announced{o.Form, o.Open}, directory: d, listener: o.Listener,
		lanes:   lanes{handshakes: make(chan struct{}, mostHandshakes), mostPassed: o.MostPassed},
		closing: make(chan struct{}), lines: map[*line]bool{}, seen: map[string]bool{}, waiting: map[string]time.Time{},
	}
	p.raft, p.passed, p.nodes = p.newLane(), p.newLane(), p.newLane()
	p.leader.Store(newTarget("", ""))
	p.newProxy()
	p.renewal = time.AfterFunc(time.Until(d.due()), p.renew)
	p.running.Go(p.accept)
	return p, nil
}

func (p *Peers) newLane() *lane {
	return &lane{port: p, in: make(chan net.Conn), closed: make(chan struct{})}
}

// Raft is the part of the port for the replicated log.
func (p *Peers) Raft() Raft { return Raft{p.raft} }

// Self is this node.
func (p *Peers) Self() Member { return p.directory.self }

// Invite makes a token with which a machine becomes a node; it counts once, for life.
func (p *Peers) Invite(life time.Duration) (string, error) {
	return p.directory.invite(life, time.Now())
}

// renewAgain is the pause after a renewal that failed.
const renewAgain = time.Hour

// renew runs when the certificate is old.
func (p *Peers) renew() {
	next, err := p.directory.renew(time.Now())
	wait := time.Until(next)
	if err != nil {
		wait = renewAgain
		p.log.Error().Err(err).Msg("the certificate of this node could not be made anew; it is tried again")
	}
	p.renewal.Reset(max(wait, renewAgain))
}

// Close closes the port and all its connections, and returns when its goroutines have ended.
// The servers of Serve must have stopped.
func (p *Peers) Close() error {
	close(p.closing)
	p.renewal.Stop()
	err := p.closeAll()
	p.transport.CloseIdleConnections()
	p.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the port of the nodes: %w", err)
	}
	return nil
}
