package store

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

func TestAHealthyDatabaseGivesNoFinding(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	mustFindNothing(t, s)
	for shard := range 2 {
		p := plantIn(s, shard)
		p.garden(t, record.QueueKey{Command: "a", Tenant: "t"})
		p.garden(t, record.QueueKey{Command: "b", Tenant: "t/2"})
	}
	mustFindNothing(t, s)
}

// sabotages break one rule each.
var sabotages = []struct {
	name  string
	kind  string
	wreck func(t *testing.T, s *Store, g garden)
}{
	{"a key outside every span", "unknown-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte("codeq/other"), "")
	}},
	{"a key before every span", "unknown-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte("a"), "")
	}},
	{"a key of a shard that does not exist", "unknown-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Shard: 2, Family: record.FamilyTask, ID: wire.TaskID{1}}), "{}")
	}},
	{"a key of no family", "unknown-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, append(record.AppendSpan(nil, 0), "more/x"...), "")
	}},
	{"a damaged creation id", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte(record.CreationKey), "{}")
	}},
	{"a damaged record", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}), "x")
	}},
	{"a damaged result", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.done.ID}), "x")
	}},
	{"a damaged history", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "x")
	}},
	{"damaged marks", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "x")
	}},
	{"damaged counters", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), "x")
	}},
	{"damaged settings", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilySettings, Queue: 1}), "\x04\x01")
	}},
	{"settings that the home does not have", "wrong-settings", func(t *testing.T, s *Store, g garden) {
		away := 1 - wire.ShardOfQueue(g.queue.Tenant, g.queue.Command, 2)
		putSettings(t, s, away, g.queue, record.Settings{Version: 1})
	}},
	{"settings newer than those of the home", "wrong-settings", settingsOf(record.Settings{Version: 2}, record.Settings{Version: 3})},
	{"settings that are not those of their version", "wrong-settings", settingsOf(record.Settings{Version: 2}, record.Settings{Version: 2, Paused: true})},
	{"a queue without a name", "wrong-name", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}))
	}},
	{"a damaged name", "wrong-name", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}), "x")
	}},
	{"a name of a queue that has nothing", "wrong-name", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, record.QueueKey{Command: "x"})))
	}},
	{"a queue with two numbers", "wrong-name", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, g.queue)))
	}},
	{"a number above the mark", "wrong-marks", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"a damaged lease", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}), "x")
	}},
	{"a damaged pending value", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, pendingKeyOf(g.pending), "x")
	}},
	{"a damaged delayed value", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyDelayed, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.DueAtMs}), "x")
	}},
	{"a damaged idempotency value", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), "x")
	}},
	{"a task in another shard", "wrong-shard", func(t *testing.T, s *Store, g garden) {
		p := plantIn(s, 1)
		p.marks.TimeMs += 77 // other ids than the garden's
		stranger := p.newID()
		change(t, s, g.pending, func(r *record.Task) { r.ID = stranger })
	}},
	{"a task away from the home of its queue", "wrong-shard", plantAway("", record.Settings{Version: 1})},
	{"a key away from the home of a spread queue", "wrong-shard", plantAway("k", record.Settings{Version: 1, QueueSettings: wire.QueueSettings{Spread: true}})},
	{"a record gone", "no-record", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}))
	}},
	{"a history of nobody", "no-record", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: wire.TaskID{9}}), "[]")
	}},
	{"a result of nobody", "no-record", func(t *testing.T, s *Store, g garden) {
		r := wire.ResultRecord{TaskID: wire.TaskID{9}, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"an idempotency key of nobody", "no-record", func(t *testing.T, s *Store, g garden) {
		id := wire.TaskID{9}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: "x"}), string(id[:]))
	}},
	{"a pending entry gone", "wrong-place", func(t *testing.T, s *Store, g garden) { tamperDelete(t, s, pendingKeyOf(g.pending)) }},
	{"an expiring entry gone", "wrong-place", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.ExpiresAtMs}))
	}},
	{"an expiring entry of a task that does not wait", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.leased, func(r *record.Task) { r.ExpiresAtMs = 9 })
		tamper(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.leased.ID, AtMs: 9}), "")
	}},
	{"an expiring entry at another time", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.ExpiresAtMs++ })
	}},
	{"a second pending entry", "wrong-place", func(t *testing.T, s *Store, g garden) {
		r := *g.pending
		r.Seq--
		tamper(t, s, pendingKeyOf(&r), "12345678")
	}},
	{"an entry in another queue", "wrong-place", func(t *testing.T, s *Store, g garden) {
		key := pendingKeyOf(g.pending)
		tamperDelete(t, s, key)
		p, err := record.ParseKey(key)
		if p.Queue = 2; err != nil {
			t.Fatal(err)
		}
		tamper(t, s, spanKey(p), "12345678")
	}},
	{"an entry of another priority", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Priority++ })
	}},
	{"a lease beside a pending entry", "wrong-place", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.pending.ID}), "\x02\x01")
	}},
	{"a lease gone", "wrong-place", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}))
	}},
	{"another due time", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.DueAtMs++ })
	}},
	{"another end of a dead letter", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.dead, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"another end of a done task", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"no location", "wrong-place", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Location = "" })
	}},
	{"a terminal task that waits", "wrong-status", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Status = wire.StatusFailed })
	}},
	{"a done task that is not terminal", "wrong-status", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusPending })
	}},
	{"a lease older than its record", "wrong-lease", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.leased, func(r *record.Task) { r.Deliveries = g.lease.Delivery + 1 })
	}},
	{"a lease that ends before it began", "wrong-lease", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}),
			"\x02\x01\x12\x05")
	}},
	{"a payload gone", "wrong-payload", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}))
	}},
	{"a payload of another length", "wrong-payload", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}), "{}")
	}},
	{"a payload in two places", "wrong-payload", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Payload = strings.Repeat("1", r.PayloadBytes) })
	}},
	{"a result in two places", "wrong-result", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result within a task that waits", "wrong-result", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result gone", "wrong-result", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.dead.ID}))
	}},
	{"a result of a task that waits", "wrong-result", func(t *testing.T, s *Store, g garden) {
		r := wire.ResultRecord{TaskID: g.pending.ID, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"a result with another status", "wrong-result", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusCancelled })
	}},
	{"an idempotency key gone", "wrong-idempotency-key", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}))
	}},
	{"an idempotency key of another queue", "wrong-idempotency-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 2, Name: g.done.IdempotencyKey}), string(g.done.ID[:]))
	}},
	{"an idempotency key of another task", "wrong-idempotency-key", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), string(g.dead.ID[:]))
	}},
	{"a key that its task does not carry", "wrong-idempotency-key", func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.IdempotencyKey = "" })
	}},
	{"an ended entry of another status", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCancelled, Keyed: true, Bare: true})},
	{"an ended entry of other deliveries", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, Deliveries: 1, Keyed: true, Bare: true})},
	{"an ended entry without the key", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, Bare: true})},
	{"an ended entry of a whole task that is not", "wrong-ended-entry", endedAs(record.Ended{Status: wire.StatusCompleted, Keyed: true, Bare: true, Whole: true})},
	{"an ended entry that denies a history", "wrong-ended-entry", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "[]")
	}},
	{"an ended entry of nonsense", "damaged-value", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, endedKey(g), "\xff")
	}},
	{"no counters", "wrong-counters", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}))
	}},
	{"ready miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Ready[4]++ })},
	{"ready in another priority", "wrong-counters", recount(func(c *record.Counters) { c.Ready[3], c.Ready[4] = c.Ready[4], 0 })},
	{"delayed miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Delayed-- })},
	{"in progress miscounted", "wrong-counters", recount(func(c *record.Counters) { c.InProgress = 0 })},
	{"dead miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Dead++ })},
	{"done miscounted", "wrong-counters", recount(func(c *record.Counters) { c.Done++ })},
	{"counters of an empty queue", "wrong-counters", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"ready watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.ReadyWatermark[4]++ })},
	{"ready since another time", "wrong-ready-since", recount(func(c *record.Counters) { c.ReadySinceMs[4]-- })},
	{"ready since some time without a task", "wrong-ready-since", recount(func(c *record.Counters) { c.ReadySinceMs[3] = 1 })},
	{"delayed watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DelayedWatermarkMs++ })},
	{"lease watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.LeaseWatermark++ })},
	{"dead watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DeadWatermarkMs++ })},
	{"done watermark too high", "wrong-watermark", recount(func(c *record.Counters) { c.DoneWatermarkMs++ })},
	{"marks too low", "wrong-marks", func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "\x02\x65")
	}},
	{"marks gone", "wrong-marks", func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyMarks}))
	}},
}

