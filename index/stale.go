package index

// Stale asks where the first key is of an order that many have left: one of which
// only figures are kept, so that nobody knows.
type Stale struct {
	Queue *Queue
	// Leased says which order: the tasks in progress, from LeaseFloor on, or the
	// dead letters, from DeadFloorMs on.
	Leased bool
}

// leavesGap counts a key that left an order.
func (q *Queue) leavesGap(gone *int, leased bool) {
	if *gone++; *gone == q.index.limits.Stale {
		q.index.stale = append(q.index.stale, Stale{Queue: q, Leased: leased})
	}
}

// NextStale takes the order that has waited longest. Whoever takes it says with
// RaiseLeaseFloor or RaiseDeadFloor what a scan has found. Orders without a key
// are passed over: the next one sets their floor.
func (x *Index) NextStale() (Stale, bool) {
	for len(x.stale) > 0 {
		next := x.stale[0]
		x.stale[0] = Stale{}
		x.stale = x.stale[1:]
		gone, count := &next.Queue.deadGone, next.Queue.counters.Dead
		if next.Leased {
			gone, count = &next.Queue.leasedGone, next.Queue.counters.InProgress
		}
		*gone = 0
		if count > 0 && !next.Queue.forgotten {
			return next, true
		}
	}
	x.stale = nil
	return Stale{}, false
}
