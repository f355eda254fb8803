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

func (p *producer) restAfterRefusal(ctx context.Context) bool {
	return rest(ctx, refusedPause/2+rand.N(refusedPause))
}

// producer is one goroutine that posts and waits.
type producer struct {
	run   *run
	index uint32
	line  Line
	// credit is what may be posted, refusals what was refused since the last
	// look; both are filled by whoever hears the answers.
	credit   atomic.Int32
	refusals atomic.Int32
	wake     chan struct{}
	due      chan struct{} // from the beat

	// owned by the goroutine
	held   int  // credit that was taken and not used
	rested bool // after a refusal, since the last post
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
	if pause := p.run.pause(); pause > 0 {
		p.atRate(stop, pause)
	} else {
		for p.wait(stop, p.run.Batch) {
			p.post(p.held/p.run.Batch*p.run.Batch, p.run.nowNs())
		}
	}
	p.wait(ctx, p.run.Pipeline*p.run.Batch)
}

// atRate posts a batch whenever one is due.
func (p *producer) atRate(stop context.Context, pause time.Duration) {
	// Spread the producers over the first pause.
	due := time.Now().Add(pause * time.Duration(p.index) / time.Duration(p.run.Producers))
	for p.run.beat.await(stop, p, due) {
		late := p.held+int(p.credit.Load()) < p.run.Batch
		if !p.wait(stop, p.run.Batch) {
			return
		}
		sent := p.run.nowNs()
		switch {
		case p.rested && p.run.Sheds:
			due = time.Now()
		case late:
			// The task should have been posted when it was due. A timer of ours
			// that fired late is not the server's fault.
			sent = due.Sub(p.run.began).Nanoseconds()
		}
		p.rested = false
		due = due.Add(pause)
		p.post(p.run.Batch, sent)
	}
}

func (p *producer) post(count int, sentNs int64) {
	p.held -= count
	first := p.run.ledger.open(count, p.index, sentNs)
	if err := p.line.Post(first, count); err != nil {
		p.run.fail(err)
	}
}

// wait collects credit until there is enough of it. It reports false when ctx
// ended first.
func (p *producer) wait(ctx context.Context, enough int) bool {
	for {
		p.held += int(p.credit.Swap(0))
		if p.refusals.Load() > 0 && p.refusals.Swap(0) > 0 {
			p.rested = true
			if !p.restAfterRefusal(ctx) {
				return false
			}
		}
		if ctx.Err() != nil {
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
