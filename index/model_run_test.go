package index

import (
	"fmt"
	"slices"
	"testing"

	"codeq/record"
	"codeq/wire"
)

// step does one thing that a shard may do. filling is how willing it is to add.
func (m *model) step(filling bool) {
	op := m.r.IntN(100)
	switch {
	case op < 12 || filling && op < 25:
		m.enqueue(1 + m.r.IntN(6))
	case op < 45:
		m.grant()
	case op < 57:
		m.putBackMany()
	case op < 66:
		m.retry()
	case op < 72:
		m.end()
	case op < 78:
		m.cancel()
	case op < 86:
		m.fire()
	case op < 93:
		m.refillSome()
	case op < 96:
		m.removeEnded()
	case op < 97:
		m.advanceWatermarks()
	case op < 99:
		m.checkDirty()
	case m.r.IntN(3) > 0:
		m.grantMany()
	default:
		m.empty(m.anyQueue())
		m.forget()
	}
	m.nowMs += int64(m.r.IntN(3))
}

func (m *model) enqueue(n int) {
	mq := m.anyQueue()
	for range n {
		if m.r.IntN(4) == 0 {
			m.add(mq, timedOrders[m.r.IntN(2)], place{m.anyDue(), m.newID()})
			continue
		}
		m.add(mq, m.anyPriority(), m.nextKey(m.newID()))
	}
}

func (m *model) grant() {
	mq := m.anyQueue()
	if mq.q == nil {
		return
	}
	prio, k, ok := m.headReady(mq)
	m.say("head %v %d %v %v", mq.key, prio, k, ok)
	if !ok {
		return
	}
	key := place{k.Seq, k.ID}
	m.remove(mq, prio, key)
	mq.q.AddLeased(key.id)
	mq.held++
	m.held = append(m.held, heldTask{mq, prio, key})
	m.counts["granted"]++
}

// grantMany and putBackMany are a session that takes many tasks and is gone.
func (m *model) grantMany() {
	for range 40 {
		m.grant()
		m.serve()
	}
}

func (m *model) putBackMany() {
	for range 1 + m.r.IntN(3)*m.r.IntN(8) {
		m.putBack()
	}
}

func (m *model) putBack() {
	if h, ok := m.takeHeld(); ok {
		if r := h.in.run(h.prio); r.len() == 0 && len(h.in.orders[h.prio]) > 0 {
			m.counts["put back into an empty window"]++
		} else if h.key.compare(r.cursor) > 0 {
			m.counts["put back behind the cursor"]++
		}
		m.add(h.in, h.prio, h.key)
	}
}

func (m *model) retry() {
	h, ok := m.takeHeld()
	if !ok {
		return
	}
	if m.r.IntN(2) == 0 {
		m.add(h.in, delayedOrder, place{m.anyDue(), h.key.id})
		return
	}
	m.add(h.in, h.prio, m.nextKey(h.key.id))
}

func (m *model) end() {
	h, ok := m.takeHeld()
	if !ok {
		return
	}
	k := place{uint64(m.nowMs) - uint64(m.r.IntN(3)), h.key.id}
	if m.r.IntN(2) == 0 {
		h.in.dead = insertSorted(h.in.dead, k)
		h.in.q.AddDead(int64(k.rank), causeOf(k))
		return
	}
	h.in.done = insertSorted(h.in.done, k)
	h.in.q.AddDone(int64(k.rank))
}

// cancel takes a task from anywhere in an order, also from the store's part.
func (m *model) cancel() {
	mq, order := m.anyQueue(), m.anyPriority()
	if m.r.IntN(3) == 0 {
		order = timedOrders[m.r.IntN(2)]
	}
	if n := len(mq.orders[order]); n > 0 {
		k := mq.orders[order][m.r.IntN(n)]
		if k.compare(mq.run(order).cursor) > 0 {
			m.counts["removed behind the cursor"]++
		}
		m.remove(mq, order, k)
	}
}

func (m *model) fire() {
	d, ok := m.headDue()
	m.say("due %v %v %v", d.Order, d.Key, ok)
	if !ok {
		return
	}
	mq := m.queueOf(d.Queue)
	m.remove(mq, timedOrders[d.Order-Delayed], place{uint64(d.Key.AtMs), d.Key.ID})
	if d.Order == Expiring {
		m.counts["expired"]++
		return
	}
	m.add(mq, m.anyPriority(), m.nextKey(d.Key.ID))
	m.counts["fired"]++
}

