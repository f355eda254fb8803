package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// TestAHealthyDatabaseGivesNoFinding is what makes the findings of the others theirs.
func TestAHealthyDatabaseGivesNoFinding(t *testing.T) {
	s, _ := garden(t, vfs.NewMem())
	if found := kindsIn(t, s); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// sabotages break one rule each.
var sabotages = []struct {
	name  string
	kind  string
	wreck func(t *testing.T, s *store.Store, g *tasks)
}{
	{"a key outside every span", "unknown-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, []byte("codeq/other"), "")
	}},
	{"a key before every span", "unknown-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, []byte("a"), "")
	}},
	{"a key of a shard that does not exist", "unknown-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Shard: 2, Family: record.FamilyTask, ID: wire.TaskID{1}}), "{}")
	}},
	{"a key of no family", "unknown-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, append(record.AppendSpan(nil, 0), "more/x"...), "")
	}},
	{"a damaged creation id", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, []byte(record.CreationKey), "{}")
	}},
	{"a damaged record", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}), "x")
	}},
	{"a damaged result", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.done.ID}), "x")
	}},
	{"a damaged history", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "x")
	}},
	{"damaged marks", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "x")
	}},
	{"damaged counters", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), "x")
	}},
	{"damaged settings", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilySettings, Queue: 1}), "\x04\x01")
	}},
	{"settings that the home does not have", "wrong-settings", func(t *testing.T, s *store.Store, g *tasks) {
		away := 1 - wire.ShardOfQueue(g.queue.Tenant, g.queue.Command, 2)
		putSettings(t, s, away, g.queue, record.Settings{Version: 1})
	}},
	{"settings newer than those of the home", "wrong-settings", settingsOf(record.Settings{Version: 2}, record.Settings{Version: 3})},
	{"settings that are not those of their version", "wrong-settings", settingsOf(record.Settings{Version: 2}, record.Settings{Version: 2, Paused: true})},
	{"a damaged named record", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNamed, Tenant: "t", Kind: record.KindLimits}), "x")
	}},
	{"a named record newer than that of the home", "wrong-named-record", namedAs(record.Named{Version: 1, Value: "a"}, record.Named{Version: 2, Value: "a"})},
	{"a named record that is not that of its version", "wrong-named-record", namedAs(record.Named{Version: 2, Value: "a"}, record.Named{Version: 2, Value: "b"})},
	{"a named record above the mark of the home", "wrong-named-record", namedAs(record.Named{}, record.Named{Version: 1 << 40, Value: "b"})},
	{"a queue without a name", "wrong-name", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}))
	}},
	{"a damaged name", "wrong-name", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}), "x")
	}},
	{"a name of a queue that has nothing", "wrong-name", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, record.QueueKey{Command: "x"})))
	}},
	{"a queue with two numbers", "wrong-name", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, g.queue)))
	}},
	{"a number above the mark", "wrong-marks", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"a damaged lease", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}), "x")
	}},
	{"a damaged pending value", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, pendingKeyOf(g.pending), "x")
	}},
	{"a damaged delayed value", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyDelayed, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.DueAtMs}), "x")
	}},
	{"a damaged idempotency value", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), "x")
	}},
	{"a task in another shard", "wrong-shard", func(t *testing.T, s *store.Store, g *tasks) {
		stranger := idIn(1, 1)
		change(t, s, g.pending, func(r *record.Task) { r.ID = stranger })
	}},
	{"a task away from the home of its queue", "wrong-shard", awayTask("", record.Settings{Version: 1})},
	{"a key away from the home of a spread queue", "wrong-shard", awayTask("k", record.Settings{Version: 1, QueueSettings: wire.QueueSettings{Spread: true}})},
	{"a record gone", "no-record", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}))
	}},
	{"a history of nobody", "no-record", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: wire.TaskID{9}}), "[]")
	}},
	{"a result of nobody", "no-record", func(t *testing.T, s *store.Store, g *tasks) {
		r := wire.ResultRecord{TaskID: wire.TaskID{9}, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"an idempotency key of nobody", "no-record", func(t *testing.T, s *store.Store, g *tasks) {
		id := wire.TaskID{9}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: "x"}), string(id[:]))
	}},
	{"a pending entry gone", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) { tamperDelete(t, s, pendingKeyOf(g.pending)) }},
	{"a limited entry gone", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, limitedKeyOf(g.limited, "acme"))
	}},
	{"a limited entry of another key", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, limitedKeyOf(g.limited, "bolt"), "")
	}},
	{"a limited entry of a ready task", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, limitedKeyOf(g.pending, "acme"), "")
	}},
	{"a limited entry of nobody", "no-record", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyLimited, Queue: 1, Name: "acme", ID: wire.TaskID{9}}), "")
	}},
	{"a damaged limited value", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, limitedKeyOf(g.limited, "acme"), "x")
	}},
	{"an expiring entry gone", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.ExpiresAtMs}))
	}},
	{"an expiring entry of a task that does not wait", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.leased, func(r *record.Task) { r.ExpiresAtMs = 9 })
		tamper(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.leased.ID, AtMs: 9}), "")
	}},
	{"an expiring entry at another time", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.delayed, func(r *record.Task) { r.ExpiresAtMs++ })
	}},
	{"a second pending entry", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		r := *g.pending
		r.Seq--
		tamper(t, s, pendingKeyOf(&r), "12345678")
	}},
	{"an entry in another queue", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		key := pendingKeyOf(g.pending)
		tamperDelete(t, s, key)
		p, err := record.ParseKey(key)
		if p.Queue = 2; err != nil {
			t.Fatal(err)
		}
		tamper(t, s, spanKey(p), "12345678")
	}},
	{"an entry of another priority", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.pending, func(r *record.Task) { r.Priority++ })
	}},
	{"a lease beside a pending entry", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.pending.ID}), "\x02\x01")
	}},
	{"a lease gone", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}))
	}},
	{"another due time", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.delayed, func(r *record.Task) { r.DueAtMs++ })
	}},
	{"another end of a dead letter", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.dead, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"another end of a done task", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"no location", "wrong-place", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.Location = "" })
	}},
	{"a terminal task that waits", "wrong-status", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.pending, func(r *record.Task) { r.Status = wire.StatusFailed })
	}},
	{"a done task that is not terminal", "wrong-status", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusPending })
	}},
	{"a lease older than its record", "wrong-lease", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.leased, func(r *record.Task) { r.Deliveries = g.lease.Delivery + 1 })
	}},
	{"a lease that ends before it began", "wrong-lease", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}),
			"\x02\x01\x12\x05")
	}},
	{"a payload gone", "wrong-payload", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}))
	}},
	{"a payload of another length", "wrong-payload", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}), "{}")
	}},
	{"a payload in two places", "wrong-payload", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.pending, func(r *record.Task) { r.Payload = strings.Repeat("1", r.PayloadBytes) })
	}},
	{"a result in two places", "wrong-result", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result within a task that waits", "wrong-result", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.delayed, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result gone", "wrong-result", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.dead.ID}))
	}},
	{"a result of a task that waits", "wrong-result", func(t *testing.T, s *store.Store, g *tasks) {
		r := wire.ResultRecord{TaskID: g.pending.ID, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"a result with another status", "wrong-result", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusCancelled })
	}},
	{"an idempotency key gone", "wrong-idempotency-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}))
	}},
	{"an idempotency key of another queue", "wrong-idempotency-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 2, Name: g.done.IdempotencyKey}), string(g.done.ID[:]))
	}},
	{"an idempotency key of another task", "wrong-idempotency-key", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), string(g.dead.ID[:]))
	}},
	{"a key that its task does not carry", "wrong-idempotency-key", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.IdempotencyKey = "" })
	}},
	{"a label gone", "wrong-label", func(t *testing.T, s *store.Store, g *tasks) { tamperDelete(t, s, labelKey(g, g.done.ID)) }},
	{"a label of another task", "wrong-label", func(t *testing.T, s *store.Store, g *tasks) { tamper(t, s, labelKey(g, g.dead.ID), "") }},
	{"a label of another tenant", "wrong-label", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyLabels, Queue: 1, ID: g.done.ID, Tenant: "u", Name: "run=7"}), "")
	}},
	{"a label of another queue", "wrong-label", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyLabels, Queue: 2, ID: g.done.ID, Tenant: g.queue.Tenant, Name: "run=7"}), "")
	}},
	{"a label that its task does not carry", "wrong-label", func(t *testing.T, s *store.Store, g *tasks) {
		change(t, s, g.done, func(r *record.Task) { r.Labels = "customer=acme" })
	}},
	{"a label of nobody", "no-record", func(t *testing.T, s *store.Store, g *tasks) { tamper(t, s, labelKey(g, wire.TaskID{9}), "") }},
	{"a label with a value", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) { tamper(t, s, labelKey(g, g.done.ID), "x") }},
	{"an ended entry of another status", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCancelled, HasKey: true, Labelled: true, Absent: record.Absent{History: true}})},
	{"an ended entry of other deliveries", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, Deliveries: 1, HasKey: true, Labelled: true, Absent: record.Absent{History: true}})},
	{"an ended entry without the key", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, Labelled: true, Absent: record.Absent{History: true}})},
	{"an ended entry without the labels", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, HasKey: true, Absent: record.Absent{History: true}})},
	{"an ended entry of a whole task that is not", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, HasKey: true, Labelled: true, Absent: record.Absent{History: true, Payload: true}})},
	{"an ended entry that denies a history", "wrong-ended-entry", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "[]")
	}},
	{"an ended entry of nonsense", "damaged-value", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, endedKey(g), "\xff")
	}},
	{"no counters", "wrong-counters", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}))
	}},
	{"ready miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Ready[4]++ })},
	{"ready in another priority", "wrong-counters", recount(func(c *record.Counters) { c.Ready[3], c.Ready[4] = c.Ready[4], 0 })},
	{"limited miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Limited++ })},
	{"bytes miscounted", "wrong-counters", recount(func(c *record.Counters) { c.WaitingBytes++ })},
	{"files miscounted", "wrong-counters", recount(func(c *record.Counters) { c.FileBytes++ })},
	{"delayed miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Delayed-- })},
	{"in progress miscounted", "wrong-counters", recount(func(c *record.Counters) { c.InProgress = 0 })},
	{"dead miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Dead++ })},
	{"done miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Done++ })},
	{"counters of an empty queue", "wrong-counters", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"ready watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.ReadyWatermark[4]++ })},
	{"ready since another time", "wrong-ready-since", recount(func(c *record.Counters) { c.ReadySinceMs[4]-- })},
	{"ready since some time without a task", "wrong-ready-since", recount(func(c *record.Counters) { c.ReadySinceMs[3] = 1 })},
	{"delayed watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DelayedWatermarkMs++ })},
	{"lease watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.LeaseWatermark++ })},
	{"dead watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DeadWatermarkMs++ })},
	{"done watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DoneWatermarkMs++ })},
	{"marks too low", "wrong-marks", func(t *testing.T, s *store.Store, g *tasks) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "\x02\x65")
	}},
	{"marks gone", "wrong-marks", func(t *testing.T, s *store.Store, g *tasks) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyMarks}))
	}},
}

// tasks is a queue with one task of each kind, in shard 0, which is its home.
type tasks struct {
	queue                                         record.QueueKey
	pending, leased, delayed, dead, done, limited *record.Task
	lease                                         *record.Lease
	counters                                      record.Counters
}

// openIn opens a data directory of two shards in memory.
func openIn(t *testing.T, fs vfs.FS) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{
		FS: fs, Dir: "data", Shards: 2, Log: zerolog.Nop(), MemTableBytes: 1 << 20, CacheBytes: 1 << 20,
		Fatal: func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// idIn is the nth id of a shard.
func idIn(shard int, n byte) wire.TaskID {
	for i := byte(0); ; i++ {
		id := wire.TaskID(wire.NewUUIDv7(1000, [10]byte{n, i}))
		if wire.ShardOfTask(id, 2) == shard {
			return id
		}
	}
}

// queueAt is a queue whose home is a shard.
func queueAt(shard int) record.QueueKey {
	q := record.QueueKey{Command: "c", Tenant: "t"}
	for wire.ShardOfQueue(q.Tenant, q.Command, 2) != shard {
		q.Command += "-"
	}
	return q
}

// garden writes one task of each kind as a correct core would, in one batch.
func garden(t *testing.T, fs vfs.FS) (*store.Store, *tasks) {
	t.Helper()
	s := openIn(t, fs)
	b, g, n := s.Span(0).Batch(), &tasks{queue: queueAt(0)}, byte(0)
	task := func(status wire.Status, place wire.Location) *record.Task {
		n++
		r := &record.Task{
			ID: idIn(0, n), Command: g.queue.Command, Tenant: g.queue.Tenant, Priority: 4, Status: status, Location: place,
			MaxAttempts: 5, PayloadBytes: 7, CreatedAtMs: 1000, UpdatedAtMs: 1000,
		}
		b.PutPayload(r.ID, []byte(`{"n":1}`))
		return r
	}
	q := g.queue
	g.pending = task(wire.StatusPending, wire.LocationPending)
	g.pending.Seq = 102
	b.PutPending(q, 4, record.PendingKey{Seq: 102, ID: g.pending.ID}, 1000)
	g.leased = task(wire.StatusPending, wire.LocationPending)
	g.leased.Seq, g.lease = 101, &record.Lease{Token: wire.Token{1}, Delivery: 1, GrantedAtMs: 1050, DeadlineMs: 31_000}
	// While it is in progress only what its lease says of files counts.
	g.pending.Files.Bytes, g.leased.Files.Bytes, g.lease.Files.Bytes = 2, 100, 3
	b.PutLease(q, g.leased.ID, g.lease)
	g.limited = task(wire.StatusPending, wire.LocationLimited)
	g.limited.Seq, g.limited.ConcurrencyKey = 100, "acme"
	b.PutLimited(q, limitedEntryOf(g.limited))
	g.delayed = task(wire.StatusPending, wire.LocationDelayed)
	g.delayed.DueAtMs, g.delayed.ExpiresAtMs = 6000, 10_000
	b.PutTimed(q, record.FamilyDelayed, record.TimedKey{AtMs: 6000, ID: g.delayed.ID})
	b.PutTimed(q, record.FamilyExpiring, record.TimedKey{AtMs: 10_000, ID: g.delayed.ID})
	g.dead = task(wire.StatusFailed, wire.LocationDead)
	g.dead.DeadCause, g.dead.Files = wire.DeadFailed, record.Files{Begun: 1, Bytes: 4}
	g.done = task(wire.StatusCompleted, wire.LocationNone)
	g.done.IdempotencyKey, g.done.Labels = "key 1", "customer=acme\nrun=7"
	b.PutLabels(g.done)
	b.PutIdempotencyKey(q, g.done.IdempotencyKey, g.done.ID)
	for f, r := range map[record.Family]*record.Task{record.FamilyDead: g.dead, record.FamilyDone: g.done} {
		r.EndedAtMs = 2000
		b.PutEnded(q, f, record.TimedKey{AtMs: 2000, ID: r.ID}, record.Ended{
			Status: r.Status, Cause: r.DeadCause, HasKey: r == g.done, Labelled: r == g.done, HasFiles: r == g.dead, Absent: record.Absent{History: true},
		})
		b.PutResult(&wire.ResultRecord{TaskID: r.ID, Status: r.Status, Result: []byte("1"), CompletedAtMs: 2000})
	}
	for _, r := range []*record.Task{g.pending, g.leased, g.limited, g.delayed, g.dead, g.done} {
		b.PutTask(r)
	}
	g.counters = record.Counters{
		Ready: [record.Priorities]int64{4: 1}, ReadyWatermark: [record.Priorities]uint64{4: 102}, ReadySinceMs: [record.Priorities]int64{4: 1000},
		Delayed: 1, DelayedWatermarkMs: 6000, Expiring: 1, ExpiringWatermarkMs: 10_000, InProgress: 1, LeaseWatermark: record.RankOf(g.leased.ID),
		Dead: 1, DeadWatermarkMs: 2000, DeadBy: [wire.DeadKinds]int64{wire.DeadFailed: 1}, FailedWatermarkMs: 2000, Done: 1, DoneWatermarkMs: 2000,
		Limited: 1, WaitingBytes: 21, FileBytes: 9,
	}
	b.PutCounters(q, &g.counters)
	b.PutMarks(record.Marks{Seq: 102, Event: 1, TimeMs: 2000})
	apply(t, s, 0)
	return s, g
}

func apply(t *testing.T, s *store.Store, shard int) {
	t.Helper()
	if _, err := s.Span(shard).Apply(); err != nil {
		t.Fatal(err)
	}
}

// tamper writes a key past the core, and tamperDelete deletes one.
func tamper(t *testing.T, s *store.Store, key []byte, value string) {
	t.Helper()
	if err := s.Rewrite([]store.Change{{Key: key, Value: append([]byte{}, value...)}}); err != nil {
		t.Fatal(err)
	}
}

func tamperDelete(t *testing.T, s *store.Store, key []byte) {
	t.Helper()
	if err := s.Rewrite([]store.Change{{Key: key}}); err != nil {
		t.Fatal(err)
	}
}

func spanKey(k record.Key) []byte { return k.AppendTo(nil) }

func pendingKeyOf(r *record.Task) []byte {
	return spanKey(record.Key{Family: record.FamilyPending, Queue: 1, Priority: r.Priority, Seq: r.Seq, ID: r.ID})
}

func limitedEntryOf(r *record.Task) *record.LimitedEntry {
	return &record.LimitedEntry{Key: r.ConcurrencyKey, LimitedPlace: record.LimitedPlace{Priority: r.Priority, PendingKey: record.PendingKey{Seq: r.Seq, ID: r.ID}}}
}

func limitedKeyOf(r *record.Task, name string) []byte {
	return spanKey(record.Key{Family: record.FamilyLimited, Queue: 1, Name: name, Priority: r.Priority, Seq: r.Seq, ID: r.ID})
}

func endedKey(g *tasks) []byte {
	return spanKey(record.Key{Family: record.FamilyDone, Queue: 1, AtMs: g.done.EndedAtMs, ID: g.done.ID})
}

func labelKey(g *tasks, id wire.TaskID) []byte {
	return spanKey(record.Key{Family: record.FamilyLabels, Queue: 1, ID: id, Tenant: g.queue.Tenant, Name: "run=7"})
}

// endedAs writes another entry for a task that has completed.
func endedAs(e record.Ended) func(t *testing.T, s *store.Store, g *tasks) {
	return func(t *testing.T, s *store.Store, g *tasks) {
		t.Helper()
		tamper(t, s, endedKey(g), string(record.AppendEnded(nil, e)))
	}
}

// settingsOf writes settings of a queue at home and away.
func settingsOf(home, away record.Settings) func(t *testing.T, s *store.Store, g *tasks) {
	return func(t *testing.T, s *store.Store, g *tasks) {
		t.Helper()
		at := wire.ShardOfQueue(g.queue.Tenant, g.queue.Command, 2)
		putSettings(t, s, at, g.queue, home)
		putSettings(t, s, 1-at, g.queue, away)
	}
}

// namedAs writes a named record at home and away.
func namedAs(home, away record.Named) func(t *testing.T, s *store.Store, g *tasks) {
	return func(t *testing.T, s *store.Store, g *tasks) {
		t.Helper()
		at := wire.ShardOfTenant("t", 2)
		for shard, n := range map[int]record.Named{at: home, 1 - at: away} {
			n.NamedKey = record.NamedKey{Tenant: "t", Kind: record.KindLimits}
			s.Span(shard).Batch().PutNamed(&n)
			apply(t, s, shard)
		}
	}
}

func putSettings(t *testing.T, s *store.Store, shard int, q record.QueueKey, settings record.Settings) {
	t.Helper()
	s.Span(shard).Batch().PutSettings(q, &settings)
	apply(t, s, shard)
}

// awayTask writes a task into shard 0, of a queue at home in shard 1 that has such
// settings.
func awayTask(key string, settings record.Settings) func(t *testing.T, s *store.Store, g *tasks) {
	return func(t *testing.T, s *store.Store, g *tasks) {
		t.Helper()
		b, away := s.Span(0).Batch(), *g.pending
		g.queue = queueAt(1)
		away.ID, away.Command, away.IdempotencyKey = idIn(0, 99), g.queue.Command, key
		b.PutTask(&away)
		b.PutPayload(away.ID, []byte(`{"n":1}`))
		b.PutPending(g.queue, 4, record.PendingKey{Seq: away.Seq, ID: away.ID}, 1000)
		if key != "" {
			b.PutIdempotencyKey(g.queue, key, away.ID)
		}
		b.PutCounters(g.queue, &record.Counters{Ready: [record.Priorities]int64{4: 1}, WaitingBytes: 7})
		apply(t, s, 0)
		settingsOf(settings, settings)(t, s, g)
	}
}

// change rewrites a record past the core.
func change(t *testing.T, s *store.Store, r *record.Task, f func(*record.Task)) {
	t.Helper()
	changed := *r
	f(&changed)
	tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: changed.ID}), string(record.AppendTask(nil, &changed)))
}

// recount rewrites the counters past the core.
func recount(f func(*record.Counters)) func(t *testing.T, s *store.Store, g *tasks) {
	return func(t *testing.T, s *store.Store, g *tasks) {
		t.Helper()
		f(&g.counters)
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), string(record.AppendCounters(nil, &g.counters)))
	}
}

