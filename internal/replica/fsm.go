package replica

import (
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"codeq/store"
)

const (
	// maxCommitBytes bounds the bytes of entries that are written in one batch.
	maxCommitBytes = 4 << 20
	// digestsKept is how many digests of the past are kept for comparison.
	digestsKept = 1 << 12
)

var polynomial = crc64.MakeTable(crc64.ECMA)

// digested is the digest of the log up to an index, and of what was skipped of it.
type digested struct{ index, digest uint64 }

// machine writes the entries of the log into the database, and nothing else. All but Persist
// of a snapshot is called by one goroutine of raft.
type machine struct {
	store     *store.Store
	snapshots *snapshots
	// fatal ends the process: what is committed and cannot be written must not be passed over.
	fatal func(error)

	at position
	// batches are to be written, with the position behind them.
	batches [][]byte
	bytes   int
	// digests are those of the last entries, by index modulo digestsKept.
	digests [digestsKept]digested

	// Read by others.
	applied atomic.Uint64
	latest  atomic.Pointer[position]
	// members is the index of the newest list of the members.
	members atomic.Uint64
	// since counts the bytes of entries since the last snapshot.
	since atomic.Int64
	// has is the newest form of the entries that were applied here, of those that have a kind of
	// their own; announced is Options.Announced.
	has       atomic.Int32
	announced func() int
}

func newMachine(s *store.Store, snapshots *snapshots, announced func() int, fatal func(error)) (*machine, error) {
	m := &machine{store: s, snapshots: snapshots, announced: announced, fatal: fatal}
	return m, m.load()
}

// load reads the position of the database.
func (m *machine) load() error {
	data, err := m.store.Position()
	if err == nil {
		m.at, err = parsePosition(data)
	}
	if err != nil {
		return fmt.Errorf("read the position in the log: %w", err)
	}
	m.publish()
	return nil
}

func (m *machine) publish() {
	at := m.at
	m.digests[at.index%digestsKept] = digested{at.index, at.digest}
	m.latest.Store(&at)
	m.applied.Store(at.index)
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. Of an entry of batches the answer is a list that says
// of each batch whether it was written, of an entry that opens an epoch the index.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	answers := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogConfiguration {
			m.members.Store(l.Index)
		}
		if l.Type != raft.LogCommand || l.Index <= m.at.index {
			continue // the database has it
		}
		answer, err := m.take(l)
		if err != nil {
			m.fatal(fmt.Errorf("entry %d of the log (%d bytes, term %d): %w", l.Index, len(l.Data), l.Term, err))
		}
		if answers[i] = answer; m.bytes >= maxCommitBytes {
			m.commit()
		}
	}
	m.commit()
	return answers
}

func (m *machine) take(l *raft.Log) (answer any, err error) {
	h, parts, err := parseEntry(l.Data)
	if err != nil {
		return nil, err
	}
	if known := m.digests[h.checked%digestsKept]; known.index == h.checked && h.checked > 0 && known.digest != h.digest {
		return nil, fmt.Errorf("the database here differs from that of the leader since entry %d or before "+
			"(%016x here, %016x there): remove this node from the cluster, empty its directory and let it join anew", h.checked, known.digest, h.digest)
	}
	if h.kind == kindPacked {
		m.has.Store(formPacked)
	}
	m.at.index, m.at.nowMs = l.Index, max(m.at.nowMs, h.nowMs)
	m.at.digest = crc64.Update(m.at.digest, polynomial, l.Data)
	m.since.Add(int64(len(l.Data)))
	if h.kind == kindOpen {
		m.at.epoch, m.at.numbers = l.Index, position{}.numbers
		answer = l.Index
	} else {
		answer = m.write(h.epoch, parts)
	}
	m.digests[l.Index%digestsKept] = digested{l.Index, m.at.digest}
	return answer, nil
}

// write takes the batches that follow on what the database has.
func (m *machine) write(epoch uint64, parts []part) (written []bool) {
	written = make([]bool, len(parts))
	for i, p := range parts {
		if epoch != m.at.epoch || p.number != m.at.numbers[p.shard]+1 {
			m.at.digest = crc64.Update(m.at.digest, polynomial, []byte{byte(i)})
			continue
		}
		m.at.numbers[p.shard]++
		m.batches = append(m.batches, p.bytes)
		m.bytes += len(p.bytes)
		written[i] = true
	}
	return written
}

// commit writes what was taken. A position alone, that of skipped or opening entries, is
// written too: the digest goes with it.
func (m *machine) commit() {
	if m.at.index == m.applied.Load() {
		return
	}
	if err := m.store.CommitReplicated(m.at.append(nil), m.batches); err != nil {
		m.fatal(fmt.Errorf("entries up to %d: %w", m.at.index, err))
	}
	clear(m.batches)
	m.batches, m.bytes = m.batches[:0], 0
	m.publish()
}

// checkpoint is a snapshot in the making: a directory with links to the tables.
type checkpoint struct {
	snapshots *snapshots
	dir       string
	position  uint64
	since     func()
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	dir, err := m.snapshots.draft()
	if err == nil {
		err = m.store.CheckpointTo(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot at entry %d: %w", m.at.index, err)
	}
	bytes := m.since.Load()
	return &checkpoint{snapshots: m.snapshots, dir: dir, position: m.at.index, since: func() { m.since.Add(-bytes) }}, nil
}

// Persist implements raft.FSMSnapshot. The checkpoint itself becomes the snapshot.
func (c *checkpoint) Persist(s raft.SnapshotSink) error {
	own, is := s.(*sink)
	if !is {
		return errors.Join(fmt.Errorf("a snapshot for %T", s), s.Cancel())
	}
	if err := own.adopt(c.dir, c.position); err != nil {
		return errors.Join(err, s.Cancel())
	}
	c.since()
	return s.Close()
}

// Release implements raft.FSMSnapshot.
func (c *checkpoint) Release() { c.snapshots.drop(c.dir) }

// Restore implements raft.FSM. What comes is a snapshot that this node has in its store. A
// node that cannot take it over must not go on with what it has: raft takes it for restored.
func (m *machine) Restore(source io.ReadCloser) error {
	counted, is := source.(raft.ReadCloserWrapper)
	if !is {
		return fmt.Errorf("a snapshot from %T", source)
	}
	own, is := counted.WrappedReadCloser().(*stream)
	if !is {
		return fmt.Errorf("a snapshot from %T", counted.WrappedReadCloser())
	}
	err := m.store.Swap(own.dir)
	if err == nil {
		err = m.load()
	}
	if err != nil {
		m.fatal(fmt.Errorf("take over a snapshot: %w", err))
	}
	m.since.Store(0)
	return nil
}
