package index

import (
	"math"
	"slices"
	"strings"
	"testing"

	"codeq/record"
	"codeq/wire"
)

func pend(seq uint64) record.PendingKey { return record.PendingKey{Seq: seq, ID: wire.TaskID{1}} }

// sinceOf is since when the task of a place is ready.
func sinceOf(seq uint64) int64 { return int64(seq) + 1000 }

func entries(seqs ...uint64) (found []record.PendingEntry) {
	for _, seq := range seqs {
		found = append(found, record.PendingEntry{PendingKey: pend(seq), ReadyAtMs: sinceOf(seq)})
	}
	return found
}

func due(atMs int64) record.TimedKey { return record.TimedKey{AtMs: atMs, ID: wire.TaskID{1}} }

func addMany(q *Queue, prio int, from, to uint64) {
	for seq := from; seq <= to; seq++ {
		q.AddReady(prio, pend(seq), sinceOf(seq))
	}
}

func wantHead(t *testing.T, q *Queue, prio int, seq uint64) {
	t.Helper()
	gotPrio, k, ok := q.HeadReady()
	if !ok || gotPrio != prio || k != pend(seq) {
		t.Fatalf("head is %d/%d %v, want %d/%d", gotPrio, k.Seq, ok, prio, seq)
	}
}

func wantNoHead(t *testing.T, q *Queue) {
	t.Helper()
	if prio, k, ok := q.HeadReady(); ok {
		t.Fatalf("head is %d/%d, want none", prio, k.Seq)
	}
}

// wantPanic checks that f panics and that the panic says the word.
func wantPanic(t *testing.T, word string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if said, ok := recover().(string); !ok || !strings.Contains(said, word) {
			t.Fatalf("panicked with %q, want %q in it", said, word)
		}
	}()
	f()
}

func TestHigherPriorityComesFirst(t *testing.T) {
	q := New(small).Queue(someQueue)
	q.AddReady(0, pend(1), sinceOf(1))
	q.AddReady(9, pend(2), sinceOf(2))
	q.AddReady(9, pend(3), sinceOf(3))
	wantHead(t, q, 9, 2)
	q.RemoveReady(9, pend(2))
	wantHead(t, q, 9, 3)
	q.RemoveReady(9, pend(3))
	wantHead(t, q, 0, 1)
	q.RemoveReady(0, pend(1))
	wantNoHead(t, q)
}

func TestLowerPriorityDoesNotOvertakeAnUnreadOne(t *testing.T) {
	x := New(small)
	q := x.Restore(someQueue, record.Counters{
		Ready:          [record.Priorities]int64{5: 2},
		ReadyWatermark: [record.Priorities]uint64{5: 10},
	})
	q.AddReady(0, pend(20), sinceOf(20))
	wantNoHead(t, q)
	f, ok := x.NextRefill()
	if want := (record.PendingKey{Seq: 9, ID: justBelow(10).id}); !ok || f.AfterPending != want || f.Limit != 2 || f.Priority != 5 {
		t.Fatalf("refill is %+v", f)
	}
	f.FillPending(entries(10, 12))
	wantHead(t, q, 5, 10)
	if f, ok := x.NextRefill(); ok {
		t.Fatalf("wants %+v after it was filled", f)
	}
}

func TestLongRunDropsItsTailAndReadsItAgain(t *testing.T) {
	x := New(small)
	q := x.Queue(someQueue)
	addMany(q, 5, 1, 9)
	if n := q.ready[5].len(); n != 4 {
		t.Fatalf("%d keys in memory after the drop, want 4", n)
	}
	addMany(q, 5, 10, 12) // only counted
	if n, c := q.ready[5].len(), q.Counters().Ready[5]; n != 4 || c != 12 {
		t.Fatalf("%d keys in memory of %d, want 4 of 12", n, c)
	}
	if _, ok := x.NextRefill(); ok {
		t.Fatal("wants a refill with 4 keys")
	}
	q.RemoveReady(5, pend(1))
	q.RemoveReady(5, pend(2))
	f, ok := x.NextRefill()
	if !ok || f.AfterPending != pend(4) || f.Limit != 6 {
		t.Fatalf("refill is %+v", f)
	}
	f.FillPending(entries(5, 6, 7, 8, 9, 10))
	wantHead(t, q, 5, 3)
}