// kindsIn are the kinds of findings that a check has, each said in words.
func kindsIn(t *testing.T, s *store.Store) (kinds []string) {
	t.Helper()
	findings, err := Check(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		kinds = append(kinds, f.Kind)
		if text := f.String(); !strings.Contains(text, ": "+f.Kind+": ") || f.Sentence == "" {
			t.Errorf("finding without words: %q", text)
		}
	}
	return kinds
}

// Each damage is made in a small database, and each kind of finding is seen.
func TestEveryBrokenRuleIsFound(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range sabotages {
		t.Run(c.name, func(t *testing.T) {
			s, g := garden(t, vfs.NewMem())
			c.wreck(t, s, g)
			found := kindsIn(t, s)
			if !slices.Contains(found, c.kind) {
				t.Errorf("found %v, want %s", found, c.kind)
			}
			seen[c.kind] = true
		})
	}
	for _, kind := range []string{
		findUnknownKey, findDamaged, findWrongShard, findOrphan, findPlace, findStatus, findLease, findPayload, findResult,
		findEnded, findIdempotency, findCounters, findWatermark, findSince, findMarks, findSettings, findNames, findLabels, findNamed,
	} {
		if !seen[kind] {
			t.Errorf("no damage leads to a finding of the kind %s", kind)
		}
	}
}

