package record

import (
	"cmp"
	"encoding/binary"

	"codeq/wire"
)

// PendingKey is the place of a task in the pending order.
type PendingKey struct {
	Seq uint64
	ID  wire.TaskID
}

// LimitedPlace is the place of a task among those that wait for its concurrency key.
type LimitedPlace struct {
	Priority int
	PendingKey
}

// Compare orders the tasks of a key: by priority, highest first, then by sequence.
func (p *LimitedPlace) Compare(o *LimitedPlace) int {
	return cmp.Or(cmp.Compare(o.Priority, p.Priority), cmp.Compare(p.Seq, o.Seq))
}

// LimitedEntry is a task that waits for a concurrency key.
type LimitedEntry struct {
	Key string
	LimitedPlace
}

// PendingEntry is one entry of the pending order: a place, and since when the
// task is ready.
type PendingEntry struct {
	PendingKey
	ReadyAtMs int64
}

// TimedKey is one entry of an order by time: delayed by due time, expiring by
// when they expire, dead and done by end time.
type TimedKey struct {
	AtMs int64
	ID   wire.TaskID
}

// RankOf is the first part of an id as a number. Ids sort as their ranks do.
func RankOf(id wire.TaskID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// AppendReadyAt adds the value of a pending entry: since when the task is ready,
// eight bytes in Unix milliseconds, big end first.
func AppendReadyAt(dst []byte, readyAtMs int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(readyAtMs))
}

// ParseReadyAt reads what AppendReadyAt wrote.
func ParseReadyAt(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, ErrDamaged
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// ParseID reads the value of an idempotency key.
func ParseID(value []byte, id *wire.TaskID) error {
	if len(value) != len(id) {
		return ErrDamaged
	}
	copy(id[:], value)
	return nil
}