func (m *model) refillSome() {
	for range m.r.IntN(8) {
		m.serve()
	}
}

// removeEnded removes ended tasks, oldest first, or one from the middle as a replay
// of a dead letter does.
func (m *model) removeEnded() {
	mq := m.anyQueue()
	if n := len(mq.dead); n > 0 {
		k := mq.dead[m.r.IntN(n)]
		mq.dead = removeSorted(mq.dead, k)
		m.touched(mq).RemoveDead(timed(k), causeOf(k))
		m.left(mq.q, false)
	}
	for range min(m.r.IntN(4), len(mq.done)) {
		m.touched(mq).RemoveDone(timed(mq.done[0]))
		mq.done = mq.done[1:]
	}
	if mq.q == nil {
		return
	}
	before := mq.q.Counters()
	if len(mq.done) > 0 {
		mq.q.AdvanceDoneWatermark(int64(mq.done[0].rank))
	}
	if len(mq.dead) > 0 {
		mq.q.AdvanceDeadWatermark(int64(mq.dead[0].rank))
	}
	if failed := mq.failed(); len(failed) > 0 {
		mq.q.AdvanceFailedWatermark(int64(failed[0].rank))
	}
	if mq.q.Counters() != before {
		m.touched(mq)
	}
}

// causeOf draws the cause of a dead letter from its id.
func causeOf(k place) wire.DeadCause {
	return wire.DeadExhausted + wire.DeadCause(k.id[15])%(wire.DeadKinds-1)
}

// failed are the dead letters with that cause.
func (mq *modelQueue) failed() []place {
	return slices.DeleteFunc(slices.Clone(mq.dead), func(k place) bool { return causeOf(k) != wire.DeadFailed })
}

// empty removes every task of a queue, from wherever it is.
func (m *model) empty(mq *modelQueue) {
	for order := range mq.orders {
		for len(mq.orders[order]) > 0 {
			m.remove(mq, order, mq.orders[order][m.r.IntN(len(mq.orders[order]))])
		}
	}
	m.held = slices.DeleteFunc(m.held, func(h heldTask) bool {
		if h.in == mq {
			m.touched(mq).RemoveLeased()
		}
		return h.in == mq
	})
	mq.held = 0
	for ; len(mq.dead) > 0; mq.dead = mq.dead[1:] {
		m.touched(mq).RemoveDead(timed(mq.dead[0]), causeOf(mq.dead[0]))
	}
	for ; len(mq.done) > 0; mq.done = mq.done[1:] {
		m.touched(mq).RemoveDone(timed(mq.done[0]))
	}
}

func (m *model) checkDirty() {
	got := m.x.TakeDirty(nil)
	if len(got) != len(m.dirty) {
		m.fatalf("%d queues have changed, want %d", len(got), len(m.dirty))
	}
	for i, mq := range m.dirty {
		if got[i] != mq.q {
			m.fatalf("changed queue %d is %v, want %v", i, got[i].Key(), mq.key)
		}
	}
	m.dirty = nil
}

func (m *model) forget() {
	m.checkDirty()
	for _, mq := range m.queues {
		if mq.q != nil && mq.isEmpty() {
			m.x.Forget(mq.q)
			mq.q = nil
			m.counts["forgotten"]++
		}
	}
}

// restart forgets memory and goes on from the stored figures.
func (m *model) restart() {
	m.dirty, m.lagging, m.asked = nil, nil, nil
	clear(m.gone)
	x := New(small)
	for _, mq := range m.queues {
		if mq.q != nil {
			mq.q = x.Restore(mq.key, mq.q.Counters())
		}
	}
	m.x = x
	m.counts["restarted"]++
}

// check compares all that can be seen, and the invariant of the cursor.
func (m *model) check() {
	var known []place
	next, truth := int64(0), int64(0)
	wants := false
	for _, mq := range m.queues {
		if m.x.Find(mq.key) != mq.q {
			m.fatalf("queue %v is another one", mq.key)
		}
		if mq.q == nil {
			continue
		}
		m.checkEnded(mq)
		for order, live := range mq.orders {
			m.checkOrder(mq, order)
			r := mq.run(order)
			wants = wants || r.len() < small.Refill && r.len() < len(live)
		}
		m.checkHead(mq)
		for _, order := range timedOrders {
			live := mq.orders[order]
			if len(live) == 0 {
				continue
			}
			at := int64(mq.run(order).watermark())
			if mq.run(order).len() > 0 {
				known = append(known, live[0])
				at = int64(live[0].rank)
			}
			next, truth = earlier(next, at), earlier(truth, int64(live[0].rank))
		}
	}
	if _, ok := m.nextRefill(); ok != wants {
		m.fatalf("a refill is wanted: %v, want %v", ok, wants)
	}
	if got := m.x.NextDueAtMs(); got != next || got > truth {
		m.fatalf("next due at %d, want %d, which is no later than %d", got, next, truth)
	}
	m.checkDue(known)
}

