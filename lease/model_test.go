package lease_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeq/lease"
	"codeq/wire"
)

// model is a table without structure: entries in grant order, found by looking
// at all of them.
type model struct {
	table   *lease.Table
	entries []*lease.Entry
	// bound numbers the moments at which entries came to their session.
	bound map[*lease.Entry]int
	binds int
	tasks int
}

func newModel() *model {
	return &model{table: lease.New(), bound: map[*lease.Entry]int{}}
}

const (
	modelSessions = 4
	modelTimes    = 50 // few enough that deadlines meet
)

// step does one operation on table and model. pick(n) chooses from 0 to n-1.
func (w *model) step(pick func(n int) int) {
	op := pick(8)
	if op < 3 || len(w.entries) == 0 {
		w.grant(pick(modelSessions), int64(pick(modelTimes)+1))
		return
	}
	e := w.entries[pick(len(w.entries))]
	switch op {
	case 3, 4:
		w.table.Move(e, int64(pick(modelTimes)+1))
	case 5:
		to := session(pick(modelSessions))
		if e.Lease.Session != to {
			w.binds++
			w.bound[e] = w.binds
		}
		w.table.Bind(e, to)
	case 6:
		w.remove(e)
	case 7:
		if due := w.table.Due(int64(pick(modelTimes) + 1)); due != nil {
			w.remove(due)
		}
	}
}

func (w *model) grant(inSession int, atMs int64) {
	w.tasks++
	e := entry(w.tasks, inSession)
	w.binds++
	w.bound[e] = w.binds
	w.entries = append(w.entries, e)
	w.table.Grant(e, atMs)
}

func (w *model) remove(e *lease.Entry) {
	w.table.Remove(e)
	w.entries = slices.DeleteFunc(w.entries, func(f *lease.Entry) bool { return f == e })
	delete(w.bound, e)
}

// first is the earliest of the entries, the one granted first among equals.
func (w *model) first() *lease.Entry {
	var first *lease.Entry
	for _, e := range w.entries {
		if first == nil || e.ExpiresAtMs < first.ExpiresAtMs {
			first = e
		}
	}
	return first
}

func (w *model) ofSession(s wire.SessionID) (have []*lease.Entry) {
	for _, e := range w.entries {
		if e.Lease.Session == s && !s.IsZero() {
			have = append(have, e)
		}
	}
	slices.SortFunc(have, func(a, b *lease.Entry) int { return w.bound[a] - w.bound[b] })
	return have
}

// compare says where table and model differ.
func (w *model) compare() error {
	if w.table.Len() != len(w.entries) {
		return fmt.Errorf("table has %d entries, model %d", w.table.Len(), len(w.entries))
	}
	first := w.first()
	if first == nil {
		if at := w.table.NextAtMs(); at != 0 || w.table.Due(modelTimes) != nil {
			return fmt.Errorf("an empty table is due at %d", at)
		}
	} else {
		if at := w.table.NextAtMs(); at != first.ExpiresAtMs {
			return fmt.Errorf("next at %d, want %d", at, first.ExpiresAtMs)
		}
		if w.table.Due(first.ExpiresAtMs-1) != nil || w.table.Due(first.ExpiresAtMs) != first {
			return fmt.Errorf("what is due at %d is not the first", first.ExpiresAtMs)
		}
	}
	for s := range modelSessions {
		if !slices.Equal(w.table.OfSession(session(s), nil), w.ofSession(session(s))) {
			return fmt.Errorf("session %d has other entries", s)
		}
	}
	for n := 1; n <= w.tasks; n++ {
		e := w.table.Get(taskID(n))
		if e != nil && !slices.Contains(w.entries, e) {
			return fmt.Errorf("table has ended task %d", n)
		}
	}
	for _, e := range w.entries {
		if w.table.Holds(wire.TaskRef{TaskID: e.Task.ID, Token: e.Lease.Token}) != e {
			return fmt.Errorf("table does not hold task %s", e.Task.ID)
		}
	}
	return nil
}

func TestTableAgreesWithItsModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			w := newModel()
			for i := range 2000 {
				w.step(r.IntN)
				if i%10 != 0 {
					continue
				}
				if err := w.compare(); err != nil {
					t.Fatalf("operation %d: %v", i, err)
				}
			}
			drainInOrder(t, w)
		})
	}
}

// Small runs, compared after each operation, which shrink when they fail.
func TestTableAgreesWithItsModelInSmallRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newModel()
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			w.step(pick)
			if err := w.compare(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func drainInOrder(t *testing.T, w *model) {
	t.Helper()
	for len(w.entries) > 0 {
		want := w.first()
		if got := w.table.Due(modelTimes); got != want {
			t.Fatalf("with %d left, due is %v, want %v", len(w.entries), got, want)
		}
		w.remove(want)
	}
	if err := w.compare(); err != nil {
		t.Fatal(err)
	}
}

// The life of a delivery in a table with 10,000 others: granted, extended
// once, completed from the middle.
func BenchmarkGrantMoveRemove(b *testing.B) {
	const held = 10_000
	table := lease.New()
	ring := make([]*lease.Entry, held)
	for i := range ring {
		ring[i] = entry(i, 1+i%3)
		table.Grant(ring[i], int64(1000+i))
	}
	r := rand.New(rand.NewPCG(1, 1))
	order := r.Perm(held)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := ring[order[i%held]]
		table.Move(e, int64(2000+held+i))
		table.Remove(e)
		table.Grant(e, int64(1000+held+i))
	}
}
