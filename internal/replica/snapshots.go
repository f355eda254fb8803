package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"codeq/store"
)

const (
	snapshotsName = "snapshots"
	draftPrefix   = "draft-"
	metaName      = "meta.json"
	dataName      = "db"

	maxMetaBytes = 1 << 20
)

// snapshots keeps the newest snapshot of a node: a directory with a checkpoint of the database
// and a file that says of which moment it is. Its tables are links to those of the database
// where they are the same. It implements raft.SnapshotStore; any goroutine.
type snapshots struct {
	fs  vfs.FS
	dir string
	// check reads a file before it is sent to another node, and does not return if it is damaged.
	check func(path string) error

	mu     sync.Mutex
	drafts int
	// reading counts who reads a snapshot, by its id.
	reading map[string]int
}

// snapshotMeta is what is in the file.
type snapshotMeta struct {
	raft.SnapshotMeta
	// Position is the index up to which its database is; that of raft also counts entries
	// that are not for the database.
	Position uint64
	At       time.Time
}

func openSnapshots(fs vfs.FS, dir string) (*snapshots, error) {
	s := &snapshots{fs: fs, dir: fs.PathJoin(dir, snapshotsName), reading: make(map[string]int)}
	if err := fs.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of snapshots: %w", err)
	}
	names, err := fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, draftPrefix) {
			err = errors.Join(err, fs.RemoveAll(s.path(name)))
		}
	}
	return s, errors.Join(err, store.SyncDir(fs, dir))
}

func (s *snapshots) path(name ...string) string {
	return s.fs.PathJoin(append([]string{s.dir}, name...)...)
}

// draft is a path in the directory that nothing has.
func (s *snapshots) draft() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drafts++
	return s.path(fmt.Sprintf("%s%d", draftPrefix, s.drafts)), nil
}

// drop removes a draft that became nothing.
func (s *snapshots) drop(dir string) {
	// What stays is removed by the next start.
	_ = s.fs.RemoveAll(dir)
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	dir, err := s.draft()
	if err == nil {
		err = s.fs.MkdirAll(s.fs.PathJoin(dir), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make snapshot: %w", err)
	}
	return &sink{snapshots: s, dir: dir, meta: snapshotMeta{At: time.Now().UTC(), SnapshotMeta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%016x-%016x", index, term), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}}}, nil
}

// List implements raft.SnapshotStore.
func (s *snapshots) List() (list []*raft.SnapshotMeta, err error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if strings.HasPrefix(name, draftPrefix) {
			continue
		}
		meta, err := s.meta(name)
		if err != nil {
			return nil, err
		}
		list = append(list, &meta.SnapshotMeta)
	}
	return list, nil
}

// newest is the newest snapshot, nil if there is none.
func (s *snapshots) newest() (*snapshotMeta, error) {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return s.meta(list[0].ID)
}

func (s *snapshots) meta(id string) (*snapshotMeta, error) {
	f, err := s.fs.Open(s.path(id, metaName))
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxMetaBytes))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	meta := &snapshotMeta{}
	if err := json.Unmarshal(data, meta); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): remove this node from the cluster, empty its directory and let it join anew", s.path(id, metaName), err)
	}
	return meta, nil
}

// Open implements raft.SnapshotStore.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, err := s.meta(id)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.reading[id]++
	s.mu.Unlock()
	r := newStream(s.fs, s.path(id, dataName), meta.Position, s.check, func() {
		s.mu.Lock()
		s.reading[id]--
		s.mu.Unlock()
	})
	names, err := s.fs.List(r.dir)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read snapshot: %w", err), r.Close())
	}
	slices.Sort(names)
	r.names = names
	return &meta.SnapshotMeta, r, nil
}

// publish makes a draft the newest snapshot, and removes those before that nobody reads.
func (s *snapshots) publish(draft string, meta *snapshotMeta) error {
	data, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("publish snapshot: %w", err)
	}
	if err := store.WriteFile(s.fs, s.fs.PathJoin(draft, metaName), data); err != nil {
		return fmt.Errorf("publish snapshot: %w", err)
	}
	if err := store.SyncDir(s.fs, draft); err != nil {
		return err
	}
	final := s.path(meta.ID)
	if err := errors.Join(s.fs.RemoveAll(final), s.fs.Rename(draft, final), store.SyncDir(s.fs, s.dir)); err != nil {
		return fmt.Errorf("publish snapshot: %w", err)
	}
	return s.removeOlder(meta.ID)
}

// removeOlder removes the snapshots before one that nobody reads.
func (s *snapshots) removeOlder(newest string) error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if name < newest && !strings.HasPrefix(name, draftPrefix) && s.reading[name] == 0 {
			err = errors.Join(err, s.fs.RemoveAll(s.path(name)))
		}
	}
	return err
}

// sink is a snapshot in the making: of a checkpoint of this node, or of the bytes of another's.
// One goroutine.
type sink struct {
	snapshots *snapshots
	dir       string
	meta      snapshotMeta
	pipe      *io.PipeWriter
	received  chan error
	ended     bool
}

// ID implements raft.SnapshotSink.
func (k *sink) ID() string { return k.meta.ID }

// adopt takes a checkpoint, and measures the stream that it makes.
func (k *sink) adopt(dir string, position uint64) error {
	fs := k.snapshots.fs
	if err := fs.Rename(dir, fs.PathJoin(k.dir, dataName)); err != nil {
		return fmt.Errorf("adopt checkpoint: %w", err)
	}
	k.meta.Position = position
	return k.measure()
}

func (k *sink) measure() error {
	fs := k.snapshots.fs
	dir := fs.PathJoin(k.dir, dataName)
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("measure snapshot: %w", err)
	}
	k.meta.Size = streamHeadBytes
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return fmt.Errorf("measure snapshot: %w", err)
		}
		k.meta.Size += fileFrameBytes + int64(len(name)) + info.Size()
	}
	return nil
}

// Write implements io.Writer: bytes of the stream of another node.
func (k *sink) Write(p []byte) (int, error) {
	if k.pipe == nil {
		reader, writer := io.Pipe()
		k.pipe, k.received = writer, make(chan error, 1)
		go func() {
			position, err := receive(k.snapshots.fs, k.snapshots.fs.PathJoin(k.dir, dataName), reader)
			k.meta.Position = position
			_ = reader.CloseWithError(err) // it never fails
			k.received <- err
		}()
	}
	return k.pipe.Write(p)
}

// Close implements raft.SnapshotSink: it publishes the snapshot. A second call does nothing.
func (k *sink) Close() error {
	if k.ended {
		return nil
	}
	k.ended = true
	err := k.finishReceiving(nil)
	if err == nil {
		err = k.measure()
	}
	if err == nil {
		err = k.snapshots.publish(k.dir, &k.meta)
	}
	if err != nil {
		k.snapshots.drop(k.dir)
	}
	return err
}

// Cancel implements raft.SnapshotSink. A second call, or one after Close, does nothing.
func (k *sink) Cancel() error {
	if k.ended {
		return nil
	}
	k.ended = true
	err := k.finishReceiving(errors.New("the snapshot was given up"))
	k.snapshots.drop(k.dir)
	if k.pipe != nil {
		return nil // that it was given up
	}
	return err
}

func (k *sink) finishReceiving(cause error) error {
	if k.pipe == nil {
		return nil
	}
	_ = k.pipe.CloseWithError(cause) // it never fails
	return <-k.received
}