func earlier(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (m *model) checkDue(known []place) {
	d, ok := m.headDue()
	if len(known) == 0 {
		if ok {
			m.fatalf("%v is due and not in memory", d.Key)
		}
		return
	}
	want := slices.MinFunc(known, place.compare)
	if due := int64(want.rank) <= m.nowMs; ok != due || ok && d.Key != timed(want) {
		m.fatalf("at %d %v is due: %v, want %v", m.nowMs, d.Key, ok, want)
	}
	if ok && m.queueOf(d.Queue).orders[timedOrders[d.Order-Delayed]][0] != want {
		m.fatalf("%v is due in order %v of queue %v", d.Key, d.Order, d.Queue.Key())
	}
}

func (m *model) checkOrder(mq *modelQueue, order int) {
	r, live := mq.run(order), mq.orders[order]
	c := &mq.q.counters
	count, watermark := c.Delayed, uint64(c.DelayedWatermarkMs)
	if order == expiringOrder {
		count, watermark = c.Expiring, uint64(c.ExpiringWatermarkMs)
	}
	if order < delayedOrder {
		count, watermark = c.Ready[order], c.ReadyWatermark[order]
	}
	if count != int64(len(live)) {
		m.fatalf("order %d of %v counts %d, want %d", order, mq.key, count, len(live))
	}
	upTo := 0
	for upTo < len(live) && live[upTo].compare(r.cursor) <= 0 {
		upTo++
	}
	if !slices.Equal(placesOf(r.live()), live[:upTo]) {
		m.fatalf("order %d of %v has %v up to %v, want %v", order, mq.key, r.live(), r.cursor, live[:upTo])
	}
	if r.len() > small.Run {
		m.fatalf("order %d of %v has %d keys in memory", order, mq.key, r.len())
	}
	m.checkSince(mq, order)
	if len(live) == 0 {
		return
	}
	if watermark > live[0].rank || r.len() > 0 && !mq.filled[order] && watermark != live[0].rank {
		m.fatalf("order %d of %v has the watermark %d, the least is %v", order, mq.key, watermark, live[0])
	}
}

// checkSince wants the time of the head, which may only be unknown while memory
// does not have the head.
func (m *model) checkSince(mq *modelQueue, order int) {
	if order >= delayedOrder {
		return
	}
	got, live := mq.q.counters.ReadySinceMs[order], mq.orders[order]
	switch {
	case len(live) == 0 && got == 0:
	case len(live) > 0 && got == m.since[live[0]]:
	case len(live) > 0 && got == 0 && mq.run(order).len() == 0:
		m.counts["head unknown"]++
	default:
		m.fatalf("order %d of %v is ready since %d: %v", order, mq.key, got, live)
	}
}

func (m *model) checkHead(mq *modelQueue) {
	prio, k, ok := m.headReady(mq)
	want := delayedOrder - 1
	for want >= 0 && len(mq.orders[want]) == 0 {
		want--
	}
	if want < 0 || mq.q.ready[want].len() == 0 {
		if ok {
			m.fatalf("%v has the head %d/%v, want none", mq.key, prio, k)
		}
		return
	}
	if !ok || prio != want || k != pending(mq.orders[want][0]) {
		m.fatalf("%v has the head %d/%v, want %d/%v", mq.key, prio, k, want, mq.orders[want][0])
	}
}

func (m *model) checkEnded(mq *modelQueue) {
	c := &mq.q.counters
	if c.InProgress != mq.held || c.Dead != int64(len(mq.dead)) || c.Done != int64(len(mq.done)) {
		m.fatalf("%v counts %+v, want %d, %d, %d", mq.key, c, mq.held, len(mq.dead), len(mq.done))
	}
	for _, h := range m.held {
		if h.in == mq && record.RankOf(h.key.id) < c.LeaseWatermark {
			m.fatalf("%v has the lease watermark %d, and %v in progress", mq.key, c.LeaseWatermark, h.key)
		}
	}
	failed := mq.failed()
	if c.DeadBy[wire.DeadFailed] != int64(len(failed)) || len(failed) > 0 && c.FailedWatermarkMs > int64(failed[0].rank) {
		m.fatalf("%v counts %d failed from %d on, want %v", mq.key, c.DeadBy[wire.DeadFailed], c.FailedWatermarkMs, failed)
	}
	if len(mq.dead) > 0 && c.DeadWatermarkMs > int64(mq.dead[0].rank) {
		m.fatalf("%v has the dead watermark %d, the least is %v", mq.key, c.DeadWatermarkMs, mq.dead[0])
	}
	if len(mq.done) > 0 && c.DoneWatermarkMs > int64(mq.done[0].rank) {
		m.fatalf("%v has the done watermark %d, the least is %v", mq.key, c.DoneWatermarkMs, mq.done[0])
	}
}

// drain grants everything, with the refills it takes, in the model's order.
func (m *model) drain() {
	for _, mq := range m.queues {
		for order := delayedOrder - 1; order >= 0; order-- {
			for len(mq.orders[order]) > 0 {
				m.drainHead(mq, order)
			}
		}
	}
}

// drainHead grants the head of an order, or serves one refill.
func (m *model) drainHead(mq *modelQueue, order int) {
	prio, k, ok := m.headReady(mq)
	if !ok {
		if !m.serve() {
			m.fatalf("%v is stuck with %d ready", mq.key, len(mq.orders[order]))
		}
		return
	}
	if prio != order || k != pending(mq.orders[order][0]) {
		m.fatalf("%v gave %d/%v, want %d/%v", mq.key, prio, k, order, mq.orders[order][0])
	}
	m.remove(mq, prio, mq.orders[order][0])
}

const modelSteps = 3000

func runSeed(t *testing.T, seed uint64) *model {
	m := newModel(t, seed)
	for i := range modelSteps {
		m.step(i/500%2 == 0)
		m.check()
		if m.r.IntN(200) == 0 {
			m.restart()
			m.check()
		}
	}
	m.drain()
	m.check()
	return m
}

func TestIndexAgreesWithFullOrders(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			for what, n := range runSeed(t, seed).counts {
				total[what] += n
			}
		})
	}
	// A run that never comes to the hard places proves nothing.
	for _, what := range []string{"refilled", "granted", "fired", "expired", "put back into an empty window",
		"put back behind the cursor", "removed behind the cursor", "forgotten", "restarted",
		"head unknown", "head found by a refill",
		"refilled for somebody before others", "watermark looked for", "watermark not looked for"} {
		t.Logf("%s: %d", what, total[what])
		if total[what] < 20 {
			t.Errorf("%s: only %d times", what, total[what])
		}
	}
}

