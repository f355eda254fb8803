package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// answersFor is how long the answers that are out may take at the end.
	answersFor = 30 * time.Second
	// stuckFor is how long no task may be completed at the end before what is
	// missing counts as lost.
	stuckFor = 10 * time.Second
	// lookEvery is the rhythm in which memory and progress are looked at.
	lookEvery = 50 * time.Millisecond
)

// Target is what is put under load.
type Target interface {
	// Open connects as the workload says. It asks newTally for a Tally per
	// connection and returns a line per producer session. Errors that come up
	// later go to fail, from any goroutine.
	Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Line, error)
	// Work lets the workers complete whatever they are given from now on. It is
	// called once, after Open.
	Work(ctx context.Context) error
	// Durability is what the target promises of an answer; known after Open.
	Durability() string
	// Close ends everything Open started and returns when it is gone.
	Close() error
}

// Line is the way of some producers to the target.
type Line interface {
	// Post posts the tasks numbered from first on. The answers go to a Tally,
	// before or after Post returns. Many producers may call it at a time.
	Post(first uint64, count int) error
}

// Meter measures the process of a target; see Process.
type Meter interface {
	// CPU is the processor time used so far.
	CPU() (time.Duration, error)
	// RSSBytes is the memory in use now.
	RSSBytes() (int64, error)
}

// Options are what a run is made of. Server and Generator may be nil, then
// their figures are missing in the outcome.
type Options struct {
	Workload
	Target            Target
	Server, Generator Meter
}

// run is a run while it goes on.
type run struct {
	Options
	began     time.Time
	beat      *beat
	ledger    ledger
	producers []*producer
	posting   sync.WaitGroup
	tallies   []*Tally
	measuring atomic.Bool

	acked, refused, completed atomic.Int64

	cancel  context.CancelCauseFunc
	outcome Outcome
}

func (r *run) nowNs() int64 { return int64(time.Since(r.began)) }

// fail ends the run with its first error.
func (r *run) fail(err error) { r.cancel(err) }

func (r *run) newTally() *Tally {
	t := &Tally{
		run: r, latency: newLatencies(),
		credit: make([]int32, r.Producers), refusals: make([]int32, r.Producers),
	}
	r.tallies = append(r.tallies, t)
	return t
}

// Run carries a workload out and judges it. An error means that there is no
// outcome: the target was not reached, broke off or refused to work, or ctx
// ended. A verdict that does not hold is no error. Everything the run started
// is gone when it returns, but Target is the caller's to make and nothing
// else's to use.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, began: time.Now(), cancel: cancel}
	r.beat = newBeat(r.began)
	r.outcome.Workload = o.Workload
	lines, err := o.Target.Open(ctx, &r.Workload, r.newTally, r.fail)
	if err == nil && !r.WorkAfter {
		err = r.Target.Work(ctx)
	}
	if err == nil {
		err = r.carryOut(ctx, lines)
	}
	if closeErr := o.Target.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close connections: %w", closeErr)
	}
	if err != nil {
		return nil, err
	}
	r.conclude()
	return &r.outcome, nil
}

// carryOut runs the producers through warm-up and measurement and then waits
// until nothing is under way.
func (r *run) carryOut(ctx context.Context, lines []Line) error {
	stop, stopProducers := context.WithCancel(ctx)
	defer stopProducers()
	for i := range r.Producers {
		p := &producer{run: r, index: uint32(i), line: lines[r.lineOf(i)], wake: make(chan struct{}, 1)}
		p.held = r.Pipeline * r.Batch
		r.producers = append(r.producers, p)
	}
	answers, endAnswers := context.WithCancel(ctx)
	defer endAnswers()
	if r.pause() > 0 {
		for _, p := range r.producers {
			p.enterBeat(time.Now())
		}
		r.posting.Go(func() { r.beat.run(stop) })
	}
	for _, p := range r.producers {
		r.posting.Go(func() { p.produce(answers, stop) })
	}
	err := r.measure(ctx)
	stopProducers()
	limit := time.AfterFunc(answersFor, endAnswers)
	r.posting.Wait()
	limit.Stop()
	if err == nil && r.WorkAfter {
		err = r.Target.Work(ctx)
	}
	if err == nil {
		err = r.finish(ctx)
	}
	return err
}

// measure waits out the warm-up and watches the measured time.
func (r *run) measure(ctx context.Context) error {
	if !rest(ctx, r.WarmUpFor) {
		return cause(ctx)
	}
	before, err := r.look()
	if err != nil {
		return err
	}
	r.measuring.Store(true)
	r.outcome.firstRSSBytes = before.rssBytes
	end := before.at.Add(r.MeasureFor)
	for left := r.MeasureFor; left > 0; left = time.Until(end) {
		if !rest(ctx, min(left, lookEvery)) {
			return cause(ctx)
		}
		if err := r.lookAtMemory(); err != nil {
			return err
		}
	}
	r.measuring.Store(false)
	after, err := r.look()
	if err != nil {
		return err
	}
	r.outcome.note(before, after)
	return nil
}

// finish waits until every acknowledged task is completed, or nothing moves.
func (r *run) finish(ctx context.Context) error {
	last, movedAt := int64(-1), time.Now()
	for r.completed.Load() < r.acked.Load() && time.Since(movedAt) < stuckFor {
		if now := r.completed.Load(); now != last {
			last, movedAt = now, time.Now()
		}
		if !rest(ctx, lookEvery) {
			return cause(ctx)
		}
	}
	return cause(ctx)
}

func (r *run) conclude() {
	all := newLatencies()
	for _, t := range r.tallies {
		all.merge(t.latency)
	}
	r.outcome.Verdict = r.ledger.judge()
	r.outcome.Enqueue = quantilesOf(all.acked)
	r.outcome.Rejection = quantilesOf(all.refused)
	r.outcome.Delivery = quantilesOf(all.given)
	r.outcome.EndToEnd = quantilesOf(all.completed)
	r.outcome.Durability = r.Target.Durability()
}

// cause is why ctx ended, nil if it has not.
func cause(ctx context.Context) error {
	err := context.Cause(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("the run was stopped")
	}
	return fmt.Errorf("the run broke off: %w", err)
}

// sight is what is read at one moment.
type sight struct {
	at                        time.Time
	completed, acked, refused int64
	serverCPU, generatorCPU   time.Duration
	rssBytes                  int64
	hasServer, hasGenerator   bool
}

func (r *run) look() (s sight, err error) {
	if r.Server != nil {
		s.hasServer = true
		if s.serverCPU, err = r.Server.CPU(); err != nil {
			return s, err
		}
		if s.rssBytes, err = r.Server.RSSBytes(); err != nil {
			return s, err
		}
	}
	if r.Generator != nil {
		s.hasGenerator = true
		if s.generatorCPU, err = r.Generator.CPU(); err != nil {
			return s, err
		}
	}
	s.at, s.completed = time.Now(), r.completed.Load()
	s.acked, s.refused = r.acked.Load(), r.refused.Load()
	return s, nil
}

func (r *run) lookAtMemory() error {
	if r.Server == nil {
		return nil
	}
	rss, err := r.Server.RSSBytes()
	if err != nil {
		return err
	}
	r.outcome.peakRSSBytes = max(r.outcome.peakRSSBytes, rss)
	r.outcome.lastRSSBytes = rss
	return nil
}
