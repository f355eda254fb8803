package loadtest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// refusedPause is the average pause of a producer after a refusal: the second that the
// server advises. Each pause is drawn from half of it to one and a half, as the SDK
// does, or all producers would post again at one moment.
const refusedPause = time.Second

func pauseAfterRefusal() time.Duration { return refusedPause/2 + rand.N(refusedPause) }

// producer posts as many tasks as it has credit for: on a goroutine of its own, or, at
// a rate, on the goroutine of the pacer.
type producer struct {
	run   *run
	index uint32
	line  Poster
	// credit is how many tasks may be posted, refusals how many were refused since
	// collect. The goroutines that receive answers add to both.
	credit   atomic.Int32
	refusals atomic.Int32
	wake     chan struct{}

	// owned by the goroutine
	held int // collected credit that is not used yet

	// At a rate: due is the time of the next batch, refused reports a refusal since
	// the last batch, and late that there was no credit when the batch was due.
	due     time.Time
	refused bool
	late    bool
}

func (p *producer) addCredit(credit, refusals int32) {
	if refusals > 0 {
		p.refusals.Add(refusals)
	}
	p.credit.Add(credit)
	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// produce posts until stop ends. Then it waits until every answer has come or ctx
// ends.
func (p *producer) produce(ctx, stop context.Context) {
	if p.run.pause() > 0 {
		<-p.run.pacer.ended
	} else {
		for p.wait(stop, p.run.Batch) {
			count := p.held / p.run.Batch * p.run.Batch
			p.held -= count
			p.post(count, p.run.nowNs())
		}
	}
	p.wait(ctx, p.run.Pipeline*p.run.Batch)
}

// scheduleFirst spreads the first batches of all producers over one pause.
func (p *producer) scheduleFirst(now time.Time) {
	p.due = now.Add(p.run.pause() * time.Duration(p.index) / time.Duration(p.run.Producers))
	p.run.pacer.schedule(p, p.due)
}

// postDue posts every batch that is due and returns when it is to be called again.
func (p *producer) postDue(now time.Time) time.Time {
	if p.collect() {
		return now.Add(pauseAfterRefusal())
	}
	if p.refused && p.run.Sheds {
		p.due = now
	}
	for !p.due.After(now) {
		if p.held < p.run.Batch {
			p.late = true
			return now
		}
		sentNs := p.run.nowNs()
		if p.late {
			// The server withheld credit, so the wait since the due time is part of
			// the latency. Without that a late tick is the generator's fault.
			sentNs = p.due.Sub(p.run.began).Nanoseconds()
		}
		p.refused, p.late = false, false
		p.held -= p.run.Batch
		p.due = p.due.Add(p.run.pause())
		if p.run.OverHTTP {
			// Post waits for the answer, and all producers of the pacer would wait.
			p.run.posting.Go(func() { p.post(p.run.Batch, sentNs) })
			continue
		}
		p.post(p.run.Batch, sentNs)
	}
	return p.due
}

// collect moves new credit to held and reports whether there was a refusal.
func (p *producer) collect() (refused bool) {
	p.held += int(p.credit.Swap(0))
	if p.refusals.Load() == 0 || p.refusals.Swap(0) == 0 {
		return false
	}
	p.refused = true
	return true
}

func (p *producer) post(count int, sentNs int64) {
	first := p.run.ledger.open(count, p.index, sentNs)
	if err := p.line.Post(first, count); err != nil {
		p.run.fail(err)
	}
}

// wait collects credit until there is enough. It reports false when ctx ended first.
func (p *producer) wait(ctx context.Context, enough int) bool {
	for {
		if p.collect() && !sleep(ctx, pauseAfterRefusal()) || ctx.Err() != nil {
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

// sleep reports false when ctx ended before d was over.
func sleep(ctx context.Context, d time.Duration) bool {
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
