package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"codeq/internal/meter"
	"codeq/store"
)

const (
	logName = "raft"

	// trailingLogs is how many entries stay in the log for nodes that are behind a snapshot.
	trailingLogs = 1000
	// snapshotBytes of entries are worth a snapshot: as much is applied again after a power
	// cut, and the log is as long.
	snapshotBytes = 256 << 20
	// snapshotEvery is how often a node looks at that.
	snapshotEvery = 5 * time.Second

	// cachedEntries of the log stay in memory: those on their way to the other nodes and into
	// the database.
	cachedEntries = 32

	transportPool    = 3
	transportTimeout = 10 * time.Second
	pipelined        = 16
)

// Timing are the times of raft; zero means the default.
type Timing struct {
	// Heartbeat is how long a follower waits for its leader before it wants an election, and
	// Election how long a candidate waits for votes. Lease is how long a leader without a
	// majority goes on.
	Heartbeat, Election, Lease time.Duration
}

func (t Timing) orDefault() Timing {
	if t.Heartbeat == 0 {
		return Timing{Heartbeat: 700 * time.Millisecond, Election: 700 * time.Millisecond, Lease: 500 * time.Millisecond}
	}
	return t
}

// Options are those of a node. All are required but MayLead, Announced and Timing.
type Options struct {
	// Store is the database, opened with the id of the node.
	Store *store.Store
	// FS and Dir are the data directory.
	FS  vfs.FS
	Dir string
	// Node is the id of this node.
	Node string
	// Layer carries what the nodes say to each other.
	Layer raft.StreamLayer
	Log   zerolog.Logger
	// Fatal ends the process, and must not return: what the log says cannot be written.
	Fatal func(error)
	// MayLead refuses to lead with its error, and must return soon; nil never refuses. Another
	// node is asked to lead then.
	MayLead func(ctx context.Context) error
	// Announced is the newest form of entries that all nodes have announced, at most NewestForm: a
	// leader writes no newer one, because a node stops at an entry that it cannot read. nil is
	// NewestForm. It must return at once.
	Announced func() int
	Timing
}

// Node is a node of a cluster. Its methods may be called from any goroutine.
type Node struct {
	log       zerolog.Logger
	id        string
	machine   *machine
	snapshots *snapshots
	logs      *logStore
	transport *raft.NetworkTransport
	raft      *raft.Raft
	verifying verifying
	mayLead   func(ctx context.Context) error

	stop    chan struct{}
	stopped sync.WaitGroup

	mu        sync.Mutex
	lease     *Lease
	listeners map[chan struct{}]bool
}

// Open starts the node: it follows, or leads when it is elected. The store must hold the
// directory; Close does not close it.
func Open(o Options) (*Node, error) {
	n := &Node{
		log: o.Log, id: o.Node, mayLead: o.MayLead, stop: make(chan struct{}), listeners: make(map[chan struct{}]bool),
	}
	if err := n.openState(&o); err != nil {
		return nil, err
	}
	n.transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: o.Layer, MaxPool: transportPool, MaxRPCsInFlight: pipelined, Timeout: transportTimeout, Logger: newLogger(o.Log),
	})
	cached, err := raft.NewLogCache(cachedEntries, n.logs)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", o.Node, err), n.transport.Close(), n.logs.db.Close())
	}
	if n.raft, err = raft.NewRaft(config(&o), n.machine, cached, n.logs, n.snapshots, n.transport); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", o.Node, err), n.transport.Close(), n.logs.db.Close())
	}
	n.verifying.verify = func() error { return n.raft.VerifyLeader().Error() }
	n.watch()
	n.stopped.Go(n.snapshotLoop)
	return n, nil
}

func config(o *Options) *raft.Config {
	timing := o.Timing.orDefault()
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(o.Node)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = timing.Heartbeat, timing.Election, timing.Lease
	c.CommitTimeout = min(c.CommitTimeout, timing.Heartbeat/4)
	c.Logger = newLogger(o.Log)
	c.NoSnapshotRestoreOnStart = true
	c.TrailingLogs = trailingLogs
	// The node itself says when, by the bytes and not by the number of the entries.
	c.SnapshotInterval, c.SnapshotThreshold = 24*time.Hour, 1<<62
	c.NoLegacyTelemetry = true
	c.BatchApplyCh = true
	return c
}