func TestPutBackLowersTheWatermarkAndIsTheHead(t *testing.T) {
	q := New(small).Queue(someQueue)
	addMany(q, 5, 1, 12)
	for seq := uint64(1); seq <= 4; seq++ {
		q.RemoveReady(5, pend(seq))
	}
	wantNoHead(t, q)
	if watermark := q.Counters().ReadyWatermark[5]; watermark < 4 || watermark > 5 {
		t.Fatalf("watermark is %d, the least is 5 and 4 is known to be gone", watermark)
	}
	q.AddReady(5, pend(2), sinceOf(2))
	wantHead(t, q, 5, 2)
	if watermark := q.Counters().ReadyWatermark[5]; watermark != 2 {
		t.Fatalf("watermark is %d, want 2", watermark)
	}
}

// After a start the watermark may be below a head of which only the time is known. A task that
// returns to its old place between the two is the head now.
func TestPutBackBeforeAnUnreadHeadMakesItsTimeUnknown(t *testing.T) {
	x := New(small)
	q := x.Restore(someQueue, record.Counters{
		Ready: [record.Priorities]int64{5: 2}, ReadyWatermark: [record.Priorities]uint64{5: 5}, ReadySinceMs: [record.Priorities]int64{5: sinceOf(9)},
	})
	q.AddReady(5, pend(7), sinceOf(7))
	if got := q.Counters().ReadySinceMs[5]; got != 0 {
		t.Errorf("the head is ready since %d before it was read, want 0", got)
	}
	f, _ := x.NextRefill()
	f.FillPending(entries(7, 9, 10))
	if got := q.Counters().ReadySinceMs[5]; got != sinceOf(7) {
		t.Errorf("the head is ready since %d, want %d", got, sinceOf(7))
	}
}

func TestRunIsCompleteAgainWhenTheStoresPartIsRemoved(t *testing.T) {
	x := New(small)
	q := x.Queue(someQueue)
	addMany(q, 5, 1, 9) // 5 to 9 only in the store
	for seq := uint64(5); seq <= 9; seq++ {
		q.RemoveReady(5, pend(seq))
	}
	q.AddReady(5, pend(30), sinceOf(30))
	if n := q.ready[5].len(); n != 5 {
		t.Fatalf("%d keys in memory, want 5", n)
	}
	for seq := uint64(1); seq <= 4; seq++ {
		q.RemoveReady(5, pend(seq))
	}
	wantHead(t, q, 5, 30)
	q.RemoveReady(5, pend(30))
	if c := q.Counters(); !c.IsZero() || c.ReadyWatermark[5] != 31 {
		t.Fatalf("counters are %+v, want none and a watermark of 31", c)
	}
}

func TestDueWaitsForItsTime(t *testing.T) {
	x := New(small)
	a, b := x.Queue(someQueue), x.Queue(record.QueueKey{Command: "other", Tenant: "t"})
	a.AddDelayed(due(200))
	b.AddDelayed(record.TimedKey{AtMs: 100, ID: wire.TaskID{2}})
	b.AddDelayed(due(300))
	if at := x.NextDueAtMs(); at != 100 {
		t.Fatalf("next due at %d, want 100", at)
	}
	if _, ok := x.HeadDue(99); ok {
		t.Fatal("due before its time")
	}
	d, ok := x.HeadDue(100)
	if !ok || d.Queue != b || d.Key.AtMs != 100 {
		t.Fatalf("due is %+v %v", d.Key, ok)
	}
	b.RemoveDelayed(d.Key)
	if d, ok = x.HeadDue(1000); !ok || d.Queue != a || d.Key != due(200) {
		t.Fatalf("due is %+v %v, want the other queue's", d.Key, ok)
	}
}