func TestSameMessagesGiveTheSameAnswers(t *testing.T) {
	a, b := runSeed(t, 99), runSeed(t, 99)
	if a.hash() != b.hash() || len(a.said) < 1000 {
		t.Fatalf("one seed, two runs: %d and %d answers", len(a.said), len(b.said))
	}
}

// Delayed tasks of many queues come due in one order.
func TestDueOrderOverManyQueues(t *testing.T) {
	m := newModel(t, 7)
	m.queues = nil
	for i := range 200 {
		key := record.QueueKey{Command: fmt.Sprintf("c%d", i), Tenant: "t"}
		m.queues = append(m.queues, &modelQueue{key: key, q: m.x.Queue(key)})
	}
	for range 1000 {
		m.add(m.anyQueue(), timedOrders[m.r.IntN(2)], place{uint64(1 + m.r.IntN(300)), m.newID()})
	}
	var all []place
	for _, mq := range m.queues {
		all = append(all, mq.orders[delayedOrder]...)
		all = append(all, mq.orders[expiringOrder]...)
	}
	slices.SortFunc(all, place.compare)
	for _, want := range all {
		for m.serve() {
			continue
		}
		d, ok := m.x.HeadDue(300)
		if !ok || d.Key != timed(want) || m.x.NextDueAtMs() != d.Key.AtMs {
			t.Fatalf("due is %v %v, want %v", d.Key, ok, want)
		}
		m.remove(m.queueOf(d.Queue), timedOrders[d.Order-Delayed], want)
	}
	if m.x.NextDueAtMs() != 0 {
		t.Fatal("something is still due")
	}
}
