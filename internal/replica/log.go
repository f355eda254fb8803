package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"

	"codeq/internal/meter"
	"codeq/store"
)

// The keys of the log: entryPrefix and the index, and stablePrefix and the names of raft.
const (
	entryPrefix  = 'e'
	stablePrefix = 's'

	logHeadBytes = 8 + 1 + 8 + 4
)

// logStore keeps the log and what raft must not forget in a database of its own. It implements
// raft.LogStore and raft.StableStore; any goroutine.
type logStore struct {
	db *store.LogDatabase
	// first and last are the indexes of the log, 0 when it is empty.
	first, last atomic.Uint64
	// set has what is counted: syncSeconds of the appended entries, and how many there were.
	set         meter.Set
	syncSeconds *meter.Histogram
	syncEntries *meter.Histogram
}

func newLogStore(db *store.LogDatabase) (*logStore, error) {
	l := &logStore{db: db}
	l.syncSeconds = l.set.Histogram("codeq_cluster_log_sync_seconds", "Time of one sync of the log of the cluster, which makes entries durable on this node.", meter.Doubling(50e-6, 18))
	l.syncEntries = l.set.Histogram("codeq_cluster_log_sync_entries", "Entries that one sync of the log of the cluster made durable.", meter.Doubling(1, 12))
	return l, l.measure()
}

// measure finds the first and the last entry.
func (l *logStore) measure() (err error) {
	iter, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{entryPrefix}, UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	l.first.Store(0)
	l.last.Store(0)
	if iter.First() {
		l.first.Store(binary.BigEndian.Uint64(iter.Key()[1:]))
	}
	if iter.Last() {
		l.last.Store(binary.BigEndian.Uint64(iter.Key()[1:]))
	}
	return iter.Error()
}

func entryKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{entryPrefix}, index)
}

// FirstIndex implements raft.LogStore.
func (l *logStore) FirstIndex() (uint64, error) { return l.first.Load(), nil }

// LastIndex implements raft.LogStore.
func (l *logStore) LastIndex() (uint64, error) { return l.last.Load(), nil }

// IsMonotonic implements raft.MonotonicLogStore: after a snapshot of the leader, raft removes
// what was before it.
func (l *logStore) IsMonotonic() bool { return true }

// GetLog implements raft.LogStore.
func (l *logStore) GetLog(index uint64, into *raft.Log) error {
	value, closer, err := l.db.Get(entryKey(index))
	if errors.Is(err, pebble.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return fmt.Errorf("read entry %d of the log: %w", index, err)
	}
	err = parseLog(value, into)
	into.Index = index
	return errors.Join(err, closer.Close())
}

// StoreLog implements raft.LogStore.
func (l *logStore) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. The entries are durable when it returns.
func (l *logStore) StoreLogs(logs []*raft.Log) error {
	batch := l.db.NewBatch()
	for _, log := range logs {
		d := batch.SetDeferred(1+8, logHeadBytes+len(log.Extensions)+len(log.Data))
		d.Key[0] = entryPrefix
		binary.BigEndian.PutUint64(d.Key[1:], log.Index)
		putLog(d.Value, log)
		if err := d.Finish(); err != nil {
			return fmt.Errorf("append to the log: %w", err)
		}
	}
	began := time.Now()
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	l.syncSeconds.Update(time.Since(began).Seconds())
	l.syncEntries.Update(float64(len(logs)))
	if len(logs) > 0 {
		l.first.CompareAndSwap(0, logs[0].Index)
		l.last.Store(logs[len(logs)-1].Index)
	}
	return batch.Close()
}

// DeleteRange implements raft.LogStore.
func (l *logStore) DeleteRange(first, last uint64) error {
	if err := l.db.DeleteRange(entryKey(first), entryKey(last+1), pebble.Sync); err != nil {
		return fmt.Errorf("cut the log: %w", err)
	}
	return l.measure()
}

func putLog(b []byte, log *raft.Log) {
	binary.LittleEndian.PutUint64(b, log.Term)
	b[8] = byte(log.Type)
	appendedAt := int64(0)
	if !log.AppendedAt.IsZero() {
		appendedAt = log.AppendedAt.UnixNano()
	}
	binary.LittleEndian.PutUint64(b[9:], uint64(appendedAt))
	binary.LittleEndian.PutUint32(b[17:], uint32(len(log.Extensions)))
	copy(b[logHeadBytes:], log.Extensions)
	copy(b[logHeadBytes+len(log.Extensions):], log.Data)
}

func parseLog(b []byte, log *raft.Log) error {
	if len(b) < logHeadBytes {
		return fmt.Errorf("an entry of %d bytes", len(b))
	}
	extensions := int(binary.LittleEndian.Uint32(b[17:]))
	if extensions > len(b)-logHeadBytes {
		return fmt.Errorf("an entry of %d bytes with %d of extensions", len(b), extensions)
	}
	*log = raft.Log{Term: binary.LittleEndian.Uint64(b), Type: raft.LogType(b[8])}
	if at := int64(binary.LittleEndian.Uint64(b[9:])); at != 0 {
		log.AppendedAt = time.Unix(0, at)
	}
	b = append([]byte(nil), b[logHeadBytes:]...)
	if extensions > 0 {
		log.Extensions = b[:extensions:extensions]
	}
	log.Data = b[extensions:]
	return nil
}

func stableKey(key []byte) []byte { return append([]byte{stablePrefix}, key...) }

// Set implements raft.StableStore.
func (l *logStore) Set(key, value []byte) error {
	if err := l.db.Set(stableKey(key), value, pebble.Sync); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// Get implements raft.StableStore.
func (l *logStore) Get(key []byte) ([]byte, error) {
	value, closer, err := l.db.Get(stableKey(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return append([]byte(nil), value...), closer.Close()
}

// SetUint64 implements raft.StableStore.
func (l *logStore) SetUint64(key []byte, value uint64) error {
	return l.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (l *logStore) GetUint64(key []byte) (uint64, error) {
	value, err := l.Get(key)
	if err != nil || len(value) != 8 {
		return 0, err
	}
	return binary.LittleEndian.Uint64(value), nil
}
