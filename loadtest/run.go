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
	// answersFor is how long the last answers may take.
	answersFor = 30 * time.Second
	// stuckFor is how long at the end no task may be completed before the missing
	// ones count as lost.
	stuckFor = 10 * time.Second
	// readEvery is the interval at which memory and progress are read.
	readEvery = 50 * time.Millisecond
)

// Target is the system under load.
type Target interface {
	// Open connects as the workload says. It calls newTally for each connection and
	// returns a Poster for each producer session. Later errors go to fail, from any
	// goroutine.
	Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Poster, error)
	// Work lets the workers complete every task that they get from now on. Run calls
	// it once, after Open.
	Work(ctx context.Context) error
	// Durability is what the target promises with an answer; known after Open.
	Durability() string
	// Close ends what Open started, and waits for it.
	Close() error
}

// Poster carries the tasks of some producers to the target.
type Poster interface {
	// Post posts count tasks numbered from first. The answers go to a Tally, before
	// or after Post returns. Many goroutines may call it at a time.
	Post(first uint64, count int) error
}

// Meter measures the process of a target; see Process.
type Meter interface {
	// CPU is the processor time used so far.
	CPU() (time.Duration, error)
	// RSSBytes is the memory in use now.
	RSSBytes() (int64, error)
}

// Options of Run. Server and Generator may be nil; then the outcome has no figures of
// that process.
type Options struct {
	Workload
	Target            Target
	Server, Generator Meter
	// Allocations, if any, is how many allocations the server has made so far.
	Allocations func(context.Context) (float64, error)
}

// run is a run while it goes on.
type run struct {
	Options
	began     time.Time
	pacer     *pacer
	ledger    ledger
	producers []*producer
	posting   sync.WaitGroup
	tallies   []*Tally
	measuring atomic.Bool

	acked, refused, completed atomic.Int64

	cancel  context.CancelCauseFunc
	outcome Outcome
	// peakRSSBytes is the most memory of the server while it is measured.
	peakRSSBytes int64
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

// Run carries out a workload and checks every answer. It returns an error and no outcome
// when the target cannot be reached, fails or refuses a task for good, or when ctx
// ends. A verdict that does not hold is no error. Run ends all that it started before
// it returns; a Target serves one run.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, began: time.Now(), cancel: cancel}
	r.pacer = newPacer(r.began)
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

// carryOut runs the producers through warm-up and measurement, and then waits until no
// task is in flight.
func (r *run) carryOut(ctx context.Context, lines []Poster) error {
	stop, stopProducers := context.WithCancel(ctx)
	defer stopProducers()
	for i := range r.Producers {
		p := &producer{run: r, index: uint32(i), line: lines[r.sessionOf(i)], wake: make(chan struct{}, 1)}
		p.held = r.Pipeline * r.Batch
		r.producers = append(r.producers, p)
	}
	answers, endAnswers := context.WithCancel(ctx)
	defer endAnswers()
	if r.pause() > 0 {
		for _, p := range r.producers {
			p.scheduleFirst(time.Now())
		}
		r.posting.Go(func() { r.pacer.run(stop) })
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

// measure waits for the end of the warm-up and reads the figures of the measured time.
func (r *run) measure(ctx context.Context) error {
	if !sleep(ctx, r.WarmUpFor) {
		return cause(ctx)
	}
	before, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.measuring.Store(true)
	r.peakRSSBytes = before.rssBytes
	end := before.at.Add(r.MeasureFor)
	for left := r.MeasureFor; left > 0; left = time.Until(end) {
		if !sleep(ctx, min(left, readEvery)) {
			return cause(ctx)
		}
		if err := r.readMemory(); err != nil {
			return err
		}
	}
	r.measuring.Store(false)
	after, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.outcome.note(before, after)
	if after.hasServer {
		r.outcome.StartRSSMiB, r.outcome.EndRSSMiB = mebibytes(before.rssBytes), mebibytes(after.rssBytes)
		r.outcome.ServerRSSMiB = mebibytes(max(r.peakRSSBytes, after.rssBytes))
	}
	return nil
}

// finish waits until every acknowledged task is completed, or none was for stuckFor.
func (r *run) finish(ctx context.Context) error {
	last, movedAt := int64(-1), time.Now()
	for r.completed.Load() < r.acked.Load() && time.Since(movedAt) < stuckFor {
		if now := r.completed.Load(); now != last {
			last, movedAt = now, time.Now()
		}
		if !sleep(ctx, readEvery) {
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
	r.outcome.Verdict = r.ledger.verdict()
	r.outcome.Enqueue = quantilesOf(all.acked)
	if rejection := quantilesOf(all.refused); rejection.Count > 0 {
		r.outcome.Rejection = &rejection
	}
	r.outcome.Delivery = quantilesOf(all.delivered)
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
	return fmt.Errorf("the run ended early: %w", err)
}

// reading is every counter at one moment.
type reading struct {
	at                        time.Time
	completed, acked, refused int64
	serverCPU, generatorCPU   time.Duration
	rssBytes                  int64
	hasServer, hasGenerator   bool
	allocations               float64
}

func (r *run) read(ctx context.Context) (s reading, err error) {
	if r.Allocations != nil {
		if s.allocations, err = r.Allocations(ctx); err != nil {
			return s, err
		}
	}
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

func (r *run) readMemory() error {
	if r.Server == nil {
		return nil
	}
	rss, err := r.Server.RSSBytes()
	if err != nil {
		return err
	}
	r.peakRSSBytes = max(r.peakRSSBytes, rss)
	return nil
}
