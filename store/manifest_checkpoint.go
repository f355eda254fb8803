package store

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// checkpointName is where a checkpoint stands inside the data directory while
// it is read. Its tables are links to those of the database, so it costs a log
// and no copy; what a crash left of it is removed at the next start.
const checkpointName = "checkpoint"

// ErrCheckpointBusy is what Checkpoint answers while another one is open.
var ErrCheckpointBusy = errors.New("another checkpoint is being read")

// Checkpoint is the data directory as it was at one moment: everything durable
// by then, and of each batch all or nothing. It must be closed. It is for one
// goroutine.
type Checkpoint struct {
	store *Store
	dir   string
	at    time.Time
	// lengths are those of the logs, up to their last whole record: what is behind
	// it in the file is not of this moment.
	lengths map[logFile]int64
}

// Checkpoint makes a checkpoint while the shards go on. There is one at a time.
// Any goroutine.
func (s *Store) Checkpoint() (*Checkpoint, error) {
	defer s.holdDatabase()()
	if s.node != nil {
		s = s.node
	}
	if !s.checkpointing.TryLock() {
		return nil, ErrCheckpointBusy
	}
	c := &Checkpoint{store: s, dir: s.path(checkpointName), at: time.Now().UTC()}
	if err := s.writeCheckpoint(c.dir, c.at); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	lengths, err := s.noteLogs(s.options.FS.PathJoin(c.dir, databaseName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make checkpoint: %w", err), c.Close())
	}
	c.lengths = lengths
	return c, nil
}

func (s *Store) writeCheckpoint(dir string, at time.Time) error {
	fs := s.options.FS
	if err := s.removeCheckpoint(); err != nil {
		return err
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	if err := s.copyDatabase(fs.PathJoin(dir, databaseName)); err != nil {
		return err
	}
	m, err := s.readManifest()
	if err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	m.State, m.BackupAt, m.Node, m.NoLog = stateBackup, at.Format(time.RFC3339), "", s.unlogged()
	if err := writeManifest(fs, dir, m); err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	return nil
}

// noteLogs measures the logs and the MANIFEST of a checkpoint of the database, and notes as
// synced what they hold: the directory tells by itself when a copy of it has lost something.
func (s *Store) noteLogs(dir string) (map[logFile]int64, error) {
	fs := s.options.FS
	notes, err := newSynced(fs, dir, s.options.Log)
	if err != nil {
		return nil, err
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	lengths := make(map[logFile]int64)
	for _, name := range names {
		f, ok := parseLogFile(name)
		if !ok {
			continue
		}
		scan, err := notes.scan(f)
		if err != nil {
			return nil, err
		}
		lengths[f] = scan.records
	}
	return lengths, notes.rewrite(lengths)
}

// removeCheckpoint removes what a checkpoint has left in the data directory.
func (s *Store) removeCheckpoint() error {
	if err := s.options.FS.RemoveAll(s.path(checkpointName)); err != nil {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return nil
}

// Each calls each for every file, with its path in the data directory, parts
// divided by "/", its size in bytes and what is in it. The manifest comes last:
// without it no server starts over a directory, so a copy that was cut short is
// never taken for a whole one.
func (c *Checkpoint) Each(each func(name string, sizeBytes int64, content io.Reader) error) error {
	fs := c.store.options.FS
	names, err := fs.List(fs.PathJoin(c.dir, databaseName))
	if err != nil {
		return fmt.Errorf("list checkpoint: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.read(fs.PathJoin(databaseName, name), databaseName+"/"+name, each); err != nil {
			return err
		}
	}
	return c.read(manifestName, manifestName, each)
}

func (c *Checkpoint) read(file, name string, each func(string, int64, io.Reader) error) (err error) {
	fs := c.store.options.FS
	path := fs.PathJoin(c.dir, file)
	if err := c.store.CheckTable(path); err != nil {
		return err // a backup that holds the damage would take the place of one without it
	}
	f, err := fs.Open(path)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	size := info.Size()
	if log, ok := parseLogFile(fs.PathBase(file)); ok {
		size = c.lengths[log]
	}
	return each(name, size, io.LimitReader(f, size))
}

// Delivered notes that a whole copy is in other hands: LastBackup is the moment of
// this checkpoint from here on, also after a restart.
func (c *Checkpoint) Delivered() error {
	m, err := c.store.readManifest()
	if err != nil {
		return fmt.Errorf("note the backup: %w", err)
	}
	m.BackupAt = c.at.Format(time.RFC3339)
	if err := writeManifest(c.store.options.FS, c.store.options.Dir, m); err != nil {
		return fmt.Errorf("note the backup: %w", err)
	}
	c.store.keepBackupAt(c.at)
	return nil
}

// LastBackup is the moment of the newest backup that was handed out whole, or of
// the one that the directory was restored from; the zero time before the first. Any
// goroutine.
func (s *Store) LastBackup() time.Time {
	if s.node != nil {
		return s.node.LastBackup()
	}
	at := s.backupAtMs.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

func (s *Store) keepBackupAt(at time.Time) {
	if !at.IsZero() {
		s.backupAtMs.Store(at.UnixMilli())
	}
}

// Close removes the checkpoint and makes room for the next.
func (c *Checkpoint) Close() error {
	defer c.store.checkpointing.Unlock()
	return c.store.removeCheckpoint()
}
