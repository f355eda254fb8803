package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"codeq/internal/httpapi"
	"codeq/internal/replica"
	"codeq/shardactor"
	"codeq/store"
)

// Cluster is what a node of a cluster needs beside the options of a server alone.
type Cluster struct {
	// Listen is the address of the port for other nodes; empty is the one that they know.
	Listen string
	// Layer carries what the nodes say to each other in place of that port, and no requests are
	// passed then; the server closes it. nil is the port.
	Layer raft.StreamLayer
	// Timing are the times of elections; zero is the default.
	Timing replica.Timing
}

// cluster is the node of a server, for as long as the process.
type cluster struct {
	server   *Server
	store    *store.Store
	node     *replica.Node
	follower *door
	// serving ends what Serve has started.
	serving func(context.Context) error

	// leading is the server of the time that this node leads, nil at other times.
	leading atomic.Pointer[Server]
	// turn is held while the handler changes between that of the leader and the door.
	turn sync.Mutex
	// stopping is the time that Shutdown has, set before stop is called.
	stopping context.Context
	stop     context.CancelFunc
	stopped  chan struct{}
}

// lead is one time that this node leads.
type lead struct {
	lease *replica.Lease
	gates shardactor.Gates
	// lost is closed when the lease is lost and the shards have stopped.
	lost     chan struct{}
	requests requests
	handler  http.Handler
}

// join opens the database and takes part in the cluster.
func (s *Server) join() error {
	fs := s.o.FS
	if fs == nil {
		fs = vfs.Default
	}
	id, is, err := replica.ReadIdentity(fs, s.o.DataDir)
	if err == nil && !is {
		err = fmt.Errorf("%s is not the directory of a node of a cluster: make it one with \"codeq cluster init\" or \"codeq cluster join\"", s.o.DataDir)
	}
	if err != nil {
		return err
	}
	layer := s.o.Cluster.Layer
	if layer == nil {
		if err := s.openPeers(id); err != nil {
			return err
		}
		layer = raftLayer{s.peers.Raft()}
	}
	c := &cluster{server: s, stopped: make(chan struct{})}
	o := s.storeOptions(&shardactor.Gates{}, splitMemory(s.o.MemoryBytes))
	o.Node, o.Synced, o.LevelChanged, o.CountFree = id.Node, nil, c.levelChanged, c.countFree
	if c.store, err = store.Open(o); err != nil {
		return err
	}
	at := replica.Options{
		Store: c.store, FS: fs, Dir: s.o.DataDir, Node: id.Node, Layer: layer, Log: s.o.Log, Fatal: s.fatal, Timing: s.o.Cluster.Timing,
	}
	if s.peers != nil {
		at.MayLead, at.Announced = s.peers.MayLead, s.peers.Announced
	}
	if c.node, err = replica.Open(at); err != nil {
		return errors.Join(err, c.store.Close())
	}
	s.node = c.node
	c.store.StartSyncer()
	s.cluster = c
	c.follower = &door{
		front: s.front, follower: httpapi.NewStarting(s.o.Log, s.o.Version, s.guard, s.pages),
		known: func() (bool, <-chan struct{}) { return false, nil },
	}
	if s.peers != nil {
		c.follower.follower, c.follower.known, c.follower.send = s.newFollower(c.follower), s.peers.LeaderKnown, s.peers.Pass
	}
	s.front.set(c.follower)
	if s.peers != nil {
		c.serving = s.servePeers(c.node)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go c.run(ctx)
	return nil
}

// Node is the node of the cluster, nil for a server alone.
func (s *Server) Node() *replica.Node {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.node
}

// Leading reports whether requests are served here: always by a server alone, by a node of a
// cluster from the recovery of its shards until it leads no more.
func (s *Server) Leading() bool { return s.cluster == nil || s.cluster.leading.Load() != nil }

// work is the server whose engine runs, nil if this node does not lead.
func (s *Server) work() *Server {
	if s.cluster == nil {
		return s
	}
	return s.cluster.leading.Load()
}

func (c *cluster) levelChanged(level store.Level) {
	if s := c.leading.Load(); s != nil {
		s.lead.gates.SpaceChanged(level)
	}
}

// countFree counts with the disks of all voters while this node leads.
func (c *cluster) countFree(ownBytes int64) int64 {
	if c.leading.Load() == nil || c.server.peers == nil {
		return ownBytes
	}
	return c.server.peers.FreeBytes(ownBytes)
}

// run leads whenever this node is elected, until ctx ends.
func (c *cluster) run(ctx context.Context) {
	defer close(c.stopped)
	for {
		lease, err := c.node.Lead(ctx)
		if err != nil {
			return
		}
		if err := c.reign(ctx, lease); err != nil && !errors.Is(err, store.ErrNotLeader) {
			c.server.o.Log.Error().Err(err).Msg("this node was elected and could not serve; another one is asked to")
			c.handOver(ctx)
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
		}
	}
}

// retryAfter is the pause of a node that could not serve and is still elected.
const retryAfter = time.Second

// handOver gives the lead away, if another node can take it.
func (c *cluster) handOver(ctx context.Context) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	if err := c.transfer(ctx, ""); err != nil {
		c.server.o.Log.Warn().Err(err).Msg("the lead could not be handed over")
		return false
	}
	return true
}