// Delayed tasks and those that expire come in one order, by their times.
func TestU04ExpiryAndDelayComeInOneOrder(t *testing.T) {
	x := New(small)
	q := x.Queue(someQueue)
	q.AddDelayed(due(100))
	q.AddExpiring(due(150))
	q.AddExpiring(due(90))
	q.AddDelayed(due(120))
	for _, want := range []Due{{q, Expiring, due(90)}, {q, Delayed, due(100)}, {q, Delayed, due(120)}, {q, Expiring, due(150)}} {
		if at := x.NextDueAtMs(); at != want.Key.AtMs {
			t.Fatalf("next due at %d, want %d", at, want.Key.AtMs)
		}
		d, ok := x.HeadDue(want.Key.AtMs)
		if !ok || d != want {
			t.Fatalf("due is %v %v %v, want %v %v", d.Order, d.Key, ok, want.Order, want.Key)
		}
		if d.Order == Expiring {
			q.RemoveExpiring(d.Key)
		} else {
			q.RemoveDelayed(d.Key)
		}
	}
	if at := x.NextDueAtMs(); at != 0 {
		t.Fatalf("next due at %d, want none", at)
	}
}

func TestUnreadDelayedQueueIsDueAtItsWatermark(t *testing.T) {
	x := New(small)
	q := x.Restore(someQueue, record.Counters{Delayed: 2, DelayedWatermarkMs: 500})
	if at := x.NextDueAtMs(); at != 500 {
		t.Fatalf("next due at %d, want the watermark, 500", at)
	}
	if _, ok := x.HeadDue(math.MaxInt64); ok {
		t.Fatal("due without having been read")
	}
	f, ok := x.NextRefill()
	if want := (record.TimedKey{AtMs: 499, ID: justBelow(1).id}); !ok || f.Order != Delayed || f.AfterTimed != want || f.Limit != 2 {
		t.Fatalf("refill is %+v, want one after %+v", f, want)
	}
	f.FillTimed([]record.TimedKey{due(510), due(520)})
	if at := x.NextDueAtMs(); at != 510 {
		t.Fatalf("next due at %d, want 510", at)
	}
	q.RemoveDelayed(due(510))
	q.RemoveDelayed(due(520))
	if at := x.NextDueAtMs(); at != 0 {
		t.Fatalf("next due at %d, want none", at)
	}
}

func TestDelayedWithoutAWatermarkIsDueAtOnce(t *testing.T) {
	x := New(small)
	x.Restore(someQueue, record.Counters{Delayed: 1})
	if at := x.NextDueAtMs(); at != 1 {
		t.Fatalf("next due at %d, want 1", at)
	}
	if f, ok := x.NextRefill(); !ok || f.AfterTimed != (record.TimedKey{}) {
		t.Fatalf("refill is %+v, want one from the start", f)
	}
}

func TestEndedTasksHaveOnlyFigures(t *testing.T) {
	q := New(small).Queue(someQueue)
	q.AddDead(100, wire.DeadFailed)
	q.AddDead(90, wire.DeadReleased)
	q.AddDone(200)
	q.AddLeased(wire.TaskID{7: 9})
	want := record.Counters{
		Dead: 2, DeadWatermarkMs: 90, DeadBy: [wire.DeadKinds]int64{wire.DeadFailed: 1, wire.DeadReleased: 1}, FailedWatermarkMs: 100,
		Done: 1, DoneWatermarkMs: 200, InProgress: 1, LeaseWatermark: 9,
	}
	if got := q.Counters(); got != want {
		t.Fatalf("counters are %+v, want %+v", got, want)
	}
	q.RemoveDead(due(90), wire.DeadReleased)
	if got := q.Counters().DeadWatermarkMs; got != 90 {
		t.Fatalf("a removal raised the watermark to %d", got)
	}
	q.AdvanceDeadWatermark(95)
	q.AdvanceDeadWatermark(80)
	q.AdvanceFailedWatermark(100)
	q.AdvanceFailedWatermark(70)
	q.AdvanceDoneWatermark(150)
	q.RemoveLeased()
	want = record.Counters{
		LeaseWatermark: 9, Dead: 1, DeadWatermarkMs: 95, DeadBy: [wire.DeadKinds]int64{wire.DeadFailed: 1}, FailedWatermarkMs: 100,
		Done: 1, DoneWatermarkMs: 200,
	}
	if got := q.Counters(); got != want {
		t.Fatalf("counters are %+v, want %+v", got, want)
	}
	q.RemoveDead(due(100), wire.DeadFailed)
	q.RemoveDone(due(200))
	want = record.Counters{LeaseWatermark: 9, DeadWatermarkMs: 100, FailedWatermarkMs: 100, DoneWatermarkMs: 200}
	if got := q.Counters(); got != want {
		t.Fatalf("counters are %+v, want %+v", got, want)
	}
	q.AddDone(50) // nothing else is there: the watermark may be any
	if got := q.Counters().DoneWatermarkMs; got != 50 {
		t.Fatalf("watermark is %d, want 50", got)
	}
}

