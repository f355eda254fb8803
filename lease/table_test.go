package lease_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

func taskID(n int) wire.TaskID {
	return wire.TaskID{0: 1, 14: byte(n >> 8), 15: byte(n)}
}

func session(n int) wire.SessionID {
	if n == 0 {
		return wire.SessionID{}
	}
	return wire.SessionID{0: 2, 15: byte(n)}
}

func token(n int) wire.Token { return wire.Token{0: 3, 14: byte(n >> 8), 15: byte(n)} }

func entry(n, inSession int) *lease.Entry {
	return &lease.Entry{
		Task:  &record.Task{ID: taskID(n)},
		Lease: record.Lease{Token: token(n), Session: session(inSession)},
	}
}

func wantPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatal("did not panic")
		}
	}()
	f()
}

func wantOrder(t *testing.T, got []*lease.Entry, want ...*lease.Entry) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %d entries, want %d, or another order: %v, want %v", len(got), len(want), got, want)
	}
}

// drain removes what is due until nothing is.
func drain(table *lease.Table, nowMs int64) (drained []*lease.Entry) {
	for e := table.Due(nowMs); e != nil; e = table.Due(nowMs) {
		table.Remove(e)
		drained = append(drained, e)
	}
	return drained
}

func TestEmptyTableHasNothing(t *testing.T) {
	table := lease.New()
	if table.Len() != 0 || table.NextAtMs() != 0 || table.Due(1<<62) != nil || table.Get(taskID(1)) != nil {
		t.Fatal("an empty table answers")
	}
}

func TestDueComesByDeadlineThenByGrant(t *testing.T) {
	table := lease.New()
	a, b, c, d := entry(1, 0), entry(2, 0), entry(3, 0), entry(4, 0)
	table.Grant(a, 300)
	table.Grant(b, 100)
	table.Grant(c, 200)
	table.Grant(d, 100)
	if got := table.NextAtMs(); got != 100 {
		t.Fatalf("next at %d, want 100", got)
	}
	if table.Due(99) != nil {
		t.Fatal("due before the deadline")
	}
	wantOrder(t, drain(table, 200), b, d, c)
	wantOrder(t, drain(table, 1000), a)
}

func TestMoveKeepsThePlaceOfTheGrant(t *testing.T) {
	table := lease.New()
	a, b, c := entry(1, 0), entry(2, 0), entry(3, 0)
	table.Grant(a, 100)
	table.Grant(b, 200)
	table.Grant(c, 300)
	table.Move(a, 250)
	table.Move(c, 250)
	table.Move(b, 250)
	if a.ExpiresAtMs != 250 {
		t.Fatalf("moved to %d, want 250", a.ExpiresAtMs)
	}
	wantOrder(t, drain(table, 250), a, b, c)
}

func TestHoldsComparesTheToken(t *testing.T) {
	table := lease.New()
	e := entry(1, 0)
	table.Grant(e, 100)
	if table.Holds(wire.TaskRef{TaskID: taskID(1), Token: token(1)}) != e {
		t.Fatal("its own token does not hold it")
	}
	for name, ref := range map[string]wire.TaskRef{
		"other token":  {TaskID: taskID(1), Token: token(2)},
		"no token":     {TaskID: taskID(1)},
		"unknown task": {TaskID: taskID(2), Token: token(1)},
	} {
		if table.Holds(ref) != nil {
			t.Errorf("%s holds a delivery", name)
		}
	}
	unfenced := entry(3, 0)
	unfenced.Lease.Token = wire.Token{}
	table.Grant(unfenced, 100)
	if table.Holds(wire.TaskRef{TaskID: taskID(3)}) != nil {
		t.Error("the zero token holds a delivery")
	}
	table.Remove(e)
	if table.Holds(wire.TaskRef{TaskID: taskID(1), Token: token(1)}) != nil {
		t.Error("an ended delivery is held")
	}
}

func TestSessionHasItsDeliveriesInTheOrderTheyCame(t *testing.T) {
	table := lease.New()
	a, b, c, d := entry(1, 1), entry(2, 2), entry(3, 1), entry(4, 0)
	for i, e := range []*lease.Entry{a, b, c, d} {
		table.Grant(e, int64(1000-i))
	}
	wantOrder(t, table.OfSession(session(1), nil), a, c)
	wantOrder(t, table.OfSession(session(2), nil), b)
	wantOrder(t, table.OfSession(session(0), nil))

	table.Bind(a, session(1)) // where it is: keeps its place
	table.Bind(d, session(1))
	table.Bind(b, session(1))
	wantOrder(t, table.OfSession(session(1), []*lease.Entry{d}), d, a, c, d, b)
	wantOrder(t, table.OfSession(session(2), nil))

	table.Bind(c, session(0))
	table.Remove(d)
	wantOrder(t, table.OfSession(session(1), nil), a, b)
	if c.Lease.Session != session(0) || b.Lease.Session != session(1) {
		t.Fatal("Bind left another session in the lease")
	}
}

func TestRemovedEntryMayBeGrantedAgain(t *testing.T) {
	table := lease.New()
	e := entry(1, 1)
	table.Grant(e, 100)
	table.Remove(e)
	table.Grant(e, 200)
	wantOrder(t, table.OfSession(session(1), nil), e)
	wantOrder(t, drain(table, 200), e)
}

func TestBrokenInvariantsPanic(t *testing.T) {
	table := lease.New()
	e := entry(1, 1)
	wantPanic(t, func() { table.Remove(e) })
	wantPanic(t, func() { table.Move(e, 5) })
	wantPanic(t, func() { table.Bind(e, session(2)) })
	wantPanic(t, func() { table.Grant(e, 0) })
	table.Grant(e, 100)
	wantPanic(t, func() { table.Grant(entry(1, 0), 100) })
	wantPanic(t, func() { table.Move(e, 0) })
	wantPanic(t, func() { lease.New().Grant(e, 100) })
	table.Remove(e)
	wantPanic(t, func() { table.Remove(e) })
}

func TestTokensComeFromTheSeedAndAreNeverZero(t *testing.T) {
	a, b := rand.NewChaCha8([32]byte{1}), rand.NewChaCha8([32]byte{1})
	seen := map[wire.Token]bool{}
	for range 1000 {
		got := lease.DrawToken(a)
		if got != lease.DrawToken(b) {
			t.Fatal("one seed, two tokens")
		}
		if got.IsZero() || seen[got] {
			t.Fatalf("token %s is zero or came twice", got)
		}
		seen[got] = true
	}
}
