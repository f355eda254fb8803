package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"codeq/record"
	"codeq/wire"
)

// dead reads letters page by page.
func (m *meadow) dead(t *testing.T, q ListQuery) (got []wire.TaskID, read int) {
	t.Helper()
	q.Queue = m.queue
	for {
		page, err := m.store.Find(&q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Found) > q.Limit || page.Read > q.MostRead {
			t.Fatalf("%d letters of %d that were read, asked for %d of %d", len(page.Found), page.Read, q.Limit, q.MostRead)
		}
		for _, k := range page.Found {
			got = append(got, k.ID)
		}
		read += page.Read
		if q.After = page.Places; q.After == nil {
			return got, read
		}
	}
}

func TestDeadLettersComeOldestFirstAndFiltered(t *testing.T) {
	m := newMeadow(t, 3, 300)
	newestFirst := m.merged(ListDead)
	until := newestFirst[len(newestFirst)/2].EndedAtMs
	for _, c := range []struct {
		name   string
		filter ListFilter
		keep   func(*record.Task) bool
	}{
		{"all", ListFilter{}, func(*record.Task) bool { return true }},
		{"error", ListFilter{TaskFilter: wire.TaskFilter{ErrorPart: "disk"}}, func(r *record.Task) bool { return strings.Contains(r.Error, "disk") }},
		{"cause", ListFilter{Causes: wire.OnlyDead(wire.DeadFailed)}, func(r *record.Task) bool { return r.DeadCause == wire.DeadFailed }},
		{"cause and error", ListFilter{Causes: wire.OnlyDead(wire.DeadExhausted, wire.DeadReleased), TaskFilter: wire.TaskFilter{ErrorPart: "disk"}},
			func(r *record.Task) bool { return r.DeadCause != wire.DeadFailed && strings.Contains(r.Error, "disk") }},
		{"worker", ListFilter{TaskFilter: wire.TaskFilter{Worker: "ada"}}, func(r *record.Task) bool { return r.LastWorkerID == "ada" }},
	} {
		want := idsOf(newestFirst, func(r *record.Task) bool { return r.EndedAtMs <= until && c.keep(r) })
		slices.Reverse(want)
		got, read := m.dead(t, ListQuery{State: ListDead, UntilMs: until, Filter: c.filter, Limit: 7, MostRead: 11})
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: got %d dead letters, want %d, or another order", c.name, len(got), len(want))
		}
		if most := len(newestFirst) - len(newestFirst)/2; read > most {
			t.Errorf("%s: %d letters were read of %d", c.name, read, most)
		}
	}
	if _, err := m.store.Find(&ListQuery{Queue: m.queue, State: ListDead, After: []ListPlace{nil}}); !errors.Is(err, ErrListPlace) {
		t.Errorf("places of one shard: %v", err)
	}
}

func TestDeadLettersAreGroupedByReason(t *testing.T) {
	m := newMeadow(t, 3, 300)
	newestFirst := m.merged(ListDead)
	q := ListQuery{Queue: m.queue, State: ListDead, Limit: 10, MostRead: 10, MostBytes: 1 << 20}
	for at := 0; ; at += 10 {
		page, err := m.store.DeadReasons(&q)
		if err != nil {
			t.Fatal(err)
		}
		part := newestFirst[at:min(at+10, len(newestFirst))]
		if page.Read != len(part) || (page.Places == nil) != (at+10 >= len(newestFirst)) {
			t.Fatalf("read %d of %d, more %v", page.Read, len(part), page.Places != nil)
		}
		counts := make(map[reasonKey]int)
		for _, r := range part {
			counts[reasonKey{groupingText(r.Error), r.DeadCause}]++
		}
		for _, r := range page.Reasons {
			first := part[slices.IndexFunc(part, func(o *record.Task) bool { return groupingText(o.Error) == r.Error && o.DeadCause == r.Cause })]
			if counts[reasonKey{r.Error, r.Cause}] != r.Count || r.TaskID != first.ID || r.EndedAtMs != first.EndedAtMs {
				t.Errorf("reason %+v, counted %d, newest %v", r, counts[reasonKey{r.Error, r.Cause}], first.ID)
			}
		}
		if len(page.Reasons) != len(counts) {
			t.Errorf("%d reasons of %d", len(page.Reasons), len(counts))
		}
		if q.After = page.Places; q.After == nil {
			break
		}
	}
	q = ListQuery{Queue: m.queue, State: ListDead, Limit: 1000, MostRead: 1000, MostBytes: 1}
	if page, err := m.store.DeadReasons(&q); err != nil || page.Places == nil || len(page.Reasons) > 2 {
		t.Errorf("reasons of one byte: %+v, %v", page, err)
	}
}
