package credit

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// Whenever starts are asked for, no second has more of them than the rate says, and
// who asks all the time gets nearly as many.
func TestNoSecondHasMoreStartsThanItsRate(t *testing.T) {
	for _, perSecond := range []int{1, 2, 7, 99, 100, 101, 1_000, 30_000} {
		random := rand.New(rand.NewPCG(1, uint64(perSecond)))
		var r Rate
		now, begin, eager := int64(1_796_000_000_000), int64(0), 0
		r.SetRate(perSecond, now)
		begin = now
		starts := make(map[int64]int) // by millisecond
		take := func(most int) (taken int, againAtMs int64) {
			for ; taken < most; taken++ {
				if againAtMs = r.Start(now); againAtMs != 0 {
					return taken, againAtMs
				}
				starts[now]++
			}
			return taken, 0
		}
		for now < begin+5_000 { // all the time
			n, again := take(perSecond + 1)
			if eager += n; again <= now {
				t.Fatalf("%d/s: at %d the next start is at %d", perSecond, now, again)
			}
			now = again
		}
		if least := 5*perSecond*97/100 - 1; eager < least {
			t.Errorf("%d/s: %d starts in 5 s, want %d", perSecond, eager, least)
		}
		for now < begin+20_000 { // now and then
			now += random.Int64N(300)
			if n, _ := take(1 + random.IntN(2*perSecond)); n > 0 && random.IntN(3) == 0 {
				r.Unstart()
				starts[now]--
			}
		}
		within := 0
		for ms := begin; ms <= now; ms++ {
			within += starts[ms] - starts[ms-1000]
			if within > perSecond {
				t.Fatalf("%d/s: %d starts in the second before %d", perSecond, within, ms-begin)
			}
		}
	}
}

func TestStartsOfManyGoroutinesAreCountedOnce(t *testing.T) {
	var r Rate
	r.SetRate(1000, 0)
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 8 {
		all.Go(func() {
			for now := int64(1); now <= 1000; now++ {
				if r.Start(now) == 0 {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if taken > 1000 || taken < 900 {
		t.Errorf("%d starts in a second of 1,000", taken)
	}
}

// A rate that is set anew keeps its place, so changing it often allows no more.
func TestARateThatChangesAllowsNoBurst(t *testing.T) {
	var r Rate
	taken := 0
	for now := int64(0); now < 1000; now++ {
		r.SetRate(5+int(now%2), now)
		if r.Start(now) == 0 {
			taken++
		}
	}
	if taken > 6 {
		t.Errorf("%d starts in a second of at most 6", taken)
	}
	r.SetRate(0, 1000)
	for range 100 {
		if at := r.Start(1000); at != 0 {
			t.Fatalf("without a limit the next start is at %d", at)
		}
	}
}
