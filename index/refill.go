package index

import "codeq/record"

// Refill is a request for the keys of one order that follow those in memory. It is
// valid until the next change of its queue.
type Refill struct {
	Queue *Queue
	// Order is Ready, whose keys of Priority are read after AfterPending, or an order
	// by time, whose keys are read after AfterTimed.
	Order        Order
	Priority     int
	AfterPending record.PendingKey
	AfterTimed   record.TimedKey
	// Limit is how many keys to read. The store has at least that many.
	Limit int
}

// NextRefill returns the refill to serve next: of a run that is shorter than
// Limits.Refill and than its counter. A run whose head was asked for comes first, then
// the one that has wanted a refill longest. NextRefill returns it again until it is
// filled or no longer wants a refill.
func (x *Index) NextRefill() (Refill, bool) {
	r := x.refills.next(x.limits)
	if r == nil {
		return Refill{}, false
	}
	f := Refill{Queue: r.queue, Order: r.order(), Priority: r.priority}
	if r.timed != nil {
		f.AfterTimed = record.TimedKey{AtMs: int64(r.cursor.rank), ID: r.cursor.id}
	} else {
		f.AfterPending = record.PendingKey{Seq: r.cursor.rank, ID: r.cursor.id}
	}
	// The counter bounds it, so that the scan ends at the last live key and does not
	// pass over tombstones behind it.
	f.Limit = int(min(int64(x.limits.Run), *r.count())) - r.len()
	return f, true
}

// FillPending adds the Limit keys that a scan of a ready order found strictly after
// AfterPending. Panics if they are out of order, not behind the cursor, or not Limit
// many. It changes the figures of the queue only if ReadySinceMs of the head was
// unknown.
func (f Refill) FillPending(found []record.PendingEntry) {
	r := &f.Queue.ready[f.Priority]
	f.check(r, place{f.AfterPending.Seq, f.AfterPending.ID}, len(found))
	for _, k := range found {
		r.extend(entry{place{k.Seq, k.ID}, k.ReadyAtMs})
	}
	r.noteHead()
	f.Queue.settle(r)
}

// FillTimed is FillPending for the orders by time.
func (f Refill) FillTimed(keys []record.TimedKey) {
	r := &f.Queue.timedOf(f.Order).run
	f.check(r, place{uint64(f.AfterTimed.AtMs), f.AfterTimed.ID}, len(keys))
	for _, k := range keys {
		r.extend(entry{place: f.Queue.timedPlace(k)})
	}
	f.Queue.settle(r)
}

func (f Refill) check(r *run, after place, found int) {
	if r.order() != f.Order {
		r.fail("filled by the keys of another order")
	}
	if r.cursor != after {
		r.fail("refilled from %d/%s", after.rank, after.id)
	}
	if found != f.Limit {
		r.fail("a refill of %d found %d", f.Limit, found)
	}
	if int64(r.len()+found) > *r.count() {
		r.fail("refilled with %d", found)
	}
}

// extend appends the next key behind the cursor.
func (r *run) extend(k entry) {
	if k.compare(r.cursor) <= 0 {
		r.fail("refilled with %d/%s", k.rank, k.id)
	}
	r.keys = append(r.keys, k)
	r.cursor = k.place
}

// refillList is a first-in, first-out list of runs that wanted a refill when they were
// noted; next checks whether they still do. The runs in hurried come first: somebody
// asked for their head, and after a start thousands of others wait in the list.
type refillList struct {
	first, last *run
	hurried     []*run
}

// hurry puts a run without a key in memory before the others.
func (l *refillList) hurry(r *run) {
	if !r.hurried {
		r.hurried = true
		l.hurried = append(l.hurried, r)
	}
}

func (r *run) wantsRefill(l Limits) bool {
	return r.len() < l.Refill && int64(r.len()) < *r.count()
}

func (l *refillList) note(r *run, limits Limits) {
	if r.listed || !r.wantsRefill(limits) {
		return
	}
	r.listed = true
	if l.last == nil {
		l.first = r
	} else {
		l.last.after = r
	}
	l.last = r
}

func (l *refillList) next(limits Limits) *run {
	for len(l.hurried) > 0 {
		r := l.hurried[0]
		if r.wantsRefill(limits) {
			return r
		}
		r.hurried = false
		l.hurried[0] = nil
		l.hurried = l.hurried[1:]
	}
	for l.first != nil && !l.first.wantsRefill(limits) {
		r := l.first
		l.first = r.after
		r.after, r.listed = nil, false
	}
	if l.first == nil {
		l.last = nil
	}
	return l.first
}