func endedKey(g garden) []byte {
	return spanKey(record.Key{Family: record.FamilyDone, Queue: 1, AtMs: g.done.EndedAtMs, ID: g.done.ID})
}

// endedAs writes another entry for a task that has completed.
func endedAs(e record.Ended) func(t *testing.T, s *Store, g garden) {
	return func(t *testing.T, s *Store, g garden) {
		t.Helper()
		tamper(t, s, endedKey(g), string(record.AppendEnded(nil, e)))
	}
}

// settingsOf writes settings of a queue at home and away.
func settingsOf(home, away record.Settings) func(t *testing.T, s *Store, g garden) {
	return func(t *testing.T, s *Store, g garden) {
		t.Helper()
		at := wire.ShardOfQueue(g.queue.Tenant, g.queue.Command, 2)
		putSettings(t, s, at, g.queue, home)
		putSettings(t, s, 1-at, g.queue, away)
	}
}

// plantAway plants a task in shard 0, of a queue at home in shard 1 that has such
// settings.
func plantAway(key string, settings record.Settings) func(t *testing.T, s *Store, g garden) {
	return func(t *testing.T, s *Store, _ garden) {
		t.Helper()
		p := plantIn(s, 0)
		p.marks.TimeMs += 77
		p.marks.Seq += 100
		q := record.QueueKey{Command: "away", Tenant: "t"}
		for p.home(q) == 0 {
			q.Command += "-"
		}
		p.pending(q, key)
		p.settle(t)
		settingsOf(settings, settings)(t, s, garden{queue: q})
	}
}

