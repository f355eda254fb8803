package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// incomingName is a database on its way into the data directory, readyName the same
	// once it is whole: then it takes the place of the other, whatever happens meanwhile.
	incomingName = databaseName + ".incoming"
	readyName    = databaseName + ".ready"
)

// CheckpointTo makes a directory that holds the database as it is now. It links tables and
// copies logs, and makes durable what they hold, here as well: a node that loses power
// afterwards is not behind the checkpoint. Any goroutine.
func (s *Store) CheckpointTo(dir string) error {
	if err := s.copyDatabase(dir); err != nil {
		return err
	}
	if _, err := s.noteLogs(dir); err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	return SyncDir(s.options.FS, dir)
}

// copyDatabase makes a directory of the database, with what was applied last in its tables or
// its log.
func (s *Store) copyDatabase(dir string) error {
	var err error
	if s.unlogged() {
		err = s.db.Flush()
	}
	if err == nil {
		err = s.db.Checkpoint(dir, pebble.WithFlushedWAL())
	}
	if err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	return nil
}

// CheckTable reads each block of a table and holds it against its checksum; of another file it says
// nothing. A table that is damaged is a *RefusedError. Any goroutine.
func (s *Store) CheckTable(path string) (err error) {
	if !strings.HasSuffix(path, ".sst") {
		return nil
	}
	f, err := s.options.FS.Open(path)
	if err != nil {
		return fmt.Errorf("check table: %w", err)
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(fmt.Errorf("check table: %w", err), f.Close())
	}
	o := s.pebbleOptions()
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		err = errors.Join(err, readable.Close())
	} else {
		err = errors.Join(r.ValidateBlockChecksums(), r.Close())
	}
	if pebble.IsCorruptionError(err) {
		return refuse(path, "the file is damaged (%v); %s", err, s.remedy())
	}
	return err
}

// Swap puts a copy of the database in a directory, which CheckpointTo of this or another
// node has made, in the place of this one. It waits until nobody leads. After an error the
// store is good for nothing, and the process must end; the next Open has the old database or
// the new one.
func (s *Store) Swap(dir string) error {
	s.leading.Lock()
	defer s.leading.Unlock()
	syncing := s.syncing()
	s.StopSyncer()
	if err := s.receive(dir); err != nil {
		return fmt.Errorf("take over a database: %w", err)
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	s.synced.close()
	if err := s.finishSwap(); err != nil {
		return err
	}
	if err := s.openFiles(); err != nil {
		return err
	}
	if err := s.openOrCreate(); err != nil {
		return err
	}
	if syncing {
		s.StartSyncer()
	}
	return nil
}

// holdDatabase keeps Swap away from a follower's database until the caller has read. A leader
// holds it all the time, and that of a server alone stays where it is.
func (s *Store) holdDatabase() (release func()) {
	if s.options.Node == "" || s.node != nil || s.readOnly {
		return releaseNothing
	}
	s.leading.RLock()
	return s.leading.RUnlock
}

func releaseNothing() {}

// receive makes the copy. Tables and blobs never change, so they are linked.
func (s *Store) receive(dir string) error {
	fs, incoming := s.options.FS, s.path(incomingName)
	if err := errors.Join(fs.RemoveAll(incoming), fs.MkdirAll(incoming, 0o700)); err != nil {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		take := vfs.Copy
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") {
			take = func(fs vfs.FS, from, to string) error { return vfs.LinkOrCopy(fs, from, to) }
		}
		if err := take(fs, fs.PathJoin(dir, name), fs.PathJoin(incoming, name)); err != nil {
			return err
		}
	}
	if err := SyncDir(fs, incoming); err != nil {
		return err
	}
	if err := fs.Rename(incoming, s.path(readyName)); err != nil {
		return err
	}
	return SyncDir(fs, s.options.Dir)
}

// finishSwap puts a whole database in its place, and removes one that is not. It may be
// called again at every step.
func (s *Store) finishSwap() error {
	fs := s.options.FS
	ready, err := exists(fs, s.path(readyName))
	if err == nil && ready {
		err = errors.Join(fs.RemoveAll(s.path(databaseName)), fs.Rename(s.path(readyName), s.path(databaseName)), SyncDir(fs, s.options.Dir))
	}
	if err := errors.Join(err, fs.RemoveAll(s.path(incomingName))); err != nil {
		return fmt.Errorf("put a received database in its place: %w", err)
	}
	return nil
}
