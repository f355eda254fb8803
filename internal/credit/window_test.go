package credit

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWindowTakesUntilEmptyAndHandsCreditsToWaitingShards(t *testing.T) {
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	w := New(1<<20, 1<<20, wake)
	w.SetWindow(2)
	if !w.Take(0, 10) || !w.Take(1, 10) {
		t.Fatal("two credits: two takes must succeed")
	}
	if w.Take(2, 10) || w.Take(3, 10) || w.Take(0, 10) {
		t.Fatal("an empty window gave a credit")
	}
	if got := w.InFlight(); got != 2 {
		t.Fatalf("in hand %d, want 2", got)
	}
	w.Return(1)
	w.Return(3)
	if len(woken) != 3 || woken[0] == woken[1] || woken[1] == woken[2] || woken[0] == woken[2] {
		t.Fatalf("woken %v, want each waiting shard once", woken)
	}
	if free := free(w.word.Load()); free != 1 {
		t.Fatalf("free %d after 4 returned credits and 3 waiting shards, want 1", free)
	}
}

func TestWindowShrinksIntoDebtThatReturnedCreditsPayFirst(t *testing.T) {
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	w := New(1<<20, 1<<20, wake)
	w.SetWindow(3)
	for range 3 {
		w.Take(0, 0)
	}
	w.Take(1, 0)
	w.SetWindow(1)
	w.Return(2)
	if len(woken) != 0 {
		t.Fatalf("a credit of a shrunken window woke shard %v", woken)
	}
	w.Return(1)
	if len(woken) != 1 || woken[0] != 1 {
		t.Fatalf("woken %v, want the waiting shard 1", woken)
	}
}

func TestWindowStopsAtUntakenBytesAndWakesWhenTheyAreTaken(t *testing.T) {
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	w := New(1<<20, 1<<20, wake)
	w.SetWindow(100)
	if !w.Take(0, 1<<20) {
		t.Fatal("one task always fits")
	}
	if w.Take(1, 1) {
		t.Fatal("a take over the untaken bytes succeeded")
	}
	w.Taken(1<<20, 1<<20)
	if len(woken) != 1 || woken[0] != 1 {
		t.Fatalf("woken %v, want shard 1", woken)
	}
	if got := w.InFlight(); got != 2 {
		t.Fatalf("in hand %d, want 2: one task and one credit handed on", got)
	}
}

func TestWindowClosedGivesNothing(t *testing.T) {
	wake := func(int) { t.Error("a closed window woke a shard") }
	w := New(1<<20, 1<<20, wake)
	w.SetWindow(1)
	if !w.Close() || w.Close() {
		t.Fatal("close must report the first time only")
	}
	if w.Take(0, 0) {
		t.Fatal("a closed window gave a credit")
	}
	w.Return(1)
}

// Shards take and return credits from many goroutines at once. At the end every
// credit is accounted for and no shard that still wants one sits without a
// wake-up on its way: a lost wake-up leaves a worker waiting for ever.
func TestWindowLosesNoCreditAndNoWakeUpUnderContention(t *testing.T) {
	const shards, window, perShard = 8, 3, 10_000
	wakes := make([]chan struct{}, shards)
	for i := range wakes {
		wakes[i] = make(chan struct{}, window+1)
	}
	var handedOn atomic.Int64
	wake := func(shard int) {
		handedOn.Add(1)
		wakes[shard] <- struct{}{}
	}
	w := New(1<<20, 1<<20, wake)
	w.SetWindow(window)
	var out atomic.Int64
	var wg sync.WaitGroup
	for shard := range shards {
		wg.Go(func() {
			for range perShard {
				// A shard that got no credit waits until one is handed to it; if
				// the wake-up were lost, this test would hang.
				if !w.Take(shard, 0) {
					<-wakes[shard]
				}
				if n := out.Add(1); n > window {
					t.Errorf("%d credits out of a window of %d", n, window)
				}
				// Let the others find the window empty.
				runtime.Gosched()
				out.Add(-1)
				w.Return(1)
				for drained := false; !drained; {
					select {
					case <-wakes[shard]:
						w.Return(1)
					default:
						drained = true
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range wakes {
		for len(wakes[i]) > 0 {
			<-wakes[i]
			w.Return(1)
		}
	}
	// Whatever bit is still set belongs to a shard that ended; its credits are
	// free or were handed to it, never gone.
	free := free(w.word.Load())
	if free > window || handedOn.Load() == 0 {
		t.Fatalf("free %d of %d, handed on %d", free, window, handedOn.Load())
	}
}

func TestWindowServesEveryWaitingShardInRotation(t *testing.T) {
	served := make(map[int]int)
	w := New(1<<20, 1<<20, func(shard int) { served[shard]++ })
	order := rand.New(rand.NewPCG(1, 2))
	w.SetWindow(1)
	w.Take(0, 0)
	for range 400 {
		for _, shard := range order.Perm(4) {
			w.Take(shard, 0)
		}
		w.Return(1)
	}
	for shard := range 4 {
		if served[shard] != 100 {
			t.Fatalf("served %v, want each shard 100 times", served)
		}
	}
}
