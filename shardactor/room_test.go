package shardactor

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRoomTakesUntilEmptyAndHandsUnitsToWaitingShards(t *testing.T) {
	var r room
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	r.resize(2, wake)
	if !r.take(0, 10) || !r.take(1, 10) {
		t.Fatal("two units: two takes must succeed")
	}
	if r.take(2, 10) || r.take(3, 10) || r.take(0, 10) {
		t.Fatal("an empty room gave a unit")
	}
	if got := r.inHand(); got != 2 {
		t.Fatalf("in hand %d, want 2", got)
	}
	r.give(1, wake)
	r.give(3, wake)
	if len(woken) != 3 || woken[0] == woken[1] || woken[1] == woken[2] || woken[0] == woken[2] {
		t.Fatalf("woken %v, want each waiting shard once", woken)
	}
	if free := roomFree(r.word.Load()); free != 1 {
		t.Fatalf("free %d after 4 returned units and 3 waiting shards, want 1", free)
	}
}

func TestRoomShrinksIntoDebtThatReturnedUnitsPayFirst(t *testing.T) {
	var r room
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	r.resize(3, wake)
	for range 3 {
		r.take(0, 0)
	}
	r.take(1, 0)
	r.resize(1, wake)
	r.give(2, wake)
	if len(woken) != 0 {
		t.Fatalf("a unit of a shrunken window woke shard %v", woken)
	}
	r.give(1, wake)
	if len(woken) != 1 || woken[0] != 1 {
		t.Fatalf("woken %v, want the waiting shard 1", woken)
	}
}

func TestRoomStopsAtUntakenBytesAndWakesWhenTheyAreTaken(t *testing.T) {
	var r room
	var woken []int
	wake := func(shard int) { woken = append(woken, shard) }
	r.resize(100, wake)
	if !r.take(0, MaxUntakenBytes) {
		t.Fatal("one task always fits")
	}
	if r.take(1, 1) {
		t.Fatal("a take over the untaken bytes succeeded")
	}
	r.taken(MaxUntakenBytes, MaxUntakenBytes, wake)
	if len(woken) != 1 || woken[0] != 1 {
		t.Fatalf("woken %v, want shard 1", woken)
	}
	if got := r.inHand(); got != 2 {
		t.Fatalf("in hand %d, want 2: one task and one carried unit", got)
	}
}

func TestRoomClosedGivesNothing(t *testing.T) {
	var r room
	wake := func(int) { t.Error("a closed room woke a shard") }
	r.resize(1, wake)
	if !r.close() || r.close() {
		t.Fatal("close must report the first time only")
	}
	if r.take(0, 0) {
		t.Fatal("a closed room gave a unit")
	}
	r.give(1, wake)
}

// Shards take and return units from many goroutines at once. At the end every
// unit is accounted for and no shard that still wants one sits without a
// wake-up on its way: a lost wake-up leaves a worker waiting for ever.
func TestRoomLosesNoUnitAndNoWakeUpUnderContention(t *testing.T) {
	const shards, window, perShard = 8, 3, 10_000
	var r room
	wakes := make([]chan struct{}, shards)
	for i := range wakes {
		wakes[i] = make(chan struct{}, window+1)
	}
	var carried atomic.Int64
	wake := func(shard int) {
		carried.Add(1)
		wakes[shard] <- struct{}{}
	}
	r.resize(window, wake)
	var out atomic.Int64
	var wg sync.WaitGroup
	for shard := range shards {
		wg.Go(func() {
			for range perShard {
				// A shard that got no unit waits until one is carried to it; if
				// the wake-up were lost, this test would hang.
				if !r.take(shard, 0) {
					<-wakes[shard]
				}
				if n := out.Add(1); n > window {
					t.Errorf("%d units out of a window of %d", n, window)
				}
				// Let the others find the room empty.
				runtime.Gosched()
				out.Add(-1)
				r.give(1, wake)
				for drained := false; !drained; {
					select {
					case <-wakes[shard]:
						r.give(1, wake)
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
			r.give(1, func(int) {})
		}
	}
	// Whatever bit is still set belongs to a shard that ended; its units are
	// free or were carried to it, never gone.
	free := roomFree(r.word.Load())
	if free > window || carried.Load() == 0 {
		t.Fatalf("free %d of %d, carried %d", free, window, carried.Load())
	}
}

func TestRoomServesEveryWaitingShardInRotation(t *testing.T) {
	var r room
	served := make(map[int]int)
	order := rand.New(rand.NewPCG(1, 2))
	r.resize(1, func(int) {})
	r.take(0, 0)
	for range 400 {
		for _, shard := range order.Perm(4) {
			r.take(shard, 0)
		}
		r.give(1, func(shard int) { served[shard]++ })
	}
	for shard := range 4 {
		if served[shard] != 100 {
			t.Fatalf("served %v, want each shard 100 times", served)
		}
	}
}
