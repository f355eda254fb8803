package loadtest

import (
	"context"
	"sync"
	"time"
)

// beatEvery is the rhythm in which producers post at a rate. What comes due
// between two beats is posted with the second.
const beatEvery = time.Millisecond

// beat wakes the producers whose time has come. A timer for each would cost the
// generator as much as all else that it does for a task, of processors that it
// shares with the server; and what is posted together travels together.
type beat struct {
	began time.Time

	mu sync.Mutex
	// struck is the number of the last beat, from 0 at began; waiting are those
	// that a later one wakes.
	struck  int64
	waiting map[int64][]*producer
	spare   []*producer
}

func newBeat(began time.Time) *beat {
	return &beat{began: began, waiting: make(map[int64][]*producer)}
}

// run strikes until ctx ends.
func (b *beat) run(ctx context.Context) {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	for until := int64(now.Sub(b.began) / beatEvery); b.struck < until; {
		b.struck++
		woken, some := b.waiting[b.struck]
		if !some {
			continue
		}
		delete(b.waiting, b.struck)
		for _, p := range woken {
			p.due <- struct{}{} // it waits once at a time, so there is room
		}
		clear(woken)
		b.spare = woken[:0]
	}
}

// await returns with the first beat that is not before due, or at once if that
// is over. It reports false when ctx ended first, after which the producer does
// not wait for another.
func (b *beat) await(ctx context.Context, p *producer, due time.Time) bool {
	if !b.enter(p, due) {
		return ctx.Err() == nil
	}
	select {
	case <-p.due:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *beat) enter(p *producer, due time.Time) bool {
	at := int64((due.Sub(b.began) + beatEvery - 1) / beatEvery)
	b.mu.Lock()
	defer b.mu.Unlock()
	if at <= b.struck {
		return false
	}
	others, some := b.waiting[at]
	if !some {
		others, b.spare = b.spare, nil
	}
	b.waiting[at] = append(others, p)
	return true
}
