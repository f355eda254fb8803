package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeq/record"
	"codeq/wire"
)

var someQueue = record.QueueKey{Command: "resize", Tenant: "t"}

func at(rank uint64) place { return place{rank: rank} }

func entryAt(rank uint64) entry { return entry{place: at(rank)} }

// placesOf are the places of entries.
func placesOf(entries []entry) []place {
	places := make([]place, len(entries))
	for i, e := range entries {
		places[i] = e.place
	}
	return places
}

func newRun() *run { return &newQueue(New(small), someQueue).ready[5] }

func TestPlacesSortByRankThenById(t *testing.T) {
	order := []place{
		{}, {0, wire.TaskID{1}}, justBelow(1), {1, wire.TaskID{}}, {1, wire.TaskID{15: 1}}, {1, wire.TaskID{1}},
		justBelow(2), {2, wire.TaskID{}}, {1 << 63, wire.TaskID{}}, {1<<64 - 1, wire.TaskID{}},
	}
	for i, a := range order {
		for j, b := range order {
			got := a.compare(b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v compares to %v as %d", a, b, got)
			}
		}
	}
	if justBelow(0) != (place{}) {
		t.Error("something is below the first place")
	}
}

// Insertions and cuts are biased in turn to the head, the tail and anywhere.
func TestRunAgreesWithASortedSlice(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			deque, sorted := newRun(), []place(nil)
			for i := range 6_000 {
				growing := i/1000%2 == 0
				if r.IntN(10) < 6 == growing {
					k := at(1_000_000 + biased(r, i, len(sorted)))
					if _, found := slices.BinarySearchFunc(sorted, k, place.compare); found {
						continue
					}
					sorted = insertSorted(sorted, k)
					deque.mustInsert(entry{place: k})
				} else if len(sorted) > 0 {
					k := sorted[biased(r, i, len(sorted))%uint64(len(sorted))]
					sorted = removeSorted(sorted, k)
					deque.mustCut(k)
				}
				if deque.len() != len(sorted) || i%50 == 0 && !slices.Equal(placesOf(deque.live()), sorted) {
					t.Fatalf("operation %d: %v, want %v", i, deque.live(), sorted)
				}
				if c := cap(deque.keys); c > max(2*keptCap, 16*len(sorted)) {
					t.Fatalf("operation %d: %d keys take the memory of %d", i, len(sorted), c)
				}
			}
		})
	}
}

func biased(r *rand.Rand, i, n int) uint64 {
	switch i / 100 % 4 {
	case 0:
		return uint64(r.IntN(3))
	case 1:
		return uint64(max(0, n-1-r.IntN(3)) + i)
	}
	return r.Uint64N(20_000)
}

func TestRunGivesItsMemoryBack(t *testing.T) {
	for name, pick := range map[string]func(n int) int{
		"from the head":   func(int) int { return 0 },
		"from the tail":   func(n int) int { return n - 1 },
		"from the middle": func(n int) int { return n / 2 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun()
			for i := range 6_000 {
				r.mustInsert(entryAt(uint64(i + 1)))
			}
			for r.len() > 0 {
				r.mustCut(r.live()[pick(r.len())].place)
			}
			if cap(r.keys) > keptCap {
				t.Fatalf("an empty run has the memory of %d keys", cap(r.keys))
			}
		})
	}
}

func TestSteadyRunKeepsItsMemory(t *testing.T) {
	r := newRun()
	const waiting = 1000
	for i := range uint64(100_000) {
		r.mustInsert(entryAt(i + 1))
		if i >= waiting {
			r.mustCut(at(i + 1 - waiting))
		}
		if c := cap(r.keys); c > 4*waiting {
			t.Fatalf("%d keys take the memory of %d", r.len(), c)
		}
	}
}

func TestQueueThatEmptiesAgainAndAgainDoesNotAllocate(t *testing.T) {
	x := New(large)
	q := x.Queue(someQueue)
	dirty := make([]*Queue, 0, 1)
	seq := uint64(0)
	once := func() {
		for range 20 {
			seq++
			q.AddReady(5, record.PendingKey{Seq: seq}, sinceOf(seq))
		}
		for prio, k, ok := q.HeadReady(); ok; prio, k, ok = q.HeadReady() {
			q.RemoveReady(prio, k)
		}
		dirty = x.TakeDirty(dirty[:0])
	}
	once()
	if allocs := testing.AllocsPerRun(100, once); allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}
