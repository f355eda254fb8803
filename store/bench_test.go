package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
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
	q := record.QueueKey{Command: "render", Tenant: "acme"}
	payload := make([]byte, 200)
	batch := sp.Batch()
	for i := from; i < from+n; i++ {
		id := benchID(i)
		batch.PutTask(&record.Task{
			ID: id, Command: q.Command, Tenant: q.Tenant, Priority: 5, Status: wire.StatusPending,
			Location: wire.LocationPending, MaxAttempts: 5, PayloadBytes: len(payload),
			CreatedAtMs: 1_700_000_000_000, UpdatedAtMs: 1_700_000_000_000, Seq: uint64(i),
		})
		batch.PutPayload(id, payload)
		batch.PutPending(q, 5, record.PendingKey{Seq: uint64(i), ID: id}, 1_700_000_000_000)
	}
	batch.PutCounters(q, &record.Counters{Ready: [record.Priorities]int64{5: int64(n)}})
	batch.PutMarks(record.Marks{Seq: uint64(from + n)})
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
		if p, err := s.Span(0).view.payload(id); p == nil || err != nil {
			b.Fatal(p, err)
		}
	}
}

// findTasks is how many tasks BenchmarkFind looks at, of which three of a hundred
// are wanted.
const findTasks = 100_000

// BenchmarkFind is a search over ready tasks by a member of their payload, as it is
// made of one request after the other: each chunk begins where the last one ended.
func BenchmarkFind(b *testing.B) {
	s, err := Open(optionsIn(vfs.Default, func(o *Options) {
		o.Dir, o.Shards, o.MemTableBytes, o.CacheBytes = b.TempDir(), 4, 16<<20, 64<<20
	}))
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	q := record.QueueKey{Command: "mail", Tenant: "acme"}
	random := rand.New(rand.NewPCG(7, 7))
	var counters [4]record.Counters
	for n := 0; n < findTasks; n += 1000 {
		for i := n; i < n+1000; i++ {
			id := wire.TaskID(wire.NewUUIDv7(1_700_000_000_000+int64(i/500), [10]byte(binary.BigEndian.AppendUint64([]byte{0, 0}, random.Uint64()))))
			shard := wire.ShardOfTask(id, 4)
			word := "right"
			if i*7919%100 < 3 {
				word = "wrong"
			}
			payload := fmt.Sprintf(`{"import":"%s","customer":%d,"to":"somebody%d@example.com"}`, word, i%5000, i)
			r := &record.Task{
				ID: id, Command: q.Command, Tenant: q.Tenant, Priority: 5, Status: wire.StatusPending,
				Location: wire.LocationPending, MaxAttempts: 5, PayloadBytes: len(payload), Payload: payload,
				CreatedAtMs: 1_700_000_000_000, UpdatedAtMs: 1_700_000_000_000, Seq: uint64(i + 1),
			}
			batch := s.Span(shard).Batch()
			batch.PutTask(r)
			batch.PutPending(q, 5, record.PendingKey{Seq: uint64(i + 1), ID: id}, 1_700_000_000_000)
			counters[shard].Ready[5]++
		}
		for shard := range counters {
			s.Span(shard).Batch().PutCounters(q, &counters[shard])
			if _, err := s.Span(shard).Apply(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		find := ListQuery{
			Queue: q, State: ListReady, UntilMs: 1 << 47, Limit: 256, MostRead: 20_000,
			Filter: ListFilter{TaskFilter: wire.TaskFilter{Members: [wire.MaxFilterMembers]wire.MemberIs{{Name: "import", Value: "wrong"}}}},
		}
		found := 0
		for more := true; more; more = find.After != nil {
			page, err := s.Find(&find)
			if err != nil {
				b.Fatal(err)
			}
			found, find.After = found+len(page.Found), page.Places
		}
		if found != findTasks*3/100 {
			b.Fatalf("%d are found, want %d", found, findTasks*3/100)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*findTasks), "ns/task")
}
