package loadtest

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Producers are entered for times all over the place and must each have their turn
// with the first beat that is not before it, or the next for a time that is over,
// also when beats come late.
func TestTurnsComeWithTheFirstBeatThatIsNotBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b := newPacer(time.Unix(1, 0))
	r := &run{Options: Options{Workload: Workload{Producers: 1, Batch: 1, RatePerSecond: 1}}, pacer: b}
	want := make(map[*producer]int64)
	for step := range 3000 {
		for range random.IntN(5) {
			// Without credit a producer asks for the next beat, and does not post.
			due := b.began.Add(time.Duration(b.ticks)*tickEvery + time.Duration(random.Int64N(int64(9*tickEvery))) - 2*tickEvery)
			p := &producer{run: r, due: due}
			want[p] = max(b.ticks+1, int64(math.Ceil(due.Sub(b.began).Seconds()*1000)))
			b.schedule(p, due)
		}
		before := b.ticks
		b.tick(b.began.Add(time.Duration(b.ticks+random.Int64N(4))*tickEvery + tickEvery/3))
		for p, at := range want {
			if p.late != (at <= b.ticks) {
				t.Fatalf("step %d: beats %d to %d, producer of %d had its turn: %v", step, before+1, b.ticks, at, p.late)
			}
			if p.late {
				p.due = b.began.Add(time.Hour)
				delete(want, p)
			}
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

func (p *punctual) Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Poster, error) {
	if _, err := p.crooked.Open(ctx, w, newTally, fail); err != nil {
		return nil, err
	}
	<-time.After(300 * time.Millisecond) // of the bubble: to connect takes its time
	p.began, p.at = time.Now(), make(map[time.Duration]int)
	return []Poster{p}, nil
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
			if at%tickEvery != 0 || tasks > 11 {
				t.Errorf("%d tasks were posted at %v", tasks, at)
			}
		}
		if !near(float64(all)/float64(len(target.at)), 10, 0.02) {
			t.Errorf("%d tasks were posted at %d moments, want ten at each", all, len(target.at))
		}
	})
}
