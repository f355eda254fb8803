package index

// Lagging asks where the first key is of an order that many have left: one of which
// only figures are kept, so that nobody knows.
type Lagging struct {
	Queue *Queue
	// Leased says which order: the tasks in progress, from LeaseWatermark on, or the
	// dead letters, from DeadWatermarkMs on.
	Leased bool
}

// leavesGap counts a key that left an order.
func (q *Queue) leavesGap(gone *int, leased bool) {
	if *gone++; *gone == q.index.limits.AdvanceAfter {
		q.index.lagging = append(q.index.lagging, Lagging{Queue: q, Leased: leased})
	}
}

// NextLagging takes the order that has waited longest. Whoever takes it says with
// AdvanceLeaseWatermark or AdvanceDeadWatermark what a scan has found. Orders without a key
// are passed over: the next one sets their watermark.
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
