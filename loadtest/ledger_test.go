package loadtest

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

func shortRun() Workload {
	w := Canonical()
	w.WarmUpFor, w.MeasureFor = 100*time.Millisecond, 400*time.Millisecond
	return w
}

// verdictOn runs a target to its end without waiting for real.
func verdictOn(t *testing.T, c *crooked) (v Verdict) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.answerAfter = time.Millisecond
		w := shortRun()
		w.WarmUpFor, w.MeasureFor = 20*time.Millisecond, 20*time.Millisecond
		o, err := Run(context.Background(), Options{Workload: w, Target: c})
		if err != nil {
			t.Fatal(err)
		}
		v = o.Verdict
	})
	return v
}

func TestHonestServerIsBelieved(t *testing.T) {
	v := verdictOn(t, &crooked{})
	if !v.Holds() || v.Created == 0 || v.Created != v.Completed {
		t.Errorf("verdict %+v", v)
	}
}

const cheatAt = 77

// cheat says how one task is treated otherwise than it should be, and what is
// to be found.
type cheat struct {
	do    func(w *Workload, t *Tally)
	want  Verdict
	words string
}

var cheats = map[string]cheat{
	"lost before it was delivered": {func(*Workload, *Tally) {}, Verdict{Lost: 1}, ", 1 LOST"},
	"lost after it was delivered": {func(w *Workload, t *Tally) {
		t.Delivered(idOf(cheatAt), w.Payload(cheatAt))
	}, Verdict{Lost: 1}, ", 1 LOST"},
	"delivered twice": {func(w *Workload, t *Tally) {
		t.Delivered(idOf(cheatAt), w.Payload(cheatAt))
		honest(w, t, cheatAt)
	}, Verdict{Duplicated: 1}, ", 1 DUPLICATED"},
	"completed twice": {func(w *Workload, t *Tally) {
		honest(w, t, cheatAt)
		t.Completed(cheatAt)
	}, Verdict{Duplicated: 1}, ", 1 DUPLICATED"},
	"one bit of the payload": {func(w *Workload, t *Tally) {
		altered := w.Payload(cheatAt)
		altered[len(altered)-3] ^= 1
		t.Delivered(idOf(cheatAt), altered)
		t.Completed(cheatAt)
	}, Verdict{Altered: 1}, ", 1 ALTERED"},
	"a shorter payload": {func(w *Workload, t *Tally) {
		short := *w
		short.PayloadBytes--
		t.Delivered(idOf(cheatAt), short.Payload(cheatAt))
		t.Completed(cheatAt)
	}, Verdict{Altered: 1}, ", 1 ALTERED"},
	"under the id of another": {func(w *Workload, t *Tally) {
		t.Delivered(idOf(cheatAt+1), w.Payload(cheatAt))
		t.Completed(cheatAt)
	}, Verdict{Altered: 1}, ", 1 ALTERED"},
	"with the payload of another": {func(w *Workload, t *Tally) {
		t.Delivered(idOf(cheatAt), w.Payload(cheatAt-1))
		t.Completed(cheatAt)
	}, Verdict{Altered: 1, Duplicated: 1}, ", 1 DUPLICATED, 1 ALTERED"},
	"never posted": {func(w *Workload, t *Tally) {
		honest(w, t, cheatAt)
		t.Delivered(idOf(1<<40), w.Payload(1<<40))
	}, Verdict{Strangers: 1}, ", 1 NEVER ACCEPTED"},
	"no payload of ours": {func(w *Workload, t *Tally) {
		honest(w, t, cheatAt)
		t.Delivered(idOf(cheatAt), []byte(`{"n":1}`))
	}, Verdict{Strangers: 1}, ", 1 NEVER ACCEPTED"},
}

func TestCheatsAreFound(t *testing.T) {
	for name, c := range cheats {
		t.Run(name, func(t *testing.T) {
			w := shortRun()
			got := verdictOn(t, &crooked{cheat: func(t *Tally, n uint64) bool {
				if n == cheatAt {
					c.do(&w, t)
				}
				return n != cheatAt
			}})
			if got.Holds() {
				t.Fatalf("the cheat was not found: %+v", got)
			}
			text := got.String()
			created := got.Created
			got.Created, got.Completed = 0, 0
			if got != c.want || created == 0 {
				t.Errorf("verdict %+v of %d tasks, want %+v", got, created, c.want)
			}
			if !strings.HasSuffix(text, c.words) {
				t.Errorf("it says %q, want %q at the end", text, c.words)
			}
		})
	}
}

func TestRefusedTaskMustNotRun(t *testing.T) {
	refusal := wire.Refuse(wire.CodeOverloaded, "come later")
	every := func(n uint64) *wire.Error {
		if n%10 == 3 {
			return refusal
		}
		return nil
	}
	v := verdictOn(t, &crooked{refuse: every})
	if !v.Holds() || v.Refused == 0 || v.Created != v.Completed {
		t.Errorf("refusals alone break no rule: %+v", v)
	}
	var l ledger
	l.open(1, 0, 0)
	l.find(0).refused()
	l.find(0).delivered(idOf(0), true)
	if v := l.verdict(); v.Strangers != 1 || v.Holds() {
		t.Errorf("a refused task ran: %+v", v)
	}
}

func TestUnansweredTaskIsSaid(t *testing.T) {
	var l ledger
	l.open(3, 0, 0)
	l.find(1).refused()
	if v := l.verdict(); v.Unanswered != 2 || v.Refused != 1 || v.Holds() {
		t.Errorf("verdict %+v", v)
	}
	if l.find(3) != nil {
		t.Error("a number that was never given out is found")
	}
}

// TestLedgerCountsAsMapsDo feeds the ledger and plain maps with the same
// random events.
func TestLedgerCountsAsMapsDo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const tasks = chunkEntries + 500 // over the edge of a chunk
	var l ledger
	for opened := 0; opened < tasks; {
		count := min(1+random.IntN(40), tasks-opened)
		if first := l.open(count, 0, 0); first != uint64(opened) {
			t.Fatalf("opened %d, want %d", first, opened)
		}
		opened += count
	}
	acks, gives, dones := map[uint64]bool{}, map[uint64]int{}, map[uint64]int{}
	for range 4 * tasks {
		n := random.Uint64N(tasks)
		switch random.IntN(3) {
		case 0:
			l.find(n).acked(idOf(n))
			acks[n] = true
		case 1:
			l.find(n).delivered(idOf(n), true)
			gives[n]++
		case 2:
			l.find(n).completed()
			dones[n]++
		}
	}
	var want Verdict
	for n := range uint64(tasks) {
		switch {
		case acks[n] && dones[n] == 0:
			want.Lost++
		case !acks[n]:
			want.Unanswered++
		}
		if gives[n] > 1 || dones[n] > 1 {
			want.Duplicated++
		}
		if dones[n] > 0 {
			want.Completed++
		}
	}
	want.Created = int64(len(acks))
	if got := l.verdict(); got != want {
		t.Errorf("verdict %+v, want %+v", got, want)
	}
}
