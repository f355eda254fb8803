package replica

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"codeq/store"
)

// The log of a cluster begins behind a snapshot at foundIndex, so that every further node gets
// the database of the first one, whatever was in it.
const (
	foundIndex = 1
	foundTerm  = 1
)

// Identity says whose a data directory is.
type Identity struct {
	// Node is the id of the node, 32 hexadecimal digits.
	Node string
	// CreationID is that of the database, Shards their number.
	CreationID string
	Shards     int
}

// InitOptions are those of the first node of a cluster.
type InitOptions struct {
	FS  vfs.FS
	Dir string
	// Shards is the number of shards of a directory that is made; 0 is the default.
	Shards int
	// Address is where the other nodes reach this one.
	Address string
	// Restored: the directory is the copy of a backup. It gets another creation id, because
	// what its numbers say is not what those of the other copy say.
	Restored bool
	// Before makes what else a node needs, while the directory is still that of a server alone;
	// nil is nothing.
	Before func(node string) error
	Log    zerolog.Logger
}

// NewNodeID draws the id of a node.
func NewNodeID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it ends the process rather than fail
	return hex.EncodeToString(id[:])
}

// Init makes a directory that of the first node of a cluster, with the tasks that are in it. The
// manifest is written last: until then the directory is that of a server alone.
func Init(o InitOptions) (id Identity, err error) {
	id.Node = NewNodeID()
	s, err := store.Open(store.Options{FS: o.FS, Dir: o.Dir, Shards: o.Shards, Log: o.Log})
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if o.Restored {
		if err := s.ChangeCreationID(); err != nil {
			return id, err
		}
	}
	id.CreationID, id.Shards = s.CreationID(), s.Shards()
	at := position{index: foundIndex}
	if err := s.CommitReplicated(at.append(nil), nil); err != nil {
		return id, err
	}
	if err := found(&o, s, id.Node); err != nil {
		return id, err
	}
	if o.Before != nil {
		if err := o.Before(id.Node); err != nil {
			return id, err
		}
	}
	return id, s.Join(id.Node)
}

// found writes the term and the snapshot with which the log begins.
func found(o *InitOptions, s *store.Store, node string) error {
	if err := errors.Join(o.FS.RemoveAll(o.FS.PathJoin(o.Dir, logName)), o.FS.RemoveAll(o.FS.PathJoin(o.Dir, snapshotsName))); err != nil {
		return fmt.Errorf("remove an earlier log: %w", err)
	}
	db, err := store.OpenLog(o.FS, o.FS.PathJoin(o.Dir, logName), o.Log, func(err error) { panic(err) })
	if err != nil {
		return err
	}
	logs, err := newLogStore(db)
	if err == nil {
		err = logs.SetUint64([]byte("CurrentTerm"), foundTerm)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	shots, err := openSnapshots(o.FS, o.Dir)
	if err != nil {
		return err
	}
	m, err := newMachine(s, shots, nil, func(err error) { panic(err) })
	if err != nil {
		return err
	}
	made, err := m.Snapshot()
	if err != nil {
		return err
	}
	defer made.Release()
	into, err := shots.Create(raft.SnapshotVersionMax, foundIndex, foundTerm, raft.Configuration{Servers: []raft.Server{
		{Suffrage: raft.Voter, ID: raft.ServerID(node), Address: raft.ServerAddress(o.Address)},
	}}, foundIndex, nil)
	if err != nil {
		return err
	}
	return made.Persist(into)
}

// PrepareOptions are those of a node that will join a cluster.
type PrepareOptions struct {
	FS  vfs.FS
	Dir string
	// Node is the id of the node.
	Node string
	// CreationID and Shards are those of the cluster.
	CreationID string
	Shards     int
	Log        zerolog.Logger
}

// Prepare makes an empty directory that of a node which will join. It holds nothing until the
// leader sends a snapshot.
func Prepare(o PrepareOptions) (id Identity, err error) {
	id = Identity{Node: o.Node, CreationID: o.CreationID, Shards: o.Shards}
	s, err := store.Open(store.Options{FS: o.FS, Dir: o.Dir, Shards: o.Shards, CreationID: o.CreationID, Node: id.Node, Log: o.Log})
	if err != nil {
		return id, err
	}
	if !s.Created() {
		err = fmt.Errorf("%s is not empty: a node joins with an empty directory", o.Dir)
	}
	return id, errors.Join(err, s.Close())
}

// ReadIdentity says whose a directory is; false if it is that of a server alone, or nobody's.
func ReadIdentity(fs vfs.FS, dir string) (id Identity, is bool, err error) {
	id.Node, id.CreationID, id.Shards, err = store.ReadNode(fs, dir)
	return id, id.Node != "", err
}
