package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/meter"
	"codeq/record"
	"codeq/wire"
)

// plantQueues writes queues of some tenants into all shards, each with its own
// mix of tasks, some with none that is not done.
func plantQueues(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	for shard := range s.Shards() {
		p := plantIn(s, shard)
		p.marks.TimeMs += int64(random.IntN(1000))
		for range 60 {
			q := record.QueueKey{Command: fmt.Sprintf("c%d", random.IntN(9)), Tenant: fmt.Sprintf("t/%d", random.IntN(4))}
			switch random.IntN(6) {
			case 0:
				p.pending(q, "")
			case 1:
				r := p.record(q, "")
				p.marks.Seq++
				r.Priority, r.Location, r.Seq = random.IntN(record.Priorities), wire.LocationPending, p.marks.Seq
				c := p.figures(q)
				if c.Ready[r.Priority] == 0 {
					c.ReadyWatermark[r.Priority] = r.Seq - uint64(random.IntN(3))
				}
				c.Ready[r.Priority]++
				p.span.batch.PutTask(r)
				p.span.batch.PutPending(q, r.Priority, record.PendingKey{Seq: r.Seq, ID: r.ID}, p.marks.TimeMs+int64(random.IntN(1000)))
			case 2:
				p.leased(q, "")
			case 3:
				p.delayed(q)
			case 4:
				p.ended(q, wire.StatusFailed, true, "")
			default:
				p.ended(record.QueueKey{Command: "done", Tenant: q.Tenant}, wire.StatusCompleted, false, "")
			}
		}
		p.settle(t)
	}
}

func TestAllQueuesAreWhatEachTenantSeesOfItsBusyOnes(t *testing.T) {
	for seed := range uint64(20) {
		s := openIn(t, vfs.NewMem(), func(o *Options) { o.Shards = 3 })
		plantQueues(t, s, rand.New(rand.NewPCG(seed, 1)))
		got, err := s.ReadAllQueues()
		if err != nil {
			t.Fatal(err)
		}
		byTenant := make(map[string][]wire.QueueFigures)
		for i, f := range got {
			if i > 0 && (got[i-1].Command > f.Command || got[i-1].Command == f.Command && got[i-1].TenantID >= f.TenantID) {
				t.Fatalf("seed %d: %+v comes after %+v", seed, f, got[i-1])
			}
			byTenant[f.TenantID] = append(byTenant[f.TenantID], f)
		}
		for _, tenant := range []string{"t/0", "t/1", "t/2", "t/3"} {
			all, err := s.ReadQueues(tenant)
			if err != nil {
				t.Fatal(err)
			}
			var want []wire.QueueFigures
			for _, f := range all {
				if f.Settings = (wire.QueueSettings{}); f.Command != "done" {
					want = append(want, f)
				}
			}
			if !reflect.DeepEqual(byTenant[tenant], want) {
				t.Errorf("seed %d: tenant %s has\n%+v\nwant\n%+v", seed, tenant, byTenant[tenant], want)
			}
		}
	}
}

