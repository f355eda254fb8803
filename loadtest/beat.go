package loadtest

import (
	"context"
	"time"
)

// beatEvery is the rhythm in which producers post at a rate. What comes due
// between two beats is posted with the second.
const beatEvery = time.Millisecond

// beat lets producers post at the times they ask for. A goroutine and a timer for
// each would cost the generator more than all else that it does for a task, of
// processors that it shares with the server; and what is posted together travels
// together.
type beat struct {
	began time.Time
	// ended is closed when run has returned; until then all producers that were
	// entered belong to its goroutine.
	ended chan struct{}

	// struck is the number of the last beat, from 0 at began; waiting are those
	// whose turn is with a later one.
	struck  int64
	waiting map[int64][]*producer
	spare   []*producer
}

func newBeat(began time.Time) *beat {
	return &beat{began: began, ended: make(chan struct{}), waiting: make(map[int64][]*producer)}
}

// run strikes until ctx ends.
func (b *beat) run(ctx context.Context) {
	defer close(b.ended)
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.strike(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// strike makes up for the beats that were missed.
func (b *beat) strike(now time.Time) {
	for until := int64(now.Sub(b.began) / beatEvery); b.struck < until; {
		b.struck++
		turns, some := b.waiting[b.struck]
		if !some {
			continue
		}
		delete(b.waiting, b.struck)
		for _, p := range turns {
			b.enter(p, p.turn(now))
		}
		clear(turns)
		b.spare = turns[:0]
	}
}

// enter gives a producer its turn with the first beat to come that is not before
// due. It is for the goroutine of run, and before that runs for whoever made it.
func (b *beat) enter(p *producer, due time.Time) {
	at := max(int64((due.Sub(b.began)+beatEvery-1)/beatEvery), b.struck+1)
	others, some := b.waiting[at]
	if !some {
		others, b.spare = b.spare, nil
	}
	b.waiting[at] = append(others, p)
}
