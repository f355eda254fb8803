package replica

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"
)

// Copy is what a node has without raft: its database, and the place of that in the log. It is
// for whoever is the log itself: a simulator. One goroutine.
type Copy struct {
	machine   *machine
	snapshots *snapshots
}

// OpenCopy opens the copy in a directory as Open does. Only Store, FS, Dir, Log and Fatal of
// the options count.
func OpenCopy(o *Options) (*Copy, error) {
	m, shots, _, err := openDatabase(o)
	return &Copy{m, shots}, err
}

// Index is that of the last entry that the database has.
func (c *Copy) Index() uint64 { return c.machine.at.index }

// Digest is that of all entries up to there.
func (c *Copy) Digest() uint64 { return c.machine.at.digest }

// LatestMs is the latest time of a leader, in Unix milliseconds.
func (c *Copy) LatestMs() int64 { return c.machine.at.nowMs }

// Opening is the entry that opens an epoch of this node.
func (c *Copy) Opening() []byte { return c.machine.opening() }

// Entry is the entry of one batch of this node as the leader, at a time in Unix milliseconds.
func (c *Copy) Entry(epoch uint64, nowMs int64, shard int, number uint64, batch []byte) []byte {
	return c.machine.entry(epoch, nowMs, []*waiting{{part: part{shard: shard, number: number, bytes: batch}}})
}

// Apply applies entries of the log, the first of which has an index, and says of each what it
// came to: the epoch that it opened, or 1 for a batch that was written; else 0.
func (c *Copy) Apply(first uint64, entries [][]byte) (came []uint64) {
	logs := make([]*raft.Log, len(entries))
	for i, data := range entries {
		logs[i] = &raft.Log{Index: first + uint64(i), Type: raft.LogCommand, Data: data}
	}
	for _, answer := range c.machine.ApplyBatch(logs) {
		switch answer := answer.(type) {
		case uint64:
			came = append(came, answer)
		case []bool:
			came = append(came, 0)
			if answer[0] {
				came[len(came)-1] = 1
			}
		default:
			came = append(came, 0)
		}
	}
	return came
}

// Snapshot takes a snapshot, which is the newest one then.
func (c *Copy) Snapshot() error {
	made, err := c.machine.Snapshot()
	if err != nil {
		return err
	}
	defer made.Release()
	into, err := c.snapshots.Create(raft.SnapshotVersionMax, c.Index(), foundTerm, raft.Configuration{}, foundIndex, nil)
	if err != nil {
		return err
	}
	return made.Persist(into)
}

// Receive gets the newest snapshot of another copy, TakeOver puts it in the place of the
// database. Between them nothing is lost if the power is: OpenCopy takes it over.
func (c *Copy) Receive(from *Copy) error {
	meta, stream, err := from.openNewest()
	if err != nil {
		return err
	}
	into, err := c.snapshots.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err == nil {
		_, err = io.Copy(into, stream)
		err = errors.Join(err, into.Close())
	}
	return errors.Join(err, stream.Close())
}

// TakeOver is the second half of Receive. Nobody may lead with this copy.
func (c *Copy) TakeOver() error {
	_, stream, err := c.openNewest()
	if err != nil {
		return err
	}
	return errors.Join(c.machine.Restore(counted{stream}), stream.Close())
}

func (c *Copy) openNewest() (*raft.SnapshotMeta, io.ReadCloser, error) {
	newest, err := c.snapshots.newest()
	if err != nil {
		return nil, nil, err
	}
	return c.snapshots.Open(newest.ID)
}

// counted is a snapshot as raft hands it to Restore.
type counted struct{ io.ReadCloser }

// WrappedReadCloser implements raft.ReadCloserWrapper.
func (r counted) WrappedReadCloser() io.ReadCloser { return r.ReadCloser }
