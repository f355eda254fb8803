package index

import "fmt"

// add adds a key to an order and keeps the invariant of the cursor.
func (q *Queue) add(r *run, k entry) {
	q.changing()
	count := r.count()
	complete := int64(r.len()) == *count
	behind := k.compare(r.cursor) > 0
	*count++
	if behind && complete {
		r.cursor = k.place
	}
	if !behind || complete {
		r.mustInsert(k)
		r.trim(q.index.limits.Run)
	}
	// A key that stays in the store only is behind the cursor: it lowers no watermark.
	r.setWatermark(r.watermark())
	r.noteHead() // while the head is in the store only, the key may be before it
	q.settle(r)
}

// remove removes a key from an order and keeps the invariant of the cursor.
func (q *Queue) remove(r *run, k place) {
	q.changing()
	count := r.count()
	if k.compare(r.cursor) <= 0 {
		r.mustCut(k)
	} else if int64(r.len()) >= *count {
		r.fail("key %d/%s is behind the cursor of a complete run", k.rank, k.id)
	}
	*count--
	watermark := r.watermark()
	if *count == 0 {
		watermark = max(watermark, k.rank+1)
	}
	r.setWatermark(watermark)
	r.noteHead()
	q.settle(r)
}

// trim halves a run that is longer than most, so that it does not drop a key at each
// of the next additions.
func (r *run) trim(most int) {
	if r.len() <= most {
		return
	}
	r.keep(most / 2)
	r.cursor = r.last()
}

// setWatermark stores the highest bound that is known: the head of the run if there is
// one, else the cursor if keys remain behind it. holds is a bound that holds anyway.
func (r *run) setWatermark(holds uint64) {
	switch {
	case r.len() > 0:
		holds = r.first().rank
	case *r.count() > 0:
		holds = max(holds, r.cursor.rank)
	}
	if r.timed != nil {
		*r.timed.watermarkMs = int64(holds)
		return
	}
	r.queue.counters.ReadyWatermark[r.priority] = holds
}

// noteHead stores since when the head of a ready order is ready: 0 if there is no head
// or it is in the store only.
func (r *run) noteHead() {
	if r.len() == 0 {
		r.setSince(0)
		return
	}
	r.setSince(r.keys[r.head].sinceMs)
}

func (r *run) setSince(ms int64) {
	if r.timed != nil || r.queue.counters.ReadySinceMs[r.priority] == ms {
		return
	}
	r.queue.changing()
	r.queue.counters.ReadySinceMs[r.priority] = ms
}

func (r *run) watermark() uint64 {
	if r.timed != nil {
		return uint64(*r.timed.watermarkMs)
	}
	return r.queue.counters.ReadyWatermark[r.priority]
}

// count is the counter of the order. Nothing else holds the number of its keys.
func (r *run) count() *int64 {
	if r.timed != nil {
		return r.timed.total
	}
	return &r.queue.counters.Ready[r.priority]
}

// settle updates the heaps and the refill list after a run has changed.
func (q *Queue) settle(r *run) {
	if r.timed != nil {
		r.timed.settleDue()
	}
	q.index.refills.note(r, q.index.limits)
}

// fail panics over a broken invariant, with the numbers of the run.
func (r *run) fail(format string, args ...any) {
	name := fmt.Sprintf("priority %d", r.priority)
	if r.timed != nil {
		name = r.timed.order.String()
	}
	panic(fmt.Sprintf("index: queue %v %s: %s (%d in memory, count %d, watermark %d, cursor %d/%s)", r.queue.key, name,
		fmt.Sprintf(format, args...), r.len(), *r.count(), r.watermark(), r.cursor.rank, r.cursor.id))
}
