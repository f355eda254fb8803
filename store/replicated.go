package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// ErrNotLeader is what a batch, a read or a change of the cluster is answered on a node
// that does not lead its cluster. Of a batch it says that the outcome is unknown: it may
// be in the log of the cluster, and then it happens.
var ErrNotLeader = errors.New("this node does not lead the cluster")

// Replicator carries the batches of the shards of a leader to the nodes of its cluster.
type Replicator interface {
	// Replicate returns when the batch is on a majority of the nodes and in the
	// database here, or ErrNotLeader. Batches of a shard are numbered from 1 without a
	// gap; one goroutine per shard.
	Replicate(shard int, number uint64, batch []byte) error
	// StillLeads returns nil if this node led at a moment after the call, or ErrNotLeader.
	StillLeads() error
	// LatestMs is the latest time of a leader before, in Unix milliseconds.
	LatestMs() int64
}

// replication is what a store of a cluster has beside that of a server alone.
type replication struct {
	// node is the store whose database a leader writes, through replicator; both are nil
	// for every other store. leading is held by each leader, and by Swap against them.
	node       *Store
	replicator Replicator
	leading    sync.RWMutex
}

// Lead is the store of a node that leads its cluster: it is over the same database, and
// each batch of its spans goes through r. What is applied there is durable, so Synced is
// called by Apply itself, with the number of the batch. Close ends it and leaves the
// database open; until then Swap waits.
func (s *Store) Lead(r Replicator, synced func(shard int, upTo uint64)) (*Store, error) {
	return s.over(r, synced)
}

// over is another store over the database.
func (s *Store) over(r Replicator, synced func(shard int, upTo uint64)) (*Store, error) {
	s.leading.RLock()
	lead := &Store{
		options: s.options, shards: s.shards, secret: s.secret, creationID: s.creationID,
		db: s.db, guard: s.guard, figures: s.figures,
		replication: replication{node: s, replicator: r},
	}
	lead.options.Synced = synced
	lead.pipe.init(lead)
	if err := lead.openSpans(); err != nil {
		return nil, errors.Join(err, lead.Close())
	}
	return lead, nil
}

// Look is the store of a node that follows for one read, whose figures are those of this moment.
// Nothing may be written through it. It reads the counters of all queues. Close ends it and leaves
// the database open; until then Swap waits. Any goroutine.
func (s *Store) Look() (*Store, error) {
	look, err := s.over(nil, nil)
	if err != nil {
		return nil, err
	}
	for _, sp := range look.spans {
		if err := sp.publishCounters(); err != nil {
			return nil, errors.Join(err, look.Close())
		}
	}
	return look, nil
}

// publishCounters publishes what the database has. Nobody else has the span yet.
func (sp *Span) publishCounters() error {
	var queues []QueueState
	err := sp.view.scanFamily(record.FamilyCounters, func(p *record.Key, value []byte) error {
		q, err := sp.view.names(p.Queue)
		state := QueueState{Key: q}
		switch {
		case err != nil && !isDamaged(err):
			return err
		case q == (record.QueueKey{}) || record.ParseCounters(value, &state.Counters) != nil:
			return nil // the next leader repairs it
		}
		queues = append(queues, state)
		return nil
	})
	sp.published.set(queues)
	return err
}

// Takeover says whether the store is that of a node that has taken the lead of a cluster, and
// the latest time of a leader before it, in Unix milliseconds.
func (s *Store) Takeover() (latestMs int64, is bool) {
	if s.replicator == nil {
		return 0, false
	}
	return s.replicator.LatestMs(), true
}

// Deposed tells whoever waits for the store of a leader that it leads no more.
func (s *Store) Deposed() { s.pipe.broadcast(ErrNotLeader) }

// replicate is the rest of commit at a leader.
func (sp *Span) replicate(number uint64) (uint64, error) {
	s, b := sp.store, sp.batch
	if err := s.replicator.Replicate(sp.shard, number, b.pebble.Repr()); err != nil {
		return 0, fmt.Errorf("replicate batch %d of shard %d: %w", number, sp.shard, err)
	}
	sp.done(number)
	sp.synced.Store(number)
	s.pipe.broadcast(nil)
	if s.options.Synced != nil {
		s.options.Synced(sp.shard, number)
	}
	return number, nil
}

// StillLeads is for effects of a round without a batch: they are true only if no other node
// has led meanwhile. For a server alone it does nothing.
func (sp *Span) StillLeads() error {
	if sp.store.replicator == nil {
		return nil
	}
	return sp.store.replicator.StillLeads()
}

// CommitReplicated writes batches of a log that the nodes of a cluster share, and the
// position in that log behind them, in one batch. The log makes them durable: what a power
// cut takes away is applied again from the position that is left. One goroutine at a time,
// which must not run while Swap does.
func (s *Store) CommitReplicated(position []byte, batches [][]byte) error {
	joined := s.db.NewBatch()
	for _, bytes := range batches {
		// It is not closed: that would write into the bytes, which others still send.
		part := new(pebble.Batch)
		err := part.SetRepr(bytes)
		if err == nil {
			err = joined.Apply(part, nil)
		}
		if err != nil {
			return fmt.Errorf("take apart a replicated batch: %w", err)
		}
	}
	if err := joined.Set([]byte(record.PositionKey), position, nil); err != nil {
		return fmt.Errorf("write the position in the log: %w", err)
	}
	if err := s.pipe.misused.Load(); err != nil {
		return *err
	}
	s.guard.committed(joined.Len())
	s.figures.committed(joined.Len())
	s.pipe.watch.begin()
	err := joined.Commit(pebble.NoSync)
	s.pipe.watch.end()
	if err != nil {
		return fmt.Errorf("apply replicated batches: %w", err)
	}
	if err := joined.Close(); err != nil {
		return fmt.Errorf("close batch: %w", err)
	}
	return nil
}

// unlogged reports whether the database has no log of its own: that of the cluster has what a
// power cut takes away. With one, each byte was written three times more: into the log of the
// cluster, as zeros of a log to come and into that.
func (s *Store) unlogged() bool { return s.options.Node != "" && !s.readOnly }

// remedy is what to do about a directory with a file that is damaged.
func (s *Store) remedy() string {
	if s.options.Node != "" {
		return joinAnew
	}
	return "restore the directory from a backup"
}

// joinAnew is the remedy for a node of a cluster: the others have what it has lost.
const joinAnew = "remove this node from the cluster, empty its directory and let it join anew"

// Position is what CommitReplicated wrote last, nil before the first.
func (s *Store) Position() (position []byte, err error) {
	v := view{reader: s.db}
	_, err = v.get([]byte(record.PositionKey), func(value []byte) error {
		position = append([]byte(nil), value...)
		return nil
	})
	return position, err
}

// Join makes the directory of a server alone that of a node of a cluster.
func (s *Store) Join(node string) error {
	m, err := s.readManifest()
	if err != nil {
		return err
	}
	m.Node, m.CreationID = node, s.creationID
	return writeManifest(s.options.FS, s.options.Dir, m)
}

// ReadNode is the id of the node whose directory it is, with the creation id and the number of
// shards; all zero of a directory that holds nothing.
func ReadNode(fs vfs.FS, dir string) (node, creationID string, shards int, err error) {
	s := &Store{options: Options{FS: fs, Dir: dir}}
	there, err := exists(fs, s.path(manifestName))
	if err != nil || !there {
		return "", "", 0, err
	}
	m, err := s.readManifest()
	if err != nil {
		return "", "", 0, err
	}
	return m.Node, m.CreationID, m.Shards, nil
}
