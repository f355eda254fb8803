package index

import (
	"slices"

	"codeq/record"
)

// left notes that a key has left an order of which memory has none.
func (m *model) left(q *Queue, leased bool) {
	s := Lagging{q, leased}
	if m.gone[s]++; m.gone[s] == small.AdvanceAfter {
		m.lagging = append(m.lagging, s)
	}
}

// advanceWatermarks takes what NextLagging gives until there is none, and raises each
// watermark as far as it may be.
func (m *model) advanceWatermarks() {
	for _, want := range m.lagging {
		m.gone[want] = 0
		mq := m.queueWith(want.Queue)
		if mq == nil || want.Leased && mq.held == 0 || !want.Leased && len(mq.dead) == 0 {
			m.counts["watermark not looked for"]++
			continue
		}
		if s, ok := m.x.NextLagging(); !ok || s != want {
			m.fatalf("the watermark of %+v is looked for (%v), want %+v", s, ok, want)
		}
		m.counts["watermark looked for"]++
		m.advanceWatermark(mq, want.Leased)
	}
	if s, ok := m.x.NextLagging(); ok {
		m.fatalf("the watermark of %+v is looked for, of %d keys that left", s, m.gone[s])
	}
	m.lagging = nil
}

func (m *model) advanceWatermark(mq *modelQueue, leased bool) {
	before := mq.q.Counters()
	if leased {
		var least []uint64
		for _, h := range m.held {
			if h.in == mq {
				least = append(least, record.RankOf(h.key.id))
			}
		}
		mq.q.AdvanceLeaseWatermark(slices.Min(least))
	} else {
		mq.q.AdvanceDeadWatermark(int64(mq.dead[0].rank))
	}
	if mq.q.Counters() != before {
		m.touched(mq)
	}
}

// queueWith is the queue that q stands for now, nil if q was forgotten.
func (m *model) queueWith(q *Queue) *modelQueue {
	for _, mq := range m.queues {
		if mq.q == q {
			return mq
		}
	}
	return nil
}

// askedRun is an order whose head was asked for while memory had none.
type askedRun struct {
	run *run
	// waits: it has wanted its refill ever since. filled: it has had one.
	waits, filled bool
}

// asks notes that somebody asked for the head of an order, or may have.
func (m *model) asks(r *run, surely bool) {
	for _, a := range m.asked {
		if a.run == r {
			a.waits, a.filled = a.waits || surely, false
			return
		}
	}
	m.asked = append(m.asked, &askedRun{run: r, waits: surely})
}

func (m *model) answered(r *run) {
	for _, a := range m.asked {
		a.filled = a.filled || a.run == r
	}
}

// headReady is HeadReady, which is told to wait while the head is not in memory.
func (m *model) headReady(mq *modelQueue) (prio int, k record.PendingKey, ok bool) {
	prio, k, ok = mq.q.HeadReady()
	for order := delayedOrder - 1; order >= 0 && !ok; order-- {
		if len(mq.orders[order]) > 0 {
			m.asks(mq.run(order), true)
			break
		}
	}
	return prio, k, ok
}

// headDue is HeadDue, for which the order whose watermark falls due first waits while
// only that is known.
func (m *model) headDue() (d Due, ok bool) {
	d, ok = m.x.HeadDue(m.nowMs)
	var first []*run
	leastMs := m.nowMs
	for _, mq := range m.queues {
		for _, order := range timedOrders {
			if mq.q == nil || len(mq.orders[order]) == 0 || mq.run(order).len() > 0 || int64(mq.run(order).watermark()) > leastMs {
				continue
			}
			if watermarkMs := int64(mq.run(order).watermark()); watermarkMs < leastMs {
				first, leastMs = nil, watermarkMs
			}
			first = append(first, mq.run(order))
		}
	}
	for _, r := range first {
		// If several have one watermark, any may be the first.
		m.asks(r, len(first) == 1)
	}
	return d, ok
}

// nextRefill is NextRefill, which gives no order that nobody has asked for while
// somebody waits for another one.
func (m *model) nextRefill() (Refill, bool) {
	waits := false
	m.asked = slices.DeleteFunc(m.asked, func(a *askedRun) bool {
		wants := a.run.wantsRefill(small)
		a.waits = a.waits && wants
		waits = waits || a.waits && !a.run.queue.forgotten
		return a.filled && !wants
	})
	for i, r := range m.x.refills.hurried {
		if slices.Contains(m.x.refills.hurried[:i], r) {
			m.fatalf("order %d of %v stands twice among those that come first", r.priority, r.queue.Key())
		}
	}
	f, ok := m.x.NextRefill()
	if !ok || !waits {
		return f, ok
	}
	r := &f.Queue.timedOf(f.Order).run
	if f.Order == Ready {
		r = &f.Queue.ready[f.Priority]
	}
	if !slices.ContainsFunc(m.asked, func(a *askedRun) bool { return a.run == r }) {
		m.fatalf("order %d of %v is refilled, and somebody waits for another one", f.Priority, f.Queue.Key())
	}
	if r != m.x.refills.first {
		m.counts["refilled for somebody before others"]++
	}
	return f, ok
}
