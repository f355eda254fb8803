package audit

import (
	"fmt"

	"codeq/record"
	"codeq/store"
)

// RebuildCounters counts the index keys of every queue and writes the counters
// and watermarks that follow from them, in one durable batch. It says how many
// queues it corrected. Nothing else may use the store meanwhile.
//
// Counters are the one part of the database that follows from the rest; what
// else Check finds is somebody's data, and only a person can say what it was.
func RebuildCounters(s *store.Store) (corrected int, err error) {
	spans, _, err := collect(s)
	if err != nil {
		return 0, err
	}
	var changes []store.Change
	for _, a := range spans {
		for _, q := range a.queues {
			if a.disagrees(q) {
				corrected++
				changes = append(changes, a.counters(q)...)
			}
		}
	}
	if err := s.Rewrite(changes); err != nil {
		return 0, fmt.Errorf("write counters: %w", err)
	}
	return corrected, nil
}

// disagrees judges one queue without keeping what it finds.
func (a *span) disagrees(q *queueFacts) bool {
	before := len(a.findings)
	a.judgeQueue(q)
	found := len(a.findings) > before
	a.findings = a.findings[:before]
	return found || a.unreadable[string(a.queueKey(q, record.FamilyCounters))]
}

// counters are the keys that follow from what was counted of a queue. One without a
// task has no counters, and without settings no name.
func (a *span) counters(q *queueFacts) []store.Change {
	change := store.Change{Key: a.queueKey(q, record.FamilyCounters)}
	if !q.counted.IsZero() {
		change.Value = record.AppendCounters(nil, &q.counted)
	} else if q.settings == nil {
		return []store.Change{change, {Key: a.queueKey(q, record.FamilyNames)}}
	}
	return []store.Change{change}
}