// openState opens the copy of the database and the log.
func (n *Node) openState(o *Options) (err error) {
	var newest *snapshotMeta
	if n.machine, n.snapshots, newest, err = openDatabase(o); err != nil {
		return err
	}
	db, err := store.OpenLog(o.FS, o.FS.PathJoin(o.Dir, logName), o.Log, o.Fatal)
	if err != nil {
		return err
	}
	if n.logs, err = newLogStore(db); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := n.mustReach(newest); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// openDatabase opens the database and the snapshots, and takes over a snapshot that the database
// is behind: one that was received, or lost its power, before the database had it.
func openDatabase(o *Options) (m *machine, s *snapshots, newest *snapshotMeta, err error) {
	if s, err = openSnapshots(o.FS, o.Dir); err != nil {
		return nil, nil, nil, err
	}
	s.check = func(path string) error {
		err := o.Store.CheckTable(path)
		if refused := (*store.RefusedError)(nil); errors.As(err, &refused) {
			o.Fatal(err)
		}
		return err
	}
	if m, err = newMachine(o.Store, s, o.Announced, o.Fatal); err != nil {
		return nil, nil, nil, err
	}
	if newest, err = s.newest(); err != nil || newest == nil {
		return m, s, nil, err
	}
	m.members.Store(newest.ConfigurationIndex)
	if m.at.index < newest.Position {
		o.Log.Warn().Uint64("database", m.at.index).Uint64("snapshot", newest.Position).Msg("the database is behind the newest snapshot, which takes its place")
		err = errors.Join(o.Store.Swap(s.path(newest.ID, dataName)), m.load())
	}
	return m, s, newest, err
}

// mustReach refuses a directory whose log begins behind what the database has.
func (n *Node) mustReach(newest *snapshotMeta) error {
	first, has := n.logs.first.Load(), n.machine.at.index
	if newest != nil {
		has = max(has, newest.Index)
	}
	if first > has+1 {
		return fmt.Errorf("the log of the cluster begins at entry %d and the database ends at %d: "+
			"remove this node from the cluster, empty its directory and let it join anew", first, has)
	}
	return nil
}

// watch follows what raft says of leaders.
func (n *Node) watch() {
	seen := make(chan raft.Observation, 1)
	observer := raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		select {
		case seen <- *o:
		default: // a token is enough
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	n.stopped.Go(func() {
		defer n.raft.DeregisterObserver(observer)
		for {
			select {
			case <-seen:
				n.changed()
			case <-n.stop:
				return
			}
		}
	})
}

// changed ends the lease of a node that leads no more, and tells everybody.
func (n *Node) changed() {
	n.mu.Lock()
	lease := n.lease
	for c := range n.listeners {
		select {
		case c <- struct{}{}:
		default: // the last one was not taken yet
		}
	}
	n.mu.Unlock()
	if lease != nil && (!n.IsLeader() || n.raft.CurrentTerm() != lease.term) {
		lease.end()
	}
}

// Changes gives a token after each change of the leader or of this node; stop ends that.
func (n *Node) Changes() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[c] = true
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, c)
	}
}

// ID is the id of this node.
func (n *Node) ID() string { return n.id }

// Leader is the id and the address of the leader, empty if none is known.
func (n *Node) Leader() (id, address string) {
	at, who := n.raft.LeaderWithID()
	return string(who), string(at)
}

// IsLeader reports whether raft has elected this node. It serves only once Lead has returned.
func (n *Node) IsLeader() bool { return n.raft.State() == raft.Leader }

// Lead waits until this node is elected and the database holds everything that was
// acknowledged before, and opens an epoch. The lease must be ended before the next call. The
// error is that of ctx.
func (n *Node) Lead(ctx context.Context) (*Lease, error) {
	changes, stop := n.Changes()
	defer stop()
	for {
		for !n.IsLeader() {
			select {
			case <-changes:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		lease, err := n.tryLead()
		if err == nil {
			return lease, nil
		}
		n.log.Info().Err(err).Msg("this node was elected and could not open an epoch")
		select {
		case <-changes:
		case <-time.After(retryLead):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// retryLead is the time until a node that is still elected tries again to open an epoch.
const retryLead = 100 * time.Millisecond

func (n *Node) tryLead() (*Lease, error) {
	term := n.raft.CurrentTerm()
	if err := n.refuses(); err != nil {
		return nil, err
	}
	if err := n.raft.Barrier(0).Error(); err != nil {
		return nil, err
	}
	epoch, err := n.open()
	if err != nil {
		return nil, err
	}
	lease := newLease(n, term, epoch)
	n.mu.Lock()
	n.lease = lease
	n.mu.Unlock()
	n.changed()
	return lease, nil
}

// refuses asks whether this node may lead, and hands over if it may not.
func (n *Node) refuses() error {
	if n.mayLead == nil {
		return nil
	}
	err := n.mayLead(context.Background())
	if err != nil {
		n.log.Error().Err(err).Msg("this node was elected and does not lead; another one is asked to")
		return errors.Join(err, n.raft.LeadershipTransfer().Error())
	}
	return nil
}

// VerifyLeader returns when this node was still the leader at a moment after the call:
// ErrNotLeader if it was not. All who wait share the question.
func (n *Node) VerifyLeader(ctx context.Context) error { return n.verifying.ask(ctx) }

// WriteMetrics adds what the log has counted to a page.
func (n *Node) WriteMetrics(p *meter.Page) { p.Add(&n.logs.set) }

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error {
	err := n.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

func (n *Node) snapshotLoop() {
	each := time.NewTicker(snapshotEvery)
	defer each.Stop()
	for {
		select {
		case <-each.C:
		case <-n.stop:
			return
		}
		if n.machine.since.Load() < snapshotBytes {
			continue
		}
		if err := n.Snapshot(); err != nil {
			n.log.Error().Err(err).Msg("a snapshot failed; it is tried again, and the log grows meanwhile")
		}
	}
}

// Close stops the node. Whoever leads must have ended its lease.
func (n *Node) Close() error {
	close(n.stop)
	err := n.raft.Shutdown().Error()
	n.stopped.Wait()
	n.transport.CloseStreams()
	return errors.Join(err, n.transport.Close(), n.logs.db.Close())
}