// A watermark is looked for once many have left, where there still is something.
func TestOrdersOfManyRemovalsAreLagging(t *testing.T) {
	x := New(Limits{Run: small.Run, Refill: small.Refill})
	q := x.Queue(someQueue)
	emptied := x.Queue(record.QueueKey{Command: "emptied", Tenant: "t"})
	for n := range advanceAfter + 1 {
		q.AddLeased(wire.TaskID{6: byte(n >> 8), 7: byte(n)})
		q.AddDead(int64(n), wire.DeadExhausted)
		if n > 0 {
			emptied.AddDead(int64(n), wire.DeadExhausted)
		}
	}
	for n := range advanceAfter {
		if lagging, ok := x.NextLagging(); ok {
			t.Fatalf("%+v after %d removals", lagging, n)
		}
		emptied.RemoveDead(due(int64(n+1)), wire.DeadExhausted)
		q.RemoveLeased()
		q.RemoveDead(due(int64(n)), wire.DeadExhausted)
	}
	for _, leased := range []bool{true, false} {
		if lagging, ok := x.NextLagging(); !ok || lagging != (Lagging{q, leased}) {
			t.Fatalf("%+v, %v, want those in progress first: %v", lagging, ok, leased)
		}
	}
	if lagging, ok := x.NextLagging(); ok {
		t.Fatalf("%+v, and nothing is left", lagging)
	}
	q.AdvanceLeaseWatermark(advanceAfter)
	q.AdvanceLeaseWatermark(1)
	if c := q.Counters(); c.LeaseWatermark != advanceAfter {
		t.Errorf("the watermark is %d", c.LeaseWatermark)
	}
	q.AddLeased(wire.TaskID{7: 3}) // one that is granted again
	if c := q.Counters(); c.LeaseWatermark != 3 {
		t.Errorf("the watermark is %d, want that of the new one", c.LeaseWatermark)
	}
}

func TestDirtyQueuesComeOnceInOrderOfTheirFirstChange(t *testing.T) {
	x := New(small)
	a, b := x.Queue(someQueue), x.Queue(record.QueueKey{Command: "other", Tenant: "t"})
	if got := x.TakeDirty(nil); len(got) != 0 {
		t.Fatalf("%d queues changed by being made", len(got))
	}
	b.AddLeased(wire.TaskID{7: 9})
	a.AddReady(1, pend(1), sinceOf(1))
	b.RemoveLeased()
	if got := x.TakeDirty([]*Queue{a}); !slices.Equal(got, []*Queue{a, b, a}) {
		t.Fatalf("%d queues, or in another order", len(got))
	}
	if got := x.TakeDirty(nil); len(got) != 0 {
		t.Fatalf("%d queues changed twice", len(got))
	}
	a.AdvanceDoneWatermark(7)
	if got := x.TakeDirty(nil); !slices.Equal(got, []*Queue{a}) {
		t.Fatalf("%d queues changed by a watermark", len(got))
	}
}