// awaitNext waits until another node leads, so that requests which wait for it here can go there.
func (c *cluster) awaitNext(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	for {
		known, changed := c.follower.known()
		if known || changed == nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// transfer has another node lead. Requests that come meanwhile wait for it at the door, and those
// that are being answered may end before: after that nobody knows what becomes of them.
func (c *cluster) transfer(ctx context.Context, to string) error {
	s := c.leading.Load()
	if s == nil {
		return c.node.Transfer(ctx, to)
	}
	c.server.front.set(c.follower)
	s.lead.requests.wait(settleFor)
	err := c.node.Transfer(ctx, to)
	if err == nil {
		return nil
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.leading.Load() == s {
		s.lead.requests.open()
		c.server.front.set(s.lead.handler)
	}
	return err
}

// settleFor is how long a hand-over waits for requests that are being answered. Some wait for a
// task or a result, and are given up; others take as long as a sync or two.
const settleFor = 50 * time.Millisecond

// transferFor is how long a node waits for another one to take the lead.
const transferFor = 2 * time.Second

// reign opens the shards and serves until the lease is lost, or ctx ends.
func (c *cluster) reign(ctx context.Context, lease *replica.Lease) error {
	began := time.Now()
	s := &Server{port: c.server.port, draining: make(chan struct{}), lead: &lead{lease: lease, lost: make(chan struct{})}}
	gates, budget := &s.lead.gates, splitMemory(s.o.MemoryBytes)
	opened, err := c.store.Lead(lease, gates.Synced)
	if err != nil {
		lease.End()
		return err
	}
	s.store = opened
	if err := s.recoverWork(gates, budget); err != nil {
		lease.End()
		return err
	}
	lease.SetClock(s.engine.NowMs)
	handler := s.serveWork(budget)
	s.lead.handler = &leader{lead: s.lead, api: handler, follower: c.follower}
	c.leading.Store(s)
	s.front.set(s.lead.handler)
	s.o.Log.Info().Dur("tookMs", time.Since(began)).Msg("this node leads")
	select {
	case <-lease.Lost():
		now, cancel := context.WithCancel(context.Background())
		cancel()
		err = s.depose(now, c)
	case <-ctx.Done():
		err = s.depose(c.stopping, c)
	}
	s.o.Log.Info().Err(err).Msg("this node leads no more")
	return err
}

// depose ends a time as the leader. Until ctx ends, sessions may drain, unless the lease is lost.
func (s *Server) depose(ctx context.Context, c *cluster) error {
	c.turn.Lock()
	c.leading.Store(nil)
	s.front.set(c.follower)
	c.turn.Unlock()
	select {
	case <-s.lead.lease.Lost():
		s.store.Deposed()
		s.lead.lease.End()
		// Nothing leaves the shards once they have stopped, so whoever waits may be told.
		if err := s.engine.Stop(); err != nil {
			return err
		}
		close(s.lead.lost)
	default:
	}
	close(s.draining)
	s.callbacks.Stop()
	var ended sync.WaitGroup
	ended.Go(s.hub.Shutdown)
	sessionsErr := s.sessions.Shutdown(ctx)
	ended.Wait()
	if !s.lead.requests.wait(requestsFor) {
		s.lead.requests.cut()
		s.lead.requests.wait(0)
	}
	s.ticker.end()
	s.poster.Stop(ctx)
	engineErr := s.engine.Stop()
	err := errors.Join(sessionsErr, engineErr, s.closeWork(ctx))
	s.lead.lease.End()
	return err
}

// requestsFor is how long the clients of a leader that is none any more may take to read their
// answers; then their connections are cut.
const requestsFor = time.Second

// leaveCluster is shutdown for a node.
func (s *Server) leaveCluster(ctx context.Context) error {
	c := s.cluster
	handed := s.Leading() && c.handOver(ctx)
	c.stopping = ctx
	c.stop()
	<-c.stopped
	if handed {
		c.awaitNext(ctx)
	}
	// Nobody comes any more when this node stops to pass requests.
	ended := s.endRequests(ctx)
	var servingErr error
	if c.serving != nil {
		servingErr = c.serving(ctx)
	}
	requestsErr := ended()
	s.closePort()
	nodeErr := c.node.Close()
	c.store.StopSyncer()
	return errors.Join(requestsErr, servingErr, nodeErr, s.closePeers(), c.store.Close())
}

// leader is the handler of a node that leads.
type leader struct {
	lead     *lead
	api      http.Handler
	follower *door
}

// ServeHTTP implements http.Handler. A read waits until this node has led after it came: what
// another leader has written meanwhile would be missing.
func (l *leader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.serves(w, r) {
		l.follower.admit(w, r, l)
	}
}

// serves reports whether this node has answered as the leader.
func (l *leader) serves(w http.ResponseWriter, r *http.Request) bool {
	if !l.lead.requests.enter(r) {
		return false
	}
	defer l.lead.requests.leave(r)
	if reads(r) && l.lead.lease.Verify(r.Context()) != nil {
		return false
	}
	l.api.ServeHTTP(w, r)
	return true
}

// apiPath begins the paths of the API.
const apiPath = "/v1/"

// reads reports whether a request only reads tasks and queues.
func reads(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.HasPrefix(r.URL.Path, apiPath)
}

// requests are those of one time as the leader. Any goroutine.
type requests struct {
	mu      sync.Mutex
	running map[*http.Request]bool
	closed  bool
	// idle is closed when the last one ends; nil until somebody waits.
	idle chan struct{}
}

// enter adds a request, unless somebody waits for their end.
func (q *requests) enter(r *http.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.running == nil {
		q.running = make(map[*http.Request]bool)
	}
	q.running[r] = true
	return true
}

func (q *requests) leave(r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delete(q.running, r); len(q.running) == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// cut closes the connections of clients here whose requests run still.
func (q *requests) cut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for r := range q.running {
		if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			_ = c.Close() // what was to be sent is given up
		}
	}
}

// open lets requests in again after wait.
func (q *requests) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = false
}

// wait lets none in any more and reports whether all have ended within a time; 0 is any time.
func (q *requests) wait(within time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	if len(q.running) == 0 {
		q.mu.Unlock()
		return true
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	var late <-chan time.Time
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-idle:
		return true
	case <-late:
		return false
	}
}

func (q *requests) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.running)
}