func TestWhatWasSetAsideIsNoFinding(t *testing.T) {
	s, _ := garden(t, vfs.NewMem())
	tamper(t, s, append(record.AppendSpan(nil, 0), byte(record.FamilyBad), 1, 2), "anything")
	if found := kindsIn(t, s); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// Counters and watermarks follow from the rest: a rebuild corrects each damage of them
// and nothing else.
func TestRebuildCorrectsCountersAlone(t *testing.T) {
	for _, c := range sabotages {
		counters := c.kind == findCounters || c.kind == findWatermark || c.kind == findSince || c.name == "damaged counters"
		t.Run(c.name, func(t *testing.T) {
			s, g := garden(t, vfs.NewMem())
			c.wreck(t, s, g)
			before := kindsIn(t, s)
			corrected, err := RebuildCounters(s)
			if err != nil || counters && corrected != 1 {
				t.Fatalf("%d queues are corrected, %v", corrected, err)
			}
			after := kindsIn(t, s)
			if counters && len(after) > 0 || !slices.Contains(before, findCounters) && !counters && !slices.Contains(after, c.kind) {
				t.Errorf("found %v before, %v after", before, after)
			}
			if again, err := RebuildCounters(s); err != nil || again != 0 {
				t.Errorf("a second rebuild corrects %d, %v", again, err)
			}
		})
	}
}