func TestForgottenQueueIsStillDirtyAndGone(t *testing.T) {
	x := New(small)
	q := x.Queue(someQueue)
	q.AddReady(1, pend(1), sinceOf(1))
	q.RemoveReady(1, pend(1))
	x.Forget(q)
	if x.Find(someQueue) != nil {
		t.Fatal("still there")
	}
	if got := x.TakeDirty(nil); !slices.Equal(got, []*Queue{q}) {
		t.Fatalf("%d changed queues", len(got))
	}
	wantPanic(t, "forgotten", func() { q.AddLeased(wire.TaskID{7: 9}) })
	wantPanic(t, "forgotten", func() { x.Forget(q) })
	if x.Queue(someQueue) == q {
		t.Fatal("the forgotten queue came back")
	}
}

func TestImpossibleMovesPanic(t *testing.T) {
	for name, f := range map[string]func(q *Queue){
		"added twice":   func(q *Queue) { q.AddReady(5, pend(2), sinceOf(2)) },
		"not in memory": func(q *Queue) { q.RemoveReady(6, pend(0)) },
		"complete run":  func(q *Queue) { q.RemoveReady(5, pend(9)) },
		"time 0":        func(q *Queue) { q.AddDelayed(due(0)) },
		"time -1":       func(q *Queue) { q.RemoveDelayed(due(-1)) },
		"-1 tasks in":   func(q *Queue) { q.RemoveLeased() },
		"-1 tasks dead": func(q *Queue) { q.RemoveDead(due(1), wire.DeadFailed) },
		"-1 tasks dead because of failed": func(q *Queue) {
			q.AddDead(1, wire.DeadReleased)
			q.RemoveDead(due(1), wire.DeadFailed)
		},
		"-1 tasks done": func(q *Queue) { q.RemoveDone(due(1)) },
		"forgotten":     func(q *Queue) { q.index.Forget(q) },
		"twice":         func(q *Queue) { q.index.Restore(someQueue, record.Counters{}) },
		"-3":            func(*Queue) { New(small).Restore(someQueue, record.Counters{Ready: [record.Priorities]int64{4: -3}}) },
		"runs of 1":     func(*Queue) { New(Limits{Run: 1, Refill: 1}) },
		"below 0":       func(*Queue) { New(Limits{Run: 8, Refill: 0}) },
		"below 9":       func(*Queue) { New(Limits{Run: 8, Refill: 9}) },
	} {
		t.Run(name, func(t *testing.T) {
			q := New(small).Queue(someQueue)
			addMany(q, 5, 1, 3)
			addMany(q, 6, 1, 9)
			q.AddDelayed(due(100))
			wantPanic(t, name, func() { f(q) })
		})
	}
}

