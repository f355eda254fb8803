package store

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// heads finds since when the heads of queues are ready of which the counters do
// not say so, see Counters.ReadySinceMs. Most reads need no such head and open no
// iterator.
type heads struct {
	view *view
	it   *pebble.Iterator
}

// pendingTailBytes is what a pending key has behind its priority.
const pendingTailBytes = 8 + len(wire.TaskID{})

// readySince is the time of the first ready task of a priority, whose sequence
// is not below watermark; 0 if there is none.
func (h *heads) readySince(q record.QueueKey, priority int, watermark uint64) (int64, error) {
	if h.it == nil {
		prefix := h.view.prefix
		it, err := h.view.reader.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: record.UpperBound(prefix)})
		if err != nil {
			return 0, fmt.Errorf("scan: %w", err)
		}
		h.it = it
	}
	n, err := h.view.number(q)
	if err != nil {
		return 0, err
	}
	lower := record.AppendPendingKey(h.view.start(), n, priority, record.PendingKey{Seq: watermark})
	h.view.key = lower
	prefixBytes := len(lower) - pendingTailBytes
	if !h.it.SeekGE(lower) || string(h.it.Key()[:min(prefixBytes, len(h.it.Key()))]) != string(lower[:prefixBytes]) {
		if err := h.it.Error(); err != nil {
			return 0, fmt.Errorf("scan at %s: %w", record.NameForLog(lower, record.QueueKey{}), err)
		}
		return 0, nil
	}
	value, err := h.it.ValueAndErr()
	if err != nil {
		return 0, fmt.Errorf("scan at %s: %w", record.NameForLog(h.it.Key(), record.QueueKey{}), err)
	}
	atMs, err := record.ParseReadyAt(value)
	if err != nil {
		return 0, &DamagedError{Key: slices.Clone(h.it.Key()), Err: err}
	}
	return atMs, nil
}

func (h *heads) close() error {
	if h.it == nil {
		return nil
	}
	return h.view.done(h.it)
}
