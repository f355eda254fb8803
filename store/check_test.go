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
	{"a key outside every span", findUnknownKey, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte("codeq/other"), "")
	}},
	{"a key before every span", findUnknownKey, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte("a"), "")
	}},
	{"a key of a shard that does not exist", findUnknownKey, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Shard: 2, Family: record.FamilyTask, ID: wire.TaskID{1}}), "{}")
	}},
	{"a key of no family", findUnknownKey, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, append(record.AppendSpan(nil, 0), "more/x"...), "")
	}},
	{"a damaged creation id", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, []byte(record.CreationKey), "{}")
	}},
	{"a damaged record", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}), "x")
	}},
	{"a damaged result", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.done.ID}), "x")
	}},
	{"a damaged history", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "x")
	}},
	{"damaged marks", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "x")
	}},
	{"damaged counters", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), "x")
	}},
	{"damaged settings", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilySettings, Queue: 1}), "\x04\x01")
	}},
	{"settings that the home does not have", findSettings, func(t *testing.T, s *Store, g garden) {
		away := 1 - wire.ShardOfQueue(g.queue.Tenant, g.queue.Command, 2)
		putSettings(t, s, away, g.queue, record.Settings{Version: 1})
	}},
	{"settings newer than those of the home", findSettings, settingsOf(record.Settings{Version: 2}, record.Settings{Version: 3})},
	{"settings that are not those of their version", findSettings, settingsOf(record.Settings{Version: 2}, record.Settings{Version: 2, Paused: true})},
	{"a queue without a name", findNames, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}))
	}},
	{"a damaged name", findNames, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}), "x")
	}},
	{"a name of a queue that has nothing", findNames, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, record.QueueKey{Command: "x"})))
	}},
	{"a queue with two numbers", findNames, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), string(record.AppendNames(nil, g.queue)))
	}},
	{"a number above the mark", findMarks, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"a damaged lease", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}), "x")
	}},
	{"a damaged pending value", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, pendingKeyOf(g.pending), "x")
	}},
	{"a damaged delayed value", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyDelayed, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.DueAtMs}), "x")
	}},
	{"a damaged idempotency value", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), "x")
	}},
	{"a task in another shard", findWrongShard, func(t *testing.T, s *Store, g garden) {
		p := plantIn(s, 1)
		p.marks.TimeMs += 77 // other ids than the garden's
		stranger := p.newID()
		change(t, s, g.pending, func(r *record.Task) { r.ID = stranger })
	}},
	{"a task away from the home of its queue", findWrongShard, plantAway("", record.Settings{Version: 1})},
	{"a key away from the home of a spread queue", findWrongShard, plantAway("k", record.Settings{Version: 1, QueueSettings: wire.QueueSettings{Spread: true}})},
	{"a record gone", findOrphan, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.pending.ID}))
	}},
	{"a history of nobody", findOrphan, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: wire.TaskID{9}}), "[]")
	}},
	{"a result of nobody", findOrphan, func(t *testing.T, s *Store, g garden) {
		r := wire.ResultRecord{TaskID: wire.TaskID{9}, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"an idempotency key of nobody", findOrphan, func(t *testing.T, s *Store, g garden) {
		id := wire.TaskID{9}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: "x"}), string(id[:]))
	}},
	{"a pending entry gone", findPlace, func(t *testing.T, s *Store, g garden) { tamperDelete(t, s, pendingKeyOf(g.pending)) }},
	{"an expiring entry gone", findPlace, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.delayed.ID, AtMs: g.delayed.ExpiresAtMs}))
	}},
	{"an expiring entry of a task that does not wait", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.leased, func(r *record.Task) { r.ExpiresAtMs = 9 })
		tamper(t, s, spanKey(record.Key{Family: record.FamilyExpiring, Queue: 1, ID: g.leased.ID, AtMs: 9}), "")
	}},
	{"an expiring entry at another time", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.ExpiresAtMs++ })
	}},
	{"a second pending entry", findPlace, func(t *testing.T, s *Store, g garden) {
		r := *g.pending
		r.Seq--
		tamper(t, s, pendingKeyOf(&r), "12345678")
	}},
	{"an entry in another queue", findPlace, func(t *testing.T, s *Store, g garden) {
		key := pendingKeyOf(g.pending)
		tamperDelete(t, s, key)
		p, err := record.ParseKey(key)
		if p.Queue = 2; err != nil {
			t.Fatal(err)
		}
		tamper(t, s, spanKey(p), "12345678")
	}},
	{"an entry of another priority", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Priority++ })
	}},
	{"a lease beside a pending entry", findPlace, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.pending.ID}), "\x02\x01")
	}},
	{"a lease gone", findPlace, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}))
	}},
	{"another due time", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.DueAtMs++ })
	}},
	{"another end of a dead letter", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.dead, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"another end of a done task", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.EndedAtMs++ })
	}},
	{"no location", findPlace, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Location = "" })
	}},
	{"a terminal task that waits", findStatus, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Status = wire.StatusFailed })
	}},
	{"a done task that is not terminal", findStatus, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusPending })
	}},
	{"a lease older than its record", findLease, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.leased, func(r *record.Task) { r.Deliveries = g.lease.Delivery + 1 })
	}},
	{"a lease that ends before it began", findLease, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}),
			"\x02\x01\x12\x05")
	}},
	{"a payload gone", findPayload, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}))
	}},
	{"a payload of another length", findPayload, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.done.ID}), "{}")
	}},
	{"a payload in two places", findPayload, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.pending, func(r *record.Task) { r.Payload = strings.Repeat("1", r.PayloadBytes) })
	}},
	{"a result in two places", findResult, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result within a task that waits", findResult, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.delayed, func(r *record.Task) { r.OutcomeHere, r.Result = true, "1" })
	}},
	{"a result gone", findResult, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: g.dead.ID}))
	}},
	{"a result of a task that waits", findResult, func(t *testing.T, s *Store, g garden) {
		r := wire.ResultRecord{TaskID: g.pending.ID, Status: wire.StatusFailed}
		tamper(t, s, spanKey(record.Key{Family: record.FamilyResult, ID: r.TaskID}), string(wire.AppendResultRecord(nil, &r)))
	}},
	{"a result with another status", findResult, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.Status = wire.StatusCancelled })
	}},
	{"an idempotency key gone", findIdempotency, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}))
	}},
	{"an idempotency key of another queue", findIdempotency, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 2, Name: g.done.IdempotencyKey}), string(g.done.ID[:]))
	}},
	{"an idempotency key of another task", findIdempotency, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyIdempotency, Queue: 1, Name: g.done.IdempotencyKey}), string(g.dead.ID[:]))
	}},
	{"a key that its task does not carry", findIdempotency, func(t *testing.T, s *Store, g garden) {
		change(t, s, g.done, func(r *record.Task) { r.IdempotencyKey = "" })
	}},
	{"an ended entry of another status", findEnded, endedAs(record.Ended{Status: wire.StatusCancelled, Keyed: true, Bare: true})},
	{"an ended entry of other deliveries", findEnded, endedAs(record.Ended{Status: wire.StatusCompleted, Deliveries: 1, Keyed: true, Bare: true})},
	{"an ended entry without the key", findEnded, endedAs(record.Ended{Status: wire.StatusCompleted, Bare: true})},
	{"an ended entry of a whole task that is not", findEnded, endedAs(record.Ended{Status: wire.StatusCompleted, Keyed: true, Bare: true, Whole: true})},
	{"an ended entry that denies a history", findEnded, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: g.done.ID}), "[]")
	}},
	{"an ended entry of nonsense", findDamaged, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, endedKey(g), "\xff")
	}},
	{"no counters", findCounters, func(t *testing.T, s *Store, g garden) {
		tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}))
	}},
	{"ready miscounted", findCounters, recount(func(c *record.Counters) { c.Ready[4]++ })},
	{"ready in another priority", findCounters, recount(func(c *record.Counters) { c.Ready[3], c.Ready[4] = c.Ready[4], 0 })},
	{"delayed miscounted", findCounters, recount(func(c *record.Counters) { c.Delayed-- })},
	{"in progress miscounted", findCounters, recount(func(c *record.Counters) { c.InProgress = 0 })},
	{"dead miscounted", findCounters, recount(func(c *record.Counters) { c.Dead++ })},
	{"done miscounted", findCounters, recount(func(c *record.Counters) { c.Done++ })},
	{"counters of an empty queue", findCounters, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 2}), "\x02\x01")
	}},
	{"ready floor too high", findFloor, recount(func(c *record.Counters) { c.ReadyFloor[4]++ })},
	{"ready since another time", findSince, recount(func(c *record.Counters) { c.ReadySinceMs[4]-- })},
	{"ready since some time without a task", findSince, recount(func(c *record.Counters) { c.ReadySinceMs[3] = 1 })},
	{"delayed floor too high", findFloor, recount(func(c *record.Counters) { c.DelayedFloorMs++ })},
	{"lease floor too high", findFloor, recount(func(c *record.Counters) { c.LeaseFloor++ })},
	{"dead floor too high", findFloor, recount(func(c *record.Counters) { c.DeadFloorMs++ })},
	{"done floor too high", findFloor, recount(func(c *record.Counters) { c.DoneFloorMs++ })},
	{"marks too low", findMarks, func(t *testing.T, s *Store, g garden) {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "\x02\x65")
	}},
	{"marks gone", findMarks, func(t *testing.T, s *Store, g garden) {
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
			findings, err := s.Check()
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, f := range findings {
				kinds = append(kinds, f.Kind)
				if f.Sentence == "" || len(f.Key) == 0 || !strings.Contains(f.String(), f.Kind) {
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
