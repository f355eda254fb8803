package store

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// endedModel is a plain list of the ended tasks of a queue.
type endedModel struct {
	span   *Span
	queue  record.QueueKey
	chance *rand.Rand
	all    []record.EndedEntry
}

// put ends some tasks in few moments and two ways.
func (m *endedModel) put() {
	for range m.chance.IntN(60) {
		e := record.EndedEntry{
			TimedKey: record.TimedKey{AtMs: 1 + int64(m.chance.IntN(8))},
			Ended:    record.Ended{Status: wire.StatusCompleted, Deliveries: 1 + m.chance.IntN(10)/9},
		}
		for i := range e.ID {
			e.ID[i] = byte(m.chance.Uint32())
		}
		m.span.Batch().PutEnded(m.queue, record.FamilyDone, e.TimedKey, e.Ended)
		m.all = append(m.all, e)
	}
	slices.SortFunc(m.all, func(a, b record.EndedEntry) int {
		return cmp.Or(cmp.Compare(a.AtMs, b.AtMs), compareIDs(a.ID, b.ID))
	})
}

// delete deletes one task of a few among the oldest, as retention does, or among all, in any order.
func (m *endedModel) delete() {
	most, rare := len(m.all), 1+m.chance.IntN(3)
	if m.chance.IntN(3) > 0 {
		most = min(most, 150)
	}
	var left, gone []record.EndedEntry
	for i, e := range m.all {
		if i < most && m.chance.IntN(rare) == 0 {
			gone = append(gone, e)
		} else {
			left = append(left, e)
		}
	}
	if m.chance.IntN(2) == 0 {
		m.chance.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	}
	m.deleteAll(gone)
	m.all = left
}

func (m *endedModel) deleteAll(gone []record.EndedEntry) {
	for _, e := range gone {
		m.span.Batch().DeleteTimed(m.queue, record.FamilyDone, e.TimedKey)
	}
	m.span.Batch().PutCounters(m.queue, &record.Counters{Done: int64(len(m.all) - len(gone))})
}

// sameScan holds what a scan finds against the list.
func (m *endedModel) sameScan(t *testing.T, want []record.EndedEntry, after record.TimedKey, limit int) {
	t.Helper()
	found, err := m.span.ScanEnded(m.queue, record.FamilyDone, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	if want = want[:min(len(want), limit)]; !slices.Equal(found, want) {
		t.Fatalf("after %v, at most %d: %d entries, want %d: %v, want %v", after, limit, len(found), len(want), found, want)
	}
}

// samePages holds what a list reads after a place, or from its beginning, against the list.
func (m *endedModel) samePages(t *testing.T, from int, back bool) {
	t.Helper()
	o := order{view: m.span.store.viewOf(m.span.store.db, m.span.shard), back: back}
	want := slices.Clone(m.all)
	if from > 0 {
		key := record.AppendTimedKey(nil, 1, record.FamilyDone, m.all[from].TimedKey)
		o.place = key[len(key)-momentBytes-len(m.all[from].ID):]
		if want = want[from+1:]; back {
			want = slices.Clone(m.all[:from])
		}
	}
	if back {
		slices.Reverse(want)
	}
	if err := o.begin(&ListQuery{Queue: m.queue, State: ListDone}); err != nil {
		t.Fatal(err)
	}
	for i := 0; o.ok || i < len(want); i++ {
		if !o.ok || i == len(want) || o.key.AtMs != want[i].AtMs || o.key.ID != want[i].ID {
			t.Fatalf("back %v from %d of %d: the list has %d %v as number %d of %d", back, from, len(m.all), o.key.AtMs, o.key.ID, i, len(want))
		}
		if err := o.next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
}

func (m *endedModel) check(t *testing.T) {
	t.Helper()
	m.sameScan(t, m.all, record.TimedKey{}, len(m.all)+1)
	if len(m.all) > 0 {
		from := m.chance.IntN(len(m.all))
		m.sameScan(t, m.all[from+1:], m.all[from].TimedKey, 1+m.chance.IntN(200))
		m.samePages(t, from, m.chance.IntN(2) == 0)
	}
}

// TestEndedTasksThatShareKeys puts and deletes ended tasks of two queues at random, over batches and
// flushes. In the end nothing of them is left.
func TestEndedTasksThatShareKeys(t *testing.T) {
	for seed := range uint64(8) {
		s := openIn(t, vfs.NewMem())
		sp, chance := s.Span(0), rand.New(rand.NewPCG(seed, 1))
		models := []*endedModel{
			{span: sp, chance: chance, queue: record.QueueKey{Command: "c", Tenant: "t"}},
			{span: sp, chance: chance, queue: record.QueueKey{Command: "d", Tenant: "t"}},
		}
		for range 100 {
			for _, m := range models {
				m.put()
				m.delete()
			}
			apply(t, sp)
			if chance.IntN(20) == 0 {
				flushed(t, s)
			}
			for _, m := range models {
				m.check(t)
			}
		}
		for _, m := range models {
			m.deleteAll(m.all)
			sp.Batch().DeleteCounters(m.queue)
		}
		apply(t, sp)
		if err := s.db.Compact(t.Context(), sp.prefix, record.UpperBound(sp.prefix), false); err != nil {
			t.Fatal(err)
		}
		if keys, _ := flushed(t, s); keys > 2 { // the marks, and what the store keeps for itself
			t.Errorf("seed %d: tables have %d keys", seed, keys)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEndedTasksOfARoundShareAKey counts keys, which is what the sharing is for.
func TestEndedTasksOfARoundShareAKey(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}
	sp.Batch().PutCounters(q, &record.Counters{Done: 1})
	apply(t, sp)
	before, _ := flushed(t, s)
	for n := range 3 * record.MaxTogether {
		sp.Batch().PutEnded(q, record.FamilyDone, record.TimedKey{AtMs: 1, ID: wire.TaskID{byte(n)}}, record.Ended{Status: wire.StatusCompleted})
	}
	if size := sp.Batch().Bytes(); size < 3*record.MaxTogether*16 {
		t.Errorf("the batch says that it has %d bytes", size)
	}
	apply(t, sp)
	if keys, _ := flushed(t, s); keys != before+3 {
		t.Errorf("%d keys, want %d", keys, before+3)
	}
}