func pendingKeyOf(r *record.Task) []byte {
	return spanKey(record.Key{Family: record.FamilyPending, Queue: 1, Priority: r.Priority, Seq: r.Seq, ID: r.ID})
}

// change rewrites a record past the core.
func change(t *testing.T, s *Store, r *record.Task, f func(*record.Task)) {
	t.Helper()
	changed := *r
	f(&changed)
	tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: changed.ID}), string(record.AppendTask(nil, &changed)))
}

func recount(f func(*record.Counters)) func(t *testing.T, s *Store, g garden) {
	return func(t *testing.T, s *Store, g garden) {
		t.Helper()
		c, err := s.Span(0).recount(g.queue)
		if err != nil {
			t.Fatal(err)
		}
		f(&c)
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), string(record.AppendCounters(nil, &c)))
	}
}

func TestEveryBrokenRuleIsFound(t *testing.T) {
	used := usedDir(t)
	_, g := gardenOf(t)
	for _, c := range sabotages {
		t.Run(c.name, func(t *testing.T) {
			s := openIn(t, used.CrashClone(vfs.CrashCloneCfg{}))
			c.wreck(t, s, g)
			findings, err := Audit.Check(s)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, f := range findings {
				kinds = append(kinds, f.Kind)
				if !strings.Contains(f.Text, ": "+f.Kind+": ") || strings.HasSuffix(f.Text, ": ") {
					t.Errorf("finding without words: %+v", f)
				}
			}
			if !strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+c.kind+" ") {
				t.Errorf("found %v, want %s", findings, c.kind)
			}
		})
	}
}

// gardenOf is the garden in shard 0 of usedDir: planters repeat themselves.
func gardenOf(t *testing.T) (*Store, garden) {
	t.Helper()
	s := openIn(t, vfs.NewMem())
	return s, plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
}

func TestWhatWasSetAsideIsNoFinding(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	tamper(t, s, append(record.AppendSpan(nil, 0), byte(record.FamilyBad), 1, 2), "anything")
	mustFindNothing(t, s)
}

func TestCheckMayRunWhileShardsWrite(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	var writing sync.WaitGroup
	var written atomic.Bool
	writing.Go(func() {
		defer written.Store(true)
		p := plantIn(s, 0)
		for n := range 50 {
			p.garden(t, record.QueueKey{Command: fmt.Sprint("c", n), Tenant: "t"})
		}
	})
	for !written.Load() {
		mustFindNothing(t, s)
	}
	writing.Wait()
	mustFindNothing(t, s)
}

func putSettings(t *testing.T, s *Store, shard int, q record.QueueKey, settings record.Settings) {
	t.Helper()
	s.Span(shard).Batch().PutSettings(q, &settings)
	apply(t, s.Span(shard))
}
