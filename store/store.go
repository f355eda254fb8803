package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
)

const (
	// DefaultShards is used for a new directory when nobody says a number.
	DefaultShards = 4

	defaultMemTableBytes = 16 << 20
	defaultCacheBytes    = 64 << 20
	defaultOpenTables    = 4096
)

// Options say where the database is and who is told what.
type Options struct {
	// FS is the file system; nil is the one of the machine.
	FS vfs.FS
	// Dir is the data directory. It is made if it does not exist.
	Dir string
	// Shards is the number of shards a new directory gets, 0 for
	// DefaultShards. An existing directory must have been made with the same
	// number; 0 takes what it has.
	Shards int
	// MemTableBytes and CacheBytes size Pebble's memory; 0 for 16 and 64 MiB.
	MemTableBytes int
	CacheBytes    int
	// MaxOpenTables is how many files of tables stay open for the next read; 0 is
	// 4096, and less than 64 are 64. Those that are being read come on top.
	MaxOpenTables int
	Log           zerolog.Logger
	// Random makes the creation id and the secret of a new directory; nil is crypto/rand.
	Random io.Reader
	// Fatal is called when memory and disk can no longer agree: a failed apply
	// or sync, a corrupt block, a disk that hangs. It may be called from any
	// goroutine and must not return. nil logs the cause and exits with 1.
	Fatal func(error)
	// Synced is told how far a shard is durable, in order per shard, by
	// whoever ran the barrier. It must not block and not call the store's
	// Barrier.
	Synced func(shard int, upTo uint64)
	// LevelChanged is told when the disk guard's level is another than before,
	// from the guard's goroutine. A stricter level counts at once, before
	// anybody is told; this is how one that waits learns that space is back.
	LevelChanged func(Level)
	// CountFree makes of the bytes that are free here those that the disk guard counts with, as
	// long as it commits more than deletions: in a cluster other disks count as well. nil is as
	// they are. It must not block.
	CountFree func(ownBytes int64) int64
	// Node is the id of the node of a cluster whose directory it is, CreationID that of the
	// cluster, which a directory that is made takes; both are empty for a server alone.
	Node, CreationID string
	// MustExist refuses a directory that holds no data instead of making it.
	MustExist bool
	// DisableAutomaticCompactions makes tests repeatable.
	DisableAutomaticCompactions bool
}

// Store is the database of all shards. Its methods may be called from any
// goroutine unless they say otherwise.
type Store struct {
	options  Options
	readOnly bool
	shards   int
	created  bool
	secret   []byte
	// creationID names this data directory.
	creationID string

	lock  *pebble.Lock
	cache *pebble.Cache
	db    *pebble.DB
	spans []*Span
	guard *Guard
	// synced and logs are what the database writes through.
	synced *synced
	logs   *logs
	pipe   pipeline
	// figures are for whoever watches; nothing is decided by them.
	figures *figures

	replication

	// checkpointing is held while a checkpoint stands.
	checkpointing sync.Mutex

	closed           atomic.Bool
	quarantinedTotal atomic.Int64
	backupAtMs       atomic.Int64 // 0 before the first backup
}

// Open opens the data directory, or makes it if it is empty, and holds it
// against other processes until Close. What it will not touch is a
// *RefusedError.
func Open(o Options) (*Store, error) { return open(withDefaults(o), false) }

func open(o Options, readOnly bool) (*Store, error) {
	s := &Store{options: o, readOnly: readOnly, figures: newFigures()}
	s.pipe.init(s)
	if o.Shards < 0 || o.Shards > record.MaxShards {
		return nil, &RefusedError{File: o.Dir, Sentence: fmt.Sprintf(
			"the number of shards must be from 1 to %d, got %d", record.MaxShards, o.Shards)}
	}
	if err := s.take(); err != nil {
		s.release()
		return nil, err
	}
	if o.Node != "" && !readOnly {
		return s, nil // only a leader has spans
	}
	if err := s.openSpans(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) openSpans() error {
	for shard := range s.shards {
		sp := newSpan(s, shard)
		s.spans = append(s.spans, sp)
		if err := sp.loadNumbers(); err != nil {
			if pebble.IsCorruptionError(err) {
				err = s.refuseDamaged(nil, err)
			}
			return err
		}
	}
	return nil
}

func withDefaults(o Options) Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MaxOpenTables == 0 {
		o.MaxOpenTables = defaultOpenTables
	}
	if o.Fatal == nil {
		log := o.Log
		o.Fatal = func(cause error) {
			log.WithLevel(zerolog.FatalLevel).Err(cause).Msg("the store cannot go on, the process ends")
			os.Exit(1)
		}
	}
	return o
}

// take takes the directory and opens the database in it; release undoes
// whatever of it was done.
func (s *Store) take() error {
	fs, dir := s.options.FS, s.options.Dir
	if s.options.MustExist {
		if err := s.mustHoldData(); err != nil {
			return err
		}
	}
	if !s.readOnly {
		if err := s.mustNotBeBackup(); err != nil {
			return err
		}
	}
	if err := makeDir(fs, dir); err != nil {
		return err
	}
	lock, err := lockDir(fs, dir)
	if err != nil {
		return err
	}
	s.lock = lock
	if s.guard, err = newGuard(&s.options); err != nil {
		return err
	}
	s.cache = pebble.NewCache(int64(s.options.CacheBytes))
	if !s.readOnly {
		if err := s.finishSwap(); err != nil {
			return err
		}
	}
	if err := s.openFiles(); err != nil {
		return err
	}
	if s.readOnly {
		return s.openOrCreate()
	}
	if err := s.openOrCreate(); err != nil {
		return err
	}
	return s.removeCheckpoint()
}

// openFiles looks at what was synced, and removes a spare log that is left.
func (s *Store) openFiles() (err error) {
	if s.synced, err = newSynced(s.guard.fs, s.path(databaseName), s.options.Log); err != nil {
		return err
	}
	if s.options.Node != "" {
		s.synced.advice = joinAnew
	}
	s.logs = newLogs(s.guard, s.synced)
	if s.readOnly {
		return nil
	}
	return s.logs.remove()
}

func (s *Store) release() {
	if s.synced != nil {
		s.synced.close()
	}
	if s.cache != nil {
		s.cache.Unref()
	}
	if s.lock != nil {
		// Closing gives the lock up, which the end of the process does as well.
		_ = s.lock.Close()
	}
}

// Close stops the goroutines, closes the database and gives the directory up.
// Shards must have stopped applying and readers reading; who waits is told
// that the store is closed. Only the first call does anything.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.node != nil {
		s.pipe.broadcast(ErrNotLeader)
		s.node.leading.RUnlock()
		return nil
	}
	s.StopSyncer()
	s.pipe.broadcast(errClosed)
	// A barrier in flight must not meet a closed database.
	s.pipe.barrier.Lock()
	defer s.pipe.barrier.Unlock()
	var err error
	if s.unlogged() {
		err = s.db.Flush() // so that the next start has little to apply again
	}
	err = errors.Join(err, s.db.Close())
	s.release()
	if err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// Shards is the number of shards of the directory, fixed when it was made.
func (s *Store) Shards() int { return s.shards }

// Created reports whether this Open made the directory.
func (s *Store) Created() bool { return s.created }

// Span is the part of one shard.
func (s *Store) Span(shard int) *Span { return s.spans[shard] }

// Guard is the disk guard.
func (s *Store) Guard() *Guard { return s.guard }

// QuarantinedTotal is the number of unreadable values moved away since Open.
func (s *Store) QuarantinedTotal() int64 { return s.quarantinedTotal.Load() }
