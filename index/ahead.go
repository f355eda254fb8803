package index

import "codeq/record"

// Ahead is how many ready tasks of the queue are handed out before this one,
// which is ready. It is known while memory has the key, and costs a search
// there; nothing is read for it.
func (q *Queue) Ahead(prio int, k record.PendingKey) (n int64, known bool) {
	r := &q.ready[prio]
	i, found := r.search(place{k.Seq, k.ID})
	if !found {
		return 0, false
	}
	for higher := prio + 1; higher < record.Priorities; higher++ {
		n += q.counters.Ready[higher]
	}
	return n + int64(i), true
}
