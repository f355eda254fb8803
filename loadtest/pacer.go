package loadtest

import (
	"context"
	"time"
)

// tickEvery is the interval at which producers post at a rate. What comes due
// between two ticks is posted at the second.
const tickEvery = time.Millisecond

// pacer lets producers post at the times that they ask for, all on one goroutine. One
// goroutine and one timer for each producer would take more processor time than the
// rest of the generator, which shares its processors with the server; and tasks that
// are posted at one tick leave in one message.
type pacer struct {
	began time.Time
	// ended is closed when run has returned. Until then the goroutine of run owns
	// every scheduled producer.
	ended chan struct{}

	// ticks is the number of ticks since began; waiting has the producers of each
	// later tick.
	ticks   int64
	waiting map[int64][]*producer
	spare   []*producer
}

func newPacer(began time.Time) *pacer {
	return &pacer{began: began, ended: make(chan struct{}), waiting: make(map[int64][]*producer)}
}

// run ticks until ctx ends.
func (b *pacer) run(ctx context.Context) {
	defer close(b.ended)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.tick(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// tick catches up on the ticks that were missed.
func (b *pacer) tick(now time.Time) {
	for until := int64(now.Sub(b.began) / tickEvery); b.ticks < until; {
		b.ticks++
		producers, some := b.waiting[b.ticks]
		if !some {
			continue
		}
		delete(b.waiting, b.ticks)
		for _, p := range producers {
			b.schedule(p, p.postDue(now))
		}
		clear(producers)
		b.spare = producers[:0]
	}
}

// schedule lets a producer post at the next tick that is not before due. Only the
// goroutine of run calls it, and before run the one that made the pacer.
func (b *pacer) schedule(p *producer, due time.Time) {
	at := max(int64((due.Sub(b.began)+tickEvery-1)/tickEvery), b.ticks+1)
	others, some := b.waiting[at]
	if !some {
		others, b.spare = b.spare, nil
	}
	b.waiting[at] = append(others, p)
}
