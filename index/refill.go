package index

import "codeq/record"

// Refill asks for the keys of one order that follow those in memory. It is
// good until the next change of its queue.
type Refill struct {
	Queue *Queue
	// Order says which: a ready one, of Priority, read after AfterPending, or one by
	// time, read after AfterTimed.
	Order        Order
	Priority     int
	AfterPending record.PendingKey
	AfterTimed   record.TimedKey
	// Limit is how many keys to read at most. There are that many.
	Limit int
}

// NextRefill is a run that should be read now: it is shorter than Limits.Refill
// and than its counter. One that somebody waits for comes first, then the one that
// has wanted it longest. It is given again until it was filled or no longer wants
// it.
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
	// Never more than the counter has, so that the scan ends at the last live
	// key and does not walk over deleted ones behind it.
	f.Limit = int(min(int64(x.limits.Run), *r.count())) - r.len()
	return f, true
}

// FillPending takes what a scan of a ready order found strictly after
// AfterPending: the next keys in order, at most Limit. Panics when that cannot
// be: keys out of order or not behind the cursor, or fewer than the counter
// has. The figures of the queue change only if nobody knew since when its head
// is ready.
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

// refillList is a first-in, first-out list of runs that wanted a refill when
// they were noted. Whether one still does is looked at when its turn comes. Those
// in hurried come before: somebody asked for their head, and after a start there
// are thousands that nobody has asked for.
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
