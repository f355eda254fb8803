package index

// Lagging is an order whose keys are only in the store and of which many were removed:
// its watermark must be recomputed by a scan.
type Lagging struct {
	Queue *Queue
	// Leased means the tasks in progress, else the dead letters.
	Leased bool
}

// leavesGap counts a removal and notes the order after limits.AdvanceAfter of them.
func (q *Queue) leavesGap(gone *int, leased bool) {
	if *gone++; *gone == q.index.limits.AdvanceAfter {
		q.index.lagging = append(q.index.lagging, Lagging{Queue: q, Leased: leased})
	}
}

// NextLagging takes the order that has waited longest. The caller scans for its first
// key and calls AdvanceLeaseWatermark or AdvanceDeadWatermark. Orders without keys are
// skipped: the next key sets their watermark.
func (x *Index) NextLagging() (Lagging, bool) {
	for len(x.lagging) > 0 {
		next := x.lagging[0]
		x.lagging[0] = Lagging{}
		x.lagging = x.lagging[1:]
		gone, count := &next.Queue.deadGone, next.Queue.counters.Dead
		if next.Leased {
			gone, count = &next.Queue.leasedGone, next.Queue.counters.InProgress
		}
		*gone = 0
		if count > 0 && !next.Queue.forgotten {
			return next, true
		}
	}
	x.lagging = nil
	return Lagging{}, false
}
