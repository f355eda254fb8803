package store

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
	"codeq/wire"
)

func load(t *testing.T, sp *Span) *Recovered {
	t.Helper()
	r, err := sp.Load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tamper writes one key of the database past the store.
func tamper(t *testing.T, s *Store, key []byte, value string) {
	t.Helper()
	if err := s.db.Set(key, []byte(value), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func tamperDelete(t *testing.T, s *Store, key []byte) {
	t.Helper()
	if err := s.db.Delete(key, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func spanKey(p record.Key) []byte { return p.AppendTo(nil) }

func TestLoadFindsMarksQueuesAndTasksInProgress(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	p := plantIn(s, 1)
	a := p.garden(t, record.QueueKey{Command: "b", Tenant: "t2"})
	b := p.garden(t, record.QueueKey{Command: "a", Tenant: "t/1"})
	bareIn(s, 0).garden(t, record.QueueKey{Command: "other", Tenant: "shard"})
	r := load(t, s.Span(1))
	marks := p.marks
	marks.Queues = 2
	want := &Recovered{
		Marks:  marks,
		Queues: []QueueState{{b.queue, *p.counters[b.queue]}, {a.queue, *p.counters[a.queue]}},
		Leased: []LeasedTask{{*b.leased, *b.lease}, {*a.leased, *a.lease}},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
	if s.Submitted(1) != 2 {
		t.Errorf("a load without damage wrote something: %d", s.Submitted(1))
	}
}

func TestLoadOfAnEmptySpanIsEmpty(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	if r := load(t, s.Span(0)); !reflect.DeepEqual(r, &Recovered{}) {
		t.Errorf("got %+v", r)
	}
}

// What waits is not read at a start: a damaged record of a pending task is
// still where it was.
func TestLoadDoesNotReadWhatWaits(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	for _, r := range []*record.Task{g.pending, g.delayed, g.dead, g.done} {
		tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: r.ID}), "damaged")
	}
	if r := load(t, s.Span(0)); r.Quarantined != 0 || len(r.Leased) != 1 {
		t.Errorf("got %+v", r)
	}
	_, err := s.Span(0).Task(g.pending.ID)
	if !isDamaged(err) {
		t.Errorf("got %v", err)
	}
}

func TestA22WhatIsUnreadableIsSetAsideAndTheRestGoesOn(t *testing.T) {
	q := record.QueueKey{Command: "c", Tenant: "t"}
	for name, c := range map[string]struct {
		change      func(t *testing.T, s *Store, g garden)
		quarantined int64
		leased      int
	}{
		"record in progress damaged": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.leased.ID}), "{")
		}, 4, 0}, // record, payload, lease, idempotency key
		"record of no command": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.leased.ID}), "\x05\x01t")
		}, 4, 0},
		"record in progress missing": {func(t *testing.T, s *Store, g garden) {
			tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.leased.ID}))
		}, 3, 0},
		"lease damaged": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}), "\x00\x00")
		}, 1, 1},
		"counters damaged": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), "")
		}, 1, 1},
		"counters of an older program": {recount(func(c *record.Counters) { c.WaitingBytes = 0 }), 0, 1},
		"marks damaged": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "[]")
		}, 1, 1},
		"all of it damaged": {func(t *testing.T, s *Store, g garden) {
			tamper(t, s, spanKey(record.Key{Family: record.FamilyMarks}), "[]")
			tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), "")
			tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.leased.ID}), "{")
		}, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := openIn(t, vfs.NewMem(), func(o *Options) { o.Log = zerolog.New(&log) })
			p := plantIn(s, 0)
			g := p.garden(t, q)
			c.change(t, s, g)
			r := load(t, s.Span(0))
			if r.Quarantined != c.quarantined || s.QuarantinedTotal() != c.quarantined || len(r.Leased) != c.leased {
				t.Errorf("%d set aside, %d leased; want %d, %d", r.Quarantined, len(r.Leased), c.quarantined, c.leased)
			}
			if lines := int64(strings.Count(log.String(), "set aside")); lines != c.quarantined {
				t.Errorf("%d lines in the log:\n%s", lines, log.String())
			}
			if strings.Contains(log.String(), "key 2") {
				t.Error("the log tells an idempotency key")
			}
			want := *p.counters[q]
			want.InProgress = int64(c.leased)
			if c.leased == 0 || name == "lease damaged" {
				want.FileBytes -= g.lease.Files.Bytes
			}
			if r.Queues[0].Counters != want {
				t.Errorf("got %+v\nwant %+v", r.Queues[0].Counters, want)
			}
			if r.Marks.Seq < g.k.Seq || r.Marks.TimeMs < g.k.UpdatedAtMs {
				t.Errorf("marks %+v are below a task that waits", r.Marks)
			}
			mustFindNothing(t, s)
			if again := load(t, s.Span(0)); again.Quarantined != 0 || len(again.Leased) != c.leased {
				t.Errorf("a second load: %+v", again)
			}
		})
	}
}

func TestADamagedLeaseBecomesALapsedOne(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	tamper(t, s, spanKey(record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}), "x")
	r := load(t, s.Span(0))
	want := LeasedTask{*g.leased, record.Lease{Delivery: g.leased.Deliveries + 1}}
	if len(r.Leased) != 1 || r.Leased[0] != want {
		t.Errorf("got %+v", r.Leased)
	}
}

func TestASetAsideTaskIsKeptUnderBad(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	sp := s.Span(0)
	tamper(t, s, spanKey(record.Key{Family: record.FamilyTask, ID: g.done.ID}), "damaged")
	if err := sp.Quarantine(g.done.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // open, then applied
		if r, err := sp.Task(g.done.ID); r != nil || err != nil {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := sp.view.result(g.done.ID); r != nil || err != nil {
			t.Errorf("got %+v, %v", r, err)
		}
		apply(t, sp)
	}
	v := view{reader: s.db}
	var kept []string
	err := v.scanPrefix(append(record.AppendSpan(nil, 0), byte(record.FamilyBad)), func(key, value []byte) (bool, error) {
		kept = append(kept, fmt.Sprintf("%d %d %s", key[spanBytes], key[spanBytes+1], value))
		return true, nil
	})
	if err != nil || len(kept) != 3 || kept[0] != "16 1 damaged" {
		t.Errorf("kept %v, %v", kept, err)
	}
}

func TestADamagedHistoryIsBegunAnew(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	id := wire.TaskID{1}
	tamper(t, s, spanKey(record.Key{Family: record.FamilyHistory, ID: id}), "damaged")
	sp.Batch().AddHistory(id, wire.HistoryLine{Delivery: 5})
	apply(t, sp)
	value, err := historyOf(sp, id)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := record.ParseHistory(value); err != nil || len(lines) != 1 || s.QuarantinedTotal() != 1 {
		t.Errorf("got %+v, %v, %d set aside", lines, err, s.QuarantinedTotal())
	}
}
