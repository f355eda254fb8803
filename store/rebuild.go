package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
)

// RebuildCounters counts the index keys of every queue and writes the counters
// and floors that follow from them, in one durable batch. It says how many
// queues it corrected. Nothing else may use the store meanwhile.
//
// Counters are the one part of the database that follows from the rest; what
// else Check finds is somebody's data, and only a person can say what it was.
func (s *Store) RebuildCounters() (corrected int, err error) {
	audits, _, err := s.audit()
	if err != nil {
		return 0, err
	}
	batch := s.db.NewBatch()
	defer func() {
		if closeErr := batch.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close batch: %w", closeErr)
		}
	}()
	for _, a := range audits {
		for _, q := range a.queues {
			if !a.disagrees(q) {
				continue
			}
			corrected++
			if err := a.writeCounters(batch, q); err != nil {
				return 0, fmt.Errorf("write counters: %w", err)
			}
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return 0, fmt.Errorf("commit counters: %w", err)
	}
	return corrected, nil
}

// disagrees judges one queue without keeping what it finds.
func (a *audit) disagrees(q *queueFacts) bool {
	before := len(a.findings)
	a.judgeQueue(q)
	found := len(a.findings) > before
	a.findings = a.findings[:before]
	return found || a.unreadable[string(a.queueKey(q, record.FamilyCounters))]
}

func (a *audit) writeCounters(batch *pebble.Batch, q *queueFacts) error {
	key := a.queueKey(q, record.FamilyCounters)
	if !q.counted.IsZero() {
		return batch.Set(key, record.AppendCounters(nil, &q.counted), nil)
	}
	if q.settings == nil {
		if err := batch.Delete(a.queueKey(q, record.FamilyNames), nil); err != nil {
			return err
		}
	}
	return batch.Delete(key, nil)
}