// withoutAges makes the counters of a version that did not know since when heads
// are ready, and loads them.
func withoutAges(t *testing.T, s *Store, g garden) {
	t.Helper()
	recount(func(c *record.Counters) { c.ReadySinceMs = [record.Priorities]int64{} })(t, s, g)
	if _, err := s.Span(0).Load(); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedHeadIsNotTakenForAnAge(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	withoutAges(t, s, g)
	tamper(t, s, pendingKeyOf(g.pending), "x")
	if got, err := s.ReadAllQueues(); !isDamaged(err) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Figures are read in memory, and that must be what the database says, also
// after another start.
func TestFiguresInMemoryAreThoseOfTheDatabase(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	p := plantIn(s, 0)
	g := p.garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	p.garden(t, record.QueueKey{Command: "gone", Tenant: "t"})
	p.span.batch.DeleteCounters(record.QueueKey{Command: "gone", Tenant: "t"})
	apply(t, p.span)
	before, err := s.ReadQueues("t")
	if err != nil || len(before) != 1 || before[0].Command != g.queue.Command {
		t.Fatalf("got %+v, %v", before, err)
	}
	barrier(t, s)
	again := openIn(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	if _, err := again.Span(0).Load(); err != nil {
		t.Fatal(err)
	}
	after, err := again.ReadQueues("t")
	if err != nil || len(after) != 1 || after[0] != before[0] {
		t.Errorf("after another start: got %+v, %v, want %+v", after, err, before)
	}
}

// What scans go over is counted, with what was deleted.
func TestScansAreCounted(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}
	for seq := range uint64(100) {
		sp.Batch().PutPending(q, 0, record.PendingKey{Seq: seq + 1, ID: benchID(int(seq))}, 1)
	}
	apply(t, sp)
	for seq := range uint64(99) {
		sp.Batch().DeletePending(q, 0, record.PendingKey{Seq: seq + 1, ID: benchID(int(seq))})
	}
	apply(t, sp)
	steps := func(after uint64) uint64 {
		before := s.figures.scanSteps.Get()
		if found, err := sp.ScanPending(q, 0, record.PendingKey{Seq: after}, 1); err != nil || len(found) != 1 {
			t.Fatalf("found %v, %v", found, err)
		}
		return uint64(s.figures.scanSteps.Get() - before)
	}
	if over, at := steps(0), steps(100); over < 99 || at > 1 {
		t.Errorf("a scan over what was deleted makes %d steps, one behind it %d", over, at)
	}
}

// A value in the place of the head that nobody could decode shows that nobody
// looks there: that is what keeps the figures cheap beside a backlog.
func TestFiguresAreReadWithoutALookAtTheirTasks(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	tamper(t, s, pendingKeyOf(g.pending), "x")
	want := g.pending.CreatedAtMs + int64(g.pending.Seq)
	all, err := s.ReadAllQueues()
	if err != nil || len(all) != 1 || all[0].OldestReadyAtMs != want {
		t.Errorf("all queues: got %+v, %v", all, err)
	}
	list, err := s.ReadQueues(g.queue.Tenant)
	if err != nil || len(list) != 1 || list[0].OldestReadyAtMs != want {
		t.Errorf("queues of the tenant: got %+v, %v", list, err)
	}
	one, err := s.ReadQueue(g.queue)
	if err != nil || one.OldestReadyAtMs != want {
		t.Errorf("one queue: got %+v, %v", one, err)
	}
}

// Databases of versions that did not write the time keep their ages.
func TestAgeIsLookedUpWhereTheFiguresDoNotHaveIt(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	withoutAges(t, s, g)
	one, err := s.ReadQueue(g.queue)
	if want := g.pending.CreatedAtMs + int64(g.pending.Seq); err != nil || one.OldestReadyAtMs != want {
		t.Errorf("got %+v, %v, want %d", one, err, want)
	}
}

// value is the value of a series on a page, "" if it is not there.
func value(s *Store, series string) string {
	var p meter.Page
	s.WriteMetrics(&p)
	for line := range strings.Lines(string(p.Text())) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}

func TestCommitsAndSyncsAreCounted(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	for range 3 {
		plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	}
	bareIn(s, 1).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	apply(t, s.Span(1)) // empty, so it is none
	barrier(t, s)
	barrier(t, s) // nothing is new, so it is none
	bareIn(s, 1).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	barrier(t, s)
	for series, want := range map[string]string{
		"codeq_commits_total":                  "5",
		"codeq_commit_batch_bytes_count":       "5",
		"codeq_sync_seconds_count":             "2",
		`codeq_sync_seconds_bucket{le="+Inf"}`: "2",
		`codeq_sync_batches_bucket{le="1"}`:    "1",
		`codeq_sync_batches_bucket{le="4"}`:    "2",
		"codeq_sync_batches_sum":               "5",
		"codeq_set_aside_total":                "0",
		"codeq_disk_guard_level":               "0",
		"codeq_pebble_snapshots":               "0",
	} {
		if got := value(s, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
	if value(s, "codeq_pebble_wal_written_bytes_total") == "0" {
		t.Error("nothing was written to the log")
	}
}

func BenchmarkReadAllQueues(b *testing.B) {
	for _, each := range []int{1, 2} {
		s := benchStore(b)
		const queues = 10_000
		for shard := range each {
			sp := s.Span(shard)
			for i := range queues {
				q := record.QueueKey{Command: fmt.Sprintf("command-%d", i), Tenant: "acme"}
				sp.Batch().PutPending(q, 0, record.PendingKey{Seq: 1, ID: benchID(i)}, 1_700_000_000_000)
				sp.Batch().PutCounters(q, &record.Counters{Ready: [record.Priorities]int64{1}})
			}
			if _, err := sp.Apply(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("10k queues in %d shards", each), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, err := s.ReadAllQueues(); err != nil || len(list) != queues {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
