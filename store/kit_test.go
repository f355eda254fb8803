package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// openIn opens a store whose end is the end of the test.
func openIn(t *testing.T, fs vfs.FS, change ...func(*Options)) *Store {
	t.Helper()
	s, err := Open(optionsIn(fs, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func optionsIn(fs vfs.FS, change ...func(*Options)) Options {
	o := Options{
		FS:            fs,
		Dir:           "data",
		Shards:        2,
		MemTableBytes: 1 << 20,
		CacheBytes:    1 << 20,
		Fatal:         func(err error) { panic("fatal: " + err.Error()) },
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func apply(t *testing.T, sp *Span) uint64 {
	t.Helper()
	number, err := sp.Apply()
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func barrier(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// mustFindNothing is the end of every test that leaves a database behind.
func mustFindNothing(t *testing.T, s *Store) {
	t.Helper()
	findings, err := Audit.Check(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("finding: %s", f.Text)
	}
}

// planter writes whole tasks into one span as a correct core would.
type planter struct {
	span     *Span
	random   *rand.Rand
	marks    record.Marks
	priority int
	counters map[record.QueueKey]*record.Counters
	queues   []record.QueueKey
	// settled is how many of the queues have had their first settling.
	settled int
	// bare: no queue gets settings.
	bare bool
}

func plantIn(s *Store, shard int) *planter {
	return &planter{
		span:     s.Span(shard),
		random:   rand.New(rand.NewPCG(7, uint64(shard))),
		priority: 4,
		marks:    record.Marks{Seq: 100, Event: 1000, TimeMs: 1_700_000_000_000},
		counters: make(map[record.QueueKey]*record.Counters),
	}
}

// bareIn gives no queue settings, whatever is planted away from home.
func bareIn(s *Store, shard int) *planter {
	p := plantIn(s, shard)
	p.bare = true
	return p
}

// newID draws an id that belongs to the span.
func (p *planter) newID() wire.TaskID {
	for {
		var random [10]byte
		for i := range random {
			random[i] = byte(p.random.Uint32())
		}
		id := wire.TaskID(wire.NewUUIDv7(p.marks.TimeMs, random))
		if wire.ShardOfTask(id, p.span.store.shards) == p.span.shard {
			return id
		}
	}
}

// key is the name, if the queue is at home in the span: nowhere else are keys.
func (p *planter) key(q record.QueueKey, name string) string {
	if p.home(q) != p.span.shard {
		return ""
	}
	return name
}

func (p *planter) home(q record.QueueKey) int {
	return wire.ShardOfQueue(q.Tenant, q.Command, p.span.store.shards)
}

func (p *planter) figures(q record.QueueKey) *record.Counters {
	c := p.counters[q]
	if c == nil {
		c = &record.Counters{}
		p.counters[q] = c
		p.queues = append(p.queues, q)
	}
	return c
}

// record makes a record and payload without a place.
func (p *planter) record(q record.QueueKey, key string) *record.Task {
	payload := fmt.Appendf(nil, `{"n":%d}`, p.marks.Seq)
	r := &record.Task{
		ID: p.newID(), Command: q.Command, Tenant: q.Tenant, Priority: p.priority,
		Status: wire.StatusPending, MaxAttempts: 5, PayloadBytes: len(payload),
		CreatedAtMs: p.marks.TimeMs, UpdatedAtMs: p.marks.TimeMs, IdempotencyKey: key,
	}
	p.span.batch.PutPayload(r.ID, payload)
	if key != "" {
		p.span.batch.PutIdempotencyKey(q, key, r.ID)
	}
	return r
}

func (p *planter) pending(q record.QueueKey, key string) *record.Task {
	r := p.record(q, key)
	p.marks.Seq++
	r.Location, r.Seq = wire.LocationPending, p.marks.Seq
	c, readyAtMs := p.figures(q), r.CreatedAtMs+int64(r.Seq)
	if c.Ready[r.Priority] == 0 {
		c.ReadyWatermark[r.Priority], c.ReadySinceMs[r.Priority] = r.Seq, readyAtMs
	}
	c.Ready[r.Priority]++
	c.WaitingBytes += int64(r.PayloadBytes)
	r.Files.Bytes = 3
	c.FileBytes += 3
	p.span.batch.PutTask(r)
	p.span.batch.PutPending(q, r.Priority, record.PendingKey{Seq: r.Seq, ID: r.ID}, readyAtMs)
	return r
}

func (p *planter) limited(q record.QueueKey) *record.Task {
	r := p.record(q, "")
	p.marks.Seq++
	r.Location, r.Seq, r.ConcurrencyKey = wire.LocationLimited, p.marks.Seq, string('a'+byte(p.marks.Seq%3))
	p.figures(q).Limited++
	p.figures(q).WaitingBytes += int64(r.PayloadBytes)
	p.span.batch.PutTask(r)
	p.span.batch.PutLimited(q, &record.LimitedEntry{Key: r.ConcurrencyKey, LimitedPlace: record.LimitedPlace{
		Priority: r.Priority, PendingKey: record.PendingKey{Seq: r.Seq, ID: r.ID},
	}})
	return r
}

func (p *planter) leased(q record.QueueKey, key string) (*record.Task, *record.Lease) {
	r := p.record(q, key)
	p.marks.Seq++
	r.Location, r.Seq = wire.LocationPending, p.marks.Seq
	if c := p.figures(q); c.InProgress == 0 {
		c.LeaseWatermark = record.RankOf(r.ID)
	}
	p.figures(q).InProgress++
	l := &record.Lease{
		Token: wire.Token{1, byte(r.Seq)}, Delivery: 1, Subject: "ada", WorkerID: "w1",
		GrantedAtMs: p.marks.TimeMs + 50, DeadlineMs: p.marks.TimeMs + 30_000, LeaseForMs: 20_000,
		Files: record.Files{Bytes: 5},
	}
	p.figures(q).FileBytes += 5
	r.Files.Bytes = 50 // before this delivery
	p.span.batch.PutTask(r)
	p.span.batch.PutLease(q, r.ID, l)
	return r, l
}

func (p *planter) delayed(q record.QueueKey) *record.Task {
	r := p.record(q, "")
	r.Location, r.DueAtMs, r.ExpiresAtMs = wire.LocationDelayed, p.marks.TimeMs+5000, p.marks.TimeMs+9000
	p.figures(q).WaitingBytes += int64(r.PayloadBytes)
	countTimed(&p.figures(q).Delayed, &p.figures(q).DelayedWatermarkMs, r.DueAtMs)
	countTimed(&p.figures(q).Expiring, &p.figures(q).ExpiringWatermarkMs, r.ExpiresAtMs)
	p.span.batch.PutTimed(q, record.FamilyExpiring, record.TimedKey{AtMs: r.ExpiresAtMs, ID: r.ID})
	p.span.batch.PutTask(r)
	p.span.batch.PutTimed(q, record.FamilyDelayed, record.TimedKey{AtMs: r.DueAtMs, ID: r.ID})
	return r
}

// countTimed counts an entry; the first of an order is its watermark.
func countTimed(n, watermarkMs *int64, atMs int64) {
	if *n == 0 {
		*watermarkMs = atMs
	}
	*n++
}

// ended makes a terminal task: a dead letter when dead, else one that is done.
func (p *planter) ended(q record.QueueKey, status wire.Status, dead bool, key string) *record.Task {
	r := p.record(q, key)
	r.Status, r.Location, r.EndedAtMs = status, wire.LocationNone, p.marks.TimeMs+900
	c := p.figures(q)
	k := record.TimedKey{AtMs: r.EndedAtMs, ID: r.ID}
	if dead {
		r.Location = wire.LocationDead
		r.DeadCause = wire.DeadExhausted + wire.DeadCause(c.Dead)%(wire.DeadKinds-1)
		countTimed(&c.Dead, &c.DeadWatermarkMs, k.AtMs)
		if r.DeadCause == wire.DeadFailed {
			countTimed(&c.DeadBy[r.DeadCause], &c.FailedWatermarkMs, k.AtMs)
		} else {
			c.DeadBy[r.DeadCause]++
		}
		r.Files = record.Files{Begun: 1, Bytes: 7}
		c.FileBytes += 7
		p.span.batch.PutEnded(q, record.FamilyDead, k, record.Ended{
			Status: status, Cause: r.DeadCause, HasKey: key != "", HasFiles: true, Absent: record.Absent{History: true},
		})
	} else {
		countTimed(&c.Done, &c.DoneWatermarkMs, k.AtMs)
		p.span.batch.PutEnded(q, record.FamilyDone, k, record.Ended{Status: status, HasKey: key != "", Absent: record.Absent{History: true}})
	}
	p.span.batch.PutTask(r)
	p.span.batch.PutResult(&wire.ResultRecord{
		TaskID: r.ID, Status: status, Result: []byte(`{"v": 1e400}`), CompletedAtMs: r.EndedAtMs,
	})
	return r
}

// settle writes counters and marks and applies the batch. What is planted away from
// home is of a queue that is spread.
func (p *planter) settle(t *testing.T) {
	t.Helper()
	for n, q := range p.queues {
		p.span.batch.PutCounters(q, p.counters[q])
		if home := p.span.store.Span(p.home(q)); n >= p.settled && home != p.span && !p.bare {
			home.batch.PutSettings(q, &record.Settings{Version: 1, QueueSettings: wire.QueueSettings{Spread: true}})
			apply(t, home)
		}
	}
	p.settled = len(p.queues)
	p.span.batch.PutMarks(p.marks)
	apply(t, p.span)
}

// garden is one task of each kind in a queue.
type garden struct {
	queue                                   record.QueueKey
	pending, leased, delayed, dead, done, k *record.Task
	lease                                   *record.Lease
}

func (p *planter) garden(t *testing.T, q record.QueueKey) garden {
	t.Helper()
	g := garden{queue: q}
	g.pending = p.pending(q, "")
	g.k = p.pending(q, p.key(q, "key/1"))
	g.leased, g.lease = p.leased(q, p.key(q, "key 2"))
	g.delayed = p.delayed(q)
	g.dead = p.ended(q, wire.StatusFailed, true, "")
	g.done = p.ended(q, wire.StatusCompleted, false, p.key(q, "key 3"))
	p.settle(t)
	return g
}

// listing is the sorted content of a directory and all below it.
func listing(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			b.WriteString(listing(t, fs, path))
			continue
		}
		data, err := readFile(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x\n", path, info.Size(), data)
	}
	return b.String()
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}

// spanBytes is what a key has before its family.
var spanBytes = len(record.AppendSpan(nil, 0))

func fullLease() *record.Lease {
	return &record.Lease{Token: wire.Token{9, 8, 7}, Delivery: 3, Subject: "ada", DeadlineMs: 1_700_000_030_000}
}

// Finding is one of the audit, and its text.
type Finding struct{ Kind, Text string }

// Audit is package audit, which imports this one: a test outside of it fills it in.
var Audit struct {
	Check func(*Store) ([]Finding, error)
}

// historyOf is the value of a history, empty if there is none.
func historyOf(sp *Span, id wire.TaskID) (value []byte, err error) {
	_, err = sp.view.value(record.FamilyHistory, id, func(v []byte) error {
		value = append(value, v...)
		return nil
	})
	return value, err
}
