package store

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/wire"
)

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(optionsIn(vfs.NewMem(), func(o *Options) { o.MemTableBytes, o.CacheBytes = 16<<20, 64<<20 }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchID(n int) (id wire.TaskID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// enqueueMany writes what the enqueue of n tasks writes, in one batch.
func enqueueMany(b *testing.B, sp *Span, from, n int) {
	b.Helper()
	q := QueueKey{"render", "acme"}
	payload := make([]byte, 200)
	batch := sp.Batch()
	for i := from; i < from+n; i++ {
		id := benchID(i)
		batch.PutTask(&TaskRecord{
			ID: id, Command: q.Command, Tenant: q.Tenant, Priority: 5, Status: wire.StatusPending,
			Location: wire.LocationPending, MaxAttempts: 5, PayloadBytes: len(payload),
			CreatedAtMs: 1_700_000_000_000, UpdatedAtMs: 1_700_000_000_000, Seq: uint64(i),
		})
		batch.PutPayload(id, payload)
		batch.PutPending(q, 5, PendingKey{Seq: uint64(i), ID: id}, 1_700_000_000_000)
	}
	batch.PutCounters(q, &Counters{Ready: [Priorities]int64{5: int64(n)}})
	batch.PutMarks(Marks{Seq: uint64(from + n)})
	if _, err := sp.Apply(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEnqueue is one task of a round of a hundred, without the sync.
func BenchmarkEnqueue(b *testing.B) {
	s := benchStore(b)
	const round = 100
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		enqueueMany(b, s.Span(0), done, round)
	}
}

// BenchmarkGrantReads is what a grant reads: a record and its payload.
func BenchmarkGrantReads(b *testing.B) {
	s := benchStore(b)
	const tasks = 10_000
	enqueueMany(b, s.Span(0), 0, tasks)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		id := benchID(n % tasks)
		if r, err := s.Span(0).Task(id); r == nil || err != nil {
			b.Fatal(r, err)
		}
		if p, err := s.Span(0).Payload(id); p == nil || err != nil {
			b.Fatal(p, err)
		}
	}
}