// Each case breaks one thing that a scan promises.
func TestImpossibleRefillsPanic(t *testing.T) {
	for name, c := range map[string]struct {
		word string
		fill func(q *Queue, f Refill)
	}{
		"too few":      {"found 2", func(q *Queue, f Refill) { f.FillPending(entries(5, 6)) }},
		"too many":     {"found 4", func(q *Queue, f Refill) { f.FillPending(entries(5, 6, 7, 8)) }},
		"known":        {"refilled with 4", func(q *Queue, f Refill) { f.FillPending(entries(4, 5, 6)) }},
		"out of order": {"refilled with 5", func(q *Queue, f Refill) { f.FillPending(entries(6, 5, 7)) }},
		"twice in one": {"refilled with 5", func(q *Queue, f Refill) { f.FillPending(entries(5, 5, 6)) }},
		"filled twice": {"refilled from 4", func(q *Queue, f Refill) {
			f.FillPending(entries(5, 6, 7))
			f.FillPending(entries(5, 6, 7))
		}},
		"after a change": {"refilled with 3", func(q *Queue, f Refill) {
			q.RemoveReady(5, pend(6))
			f.FillPending(entries(5, 7, 8))
		}},
		"another order": {"another order", func(q *Queue, f Refill) { Refill{Queue: q, Order: Ready}.FillTimed(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			x := New(small)
			q := x.Queue(someQueue)
			addMany(q, 5, 1, 9)
			q.RemoveReady(5, pend(1))
			q.RemoveReady(5, pend(9))
			q.RemoveReady(5, pend(8))
			q.RemoveReady(5, pend(2))
			f, ok := x.NextRefill()
			if !ok || f.Limit != 3 {
				t.Fatalf("refill is %+v", f)
			}
			wantPanic(t, c.word, func() { c.fill(q, f) })
		})
	}
}

func TestMemoryDoesNotGrowWithTheBacklog(t *testing.T) {
	x := New(large)
	q := x.Queue(someQueue)
	const backlog = 50_000
	for seq := uint64(1); seq <= backlog; seq++ {
		q.AddReady(5, pend(seq), sinceOf(seq))
		q.AddDelayed(due(int64(seq)))
	}
	for _, r := range []*run{&q.ready[5], &q.delayed.run} {
		if cap(r.keys) > 2*large.Run || r.len() < large.Run/2 {
			t.Fatalf("%d keys in the memory of %d for a backlog of %d", r.len(), cap(r.keys), *r.count())
		}
	}
	next := uint64(1)
	for {
		prio, k, ok := q.HeadReady()
		if !ok {
			f, wanted := x.NextRefill()
			if !wanted {
				break
			}
			fillOnward(f)
			continue
		}
		if k.Seq != next {
			t.Fatalf("head is %d, want %d", k.Seq, next)
		}
		q.RemoveReady(prio, k)
		next++
		if len(q.ready[5].keys) > 2*large.Run {
			t.Fatalf("%d keys in memory", len(q.ready[5].keys))
		}
	}
	if next != backlog+1 || cap(q.ready[5].keys) > keptCap {
		t.Fatalf("drained up to %d, with the memory of %d keys", next, cap(q.ready[5].keys))
	}
}

// fillOnward serves a refill of an order without gaps.
func fillOnward(f Refill) {
	if f.Order != Ready {
		keys := make([]record.TimedKey, f.Limit)
		for i := range keys {
			keys[i] = due(f.AfterTimed.AtMs + int64(i) + 1)
		}
		f.FillTimed(keys)
		return
	}
	seqs := make([]uint64, f.Limit)
	for i := range seqs {
		seqs[i] = f.AfterPending.Seq + uint64(i) + 1
	}
	f.FillPending(entries(seqs...))
}

// After a start every queue wants its head. The one that somebody asks for does
// not wait for the others.
func TestRefillThatSomebodyWaitsForComesFirst(t *testing.T) {
	x := New(small)
	var queues []*Queue
	for n := range 5 {
		queues = append(queues, x.Restore(record.QueueKey{Command: string(rune('a' + n)), Tenant: "t"}, record.Counters{
			Ready: [record.Priorities]int64{5: 1}, ReadyWatermark: [record.Priorities]uint64{5: 10}, Delayed: 1, DelayedWatermarkMs: int64(100 - n),
		}))
	}
	wantNoHead(t, queues[3])
	wantNoHead(t, queues[3])
	if _, ok := x.HeadDue(96); ok {
		t.Fatal("due without having been read")
	}
	for _, want := range []struct {
		q     *Queue
		order Order
	}{{queues[3], Ready}, {queues[4], Delayed}, {queues[0], Ready}} {
		f, ok := x.NextRefill()
		if !ok || f.Queue != want.q || f.Order != want.order {
			t.Fatalf("refill of %v, %v, want %v, %v", f.Queue.Key(), f.Order, want.q.Key(), want.order)
		}
		if f.Order == Delayed {
			f.FillTimed([]record.TimedKey{due(100)})
		} else {
			f.FillPending(entries(10))
		}
	}
}

// The next moment is now if a watermark is not known, whatever else is delayed.
func TestUnknownWatermarkIsDueAtOnce(t *testing.T) {
	x := New(small)
	x.Restore(someQueue, record.Counters{Delayed: 1})
	if got := x.NextDueAtMs(); got != 1 {
		t.Errorf("next due at %d, want 1", got)
	}
	x.Queue(record.QueueKey{Command: "other", Tenant: "t"}).AddDelayed(due(50))
	if got := x.NextDueAtMs(); got != 1 {
		t.Errorf("next due at %d beside one at 50, want 1", got)
	}
}
