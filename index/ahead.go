package index

import "codeq/record"

// Ahead is how many ready tasks of the queue are granted before this ready one. known
// is false if the key is only in the store. It costs a binary search in memory.
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
