package loadtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Sixty producers wait for times of their own, over and over; each is woken by
// the first beat that is not before, and at once for a time that is over.
func TestBeatWakesAtTheFirstThatIsNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		b := newBeat(time.Now())
		var striking, waiting sync.WaitGroup
		striking.Go(func() { b.run(ctx) })
		for i := range 60 {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			p := &producer{due: make(chan struct{}, 1)}
			waiting.Go(func() {
				for range 200 {
					asked := time.Now()
					due := asked.Add(time.Duration(random.Int64N(int64(9*time.Millisecond))) - 2*time.Millisecond)
					if !b.await(ctx, p, due) {
						t.Error("the beat ended")
						return
					}
					want := max(due.Sub(asked), 0)
					if want > 0 {
						into := due.Sub(b.began) % beatEvery
						want += (beatEvery - into) % beatEvery
					}
					if got := time.Since(asked); got != want {
						t.Errorf("woken after %v, want %v", got, want)
					}
				}
			})
		}
		waiting.Wait()
		if len(b.waiting) != 0 {
			t.Errorf("%d beats are kept", len(b.waiting))
		}
		end()
		striking.Wait()
		p := &producer{due: make(chan struct{}, 1)}
		if b.await(ctx, p, time.Now().Add(time.Hour)) || b.await(ctx, p, time.Now()) {
			t.Error("woken by a beat that has ended")
		}
	})
}

func TestBeatsThatWereMissedAreMadeUpFor(t *testing.T) {
	b := newBeat(time.Now())
	var producers []*producer
	for i := range 5 {
		p := &producer{due: make(chan struct{}, 1)}
		producers = append(producers, p)
		if !b.enter(p, b.began.Add(time.Duration(i+1)*beatEvery)) {
			t.Fatalf("beat %d is over before it was struck", i+1)
		}
	}
	b.strike(b.began.Add(4*beatEvery + beatEvery/2))
	for i, p := range producers {
		if woken := len(p.due) == 1; woken != (i < 4) {
			t.Errorf("producer of beat %d: woken %v", i+1, woken)
		}
	}
}

// punctual notes when it is posted to.
type punctual struct {
	crooked
	began time.Time
	mu    sync.Mutex
	at    map[time.Duration]int
}

func (p *punctual) Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Line, error) {
	if _, err := p.crooked.Open(ctx, w, newTally, fail); err != nil {
		return nil, err
	}
	p.began, p.at = time.Now(), make(map[time.Duration]int)
	return []Line{p}, nil
}

func (p *punctual) Post(first uint64, count int) error {
	p.mu.Lock()
	p.at[time.Since(p.began)] += count
	p.mu.Unlock()
	return p.crooked.Post(first, count)
}

func TestWhatIsDueInOneMillisecondIsPostedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := shortRun()
		w.RatePerSecond = 10_000
		target := &punctual{crooked: crooked{answerAfter: time.Microsecond}}
		if _, err := Run(context.Background(), Options{Workload: w, Target: target}); err != nil {
			t.Fatal(err)
		}
		all := 0
		for at, tasks := range target.at {
			all += tasks
			if at%beatEvery != 0 || tasks > 11 {
				t.Errorf("%d tasks were posted at %v", tasks, at)
			}
		}
		if !near(float64(all)/float64(len(target.at)), 10, 0.02) {
			t.Errorf("%d tasks were posted at %d moments, want ten at each", all, len(target.at))
		}
	})
}
