package loadtest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// refusedPause is how long a producer rests after a refusal, give or take a
// half: the second that the server advises, as the SDK takes it, and spread, or
// all of them would come back at once.
const refusedPause = time.Second

func restFor() time.Duration { return refusedPause/2 + rand.N(refusedPause) }

// producer posts as many tasks as it has credit for: in a goroutine of its own, or
// at a rate in that of the beat.
type producer struct {
	run   *run
	index uint32
	line  Line
	// credit is what may be posted, refusals what was refused since the last
	// look; both are filled by whoever hears the answers.
	credit   atomic.Int32
	refusals atomic.Int32
	wake     chan struct{}

	// owned by the goroutine
	held int // credit that was taken and not used

	// at a rate: due is when the next batch is, rested says that there was a refusal
	// since the last, and late that there was no credit when it was due.
	due    time.Time
	rested bool
	late   bool
}

func (p *producer) give(credit, refusals int32) {
	if refusals > 0 {
		p.refusals.Add(refusals)
	}
	p.credit.Add(credit)
	select {
	case p.wake <- struct{}{}:
	default: // it has been woken and has not looked yet
	}
}

// produce posts until stop ends, and then waits for the answers that are out
// until ctx ends.
func (p *producer) produce(ctx, stop context.Context) {
	if p.run.pause() > 0 {
		<-p.run.beat.ended
	} else {
		for p.wait(stop, p.run.Batch) {
			count := p.held / p.run.Batch * p.run.Batch
			p.held -= count
			p.post(count, p.run.nowNs())
		}
	}
	p.wait(ctx, p.run.Pipeline*p.run.Batch)
}

// enterBeat spreads the producers over the first pause.
func (p *producer) enterBeat(now time.Time) {
	p.due = now.Add(p.run.pause() * time.Duration(p.index) / time.Duration(p.run.Producers))
	p.run.beat.enter(p, p.due)
}

// turn posts every batch that is due and says when the next turn is to be.
func (p *producer) turn(now time.Time) time.Time {
	if p.collect() {
		return now.Add(restFor())
	}
	if p.rested && p.run.Sheds {
		p.due = now
	}
	for !p.due.After(now) {
		if p.held < p.run.Batch {
			p.late = true
			return now
		}
		sentNs := p.run.nowNs()
		if p.late {
			// The task should have been posted when it was due. A turn of ours that
			// comes late is not the server's fault.
			sentNs = p.due.Sub(p.run.began).Nanoseconds()
		}
		p.rested, p.late = false, false
		p.held -= p.run.Batch
		p.due = p.due.Add(p.run.pause())
		if p.run.OverHTTP {
			// It waits for the answer, and the others would wait with it.
			p.run.posting.Go(func() { p.post(p.run.Batch, sentNs) })
			continue
		}
		p.post(p.run.Batch, sentNs)
	}
	return p.due
}

// collect takes the credit that came, and says whether there was a refusal.
func (p *producer) collect() (refused bool) {
	p.held += int(p.credit.Swap(0))
	if p.refusals.Load() == 0 || p.refusals.Swap(0) == 0 {
		return false
	}
	p.rested = true
	return true
}

func (p *producer) post(count int, sentNs int64) {
	first := p.run.ledger.open(count, p.index, sentNs)
	if err := p.line.Post(first, count); err != nil {
		p.run.fail(err)
	}
}

// wait collects credit until there is enough of it. It reports false when ctx
// ended first.
func (p *producer) wait(ctx context.Context, enough int) bool {
	for {
		if p.collect() && !rest(ctx, restFor()) || ctx.Err() != nil {
			return false
		}
		if p.held >= enough {
			return true
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// rest waits, and reports false when ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
