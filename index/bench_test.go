package index

import (
	"testing"

	"codeq/record"
)

// A queue that keeps up: each task is added and taken again.
func BenchmarkAddAndPop(b *testing.B) {
	q := New(large).Queue(someQueue)
	addMany(q, 5, 1, 1000)
	seq := uint64(1000)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		q.AddReady(5, pend(seq), sinceOf(seq))
		prio, k, _ := q.HeadReady()
		q.RemoveReady(prio, k)
	}
}

// A queue with ten million waiting: the head comes from refills.
func BenchmarkAddAndPopBehindABacklog(b *testing.B) {
	x := New(large)
	const backlog = 10_000_000
	q := x.Restore(someQueue, record.Counters{
		Ready:          [record.Priorities]int64{5: backlog},
		ReadyWatermark: [record.Priorities]uint64{5: 1},
	})
	seq := uint64(backlog)
	b.ReportAllocs()
	for b.Loop() {
		if f, ok := x.NextRefill(); ok {
			fillOnward(f)
		}
		seq++
		q.AddReady(5, pend(seq), sinceOf(seq))
		prio, k, _ := q.HeadReady()
		q.RemoveReady(prio, k)
	}
}

// Tasks that go back to their old place before all others.
func BenchmarkPopAndPutBack(b *testing.B) {
	q := New(large).Queue(someQueue)
	addMany(q, 5, 1, 4000)
	held := make([]record.PendingKey, 0, 100)
	b.ReportAllocs()
	for b.Loop() {
		held = held[:0]
		for range 100 {
			_, k, _ := q.HeadReady()
			q.RemoveReady(5, k)
			held = append(held, k)
		}
		for _, k := range held {
			q.AddReady(5, k, 1)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/task")
}

func BenchmarkDelayAndFire(b *testing.B) {
	x := New(large)
	for i := range 1000 {
		x.Queue(record.QueueKey{Command: string(rune('a' + i)), Tenant: "t"}).AddDelayed(due(int64(1 + i*7%1000)))
	}
	now := int64(1000)
	b.ReportAllocs()
	for b.Loop() {
		now++
		d, _ := x.HeadDue(now)
		d.Queue.RemoveDelayed(d.Key)
		d.Queue.AddDelayed(due(now))
	}
}
