package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codeq/wire"
)

// deliveryState is how far a delivery has come in this worker.
type deliveryState int

const (
	// arrived: the frame is here, the server does not know that yet, or
	// after a new connection this worker does not know whether the delivery is
	// still its own. It must not be started.
	arrived deliveryState = iota
	// ready: may be started when a handler is free.
	ready
	running
	// ended: has an outcome, and the server has not answered for it.
	ended
)

// delivery is one delivery from its frame to the server's answer for its outcome.
// The loop owns it; a handler's goroutine reads the embedded Delivery.
type delivery struct {
	// static
	Delivery
	ref  wire.TaskRef
	seq  uint64
	came time.Time

	// owned by the loop
	link     *link // that it came over, or of the session that still has it
	state    deliveryState
	doubtful bool // arrived over an earlier link; a heartbeat will tell
	cancel   context.CancelCauseFunc
	began    time.Time
	ranFor   time.Duration
	outcome  Outcome
	asked    wire.Ref // of the outcome's frame on the present link
	lost     error    // why the delivery is no longer this worker's, nil while it is
	unknown  bool     // the session has it and this worker never heard of it
}

// arrive takes a delivery in. One that is here already is not taken twice.
func (l *workerLoop) arrive(frame *wire.TaskFrame) {
	l.received.here = max(l.received.here, frame.Seq)
	if l.deliveries[frame.Token] != nil {
		return
	}
	d := &delivery{
		Delivery: Delivery{
			Task:    frame.Task,
			Lease:   time.Duration(frame.LeaseForMs) * time.Millisecond,
			Timeout: time.Duration(frame.RunForMs) * time.Millisecond,
		},
		ref:  wire.TaskRef{TaskID: frame.Task.ID, Token: frame.Token},
		seq:  frame.Seq,
		link: l.link,
		came: time.Now(),
	}
	l.deliveries[frame.Token] = d
	l.waiting = append(l.waiting, d)
}

// startReady starts handlers up to the window, oldest delivery first.
func (l *workerLoop) startReady() {
	if l.ending() {
		l.releaseUnstarted()
		return
	}
	if !l.restEnd.IsZero() {
		l.handBack(func(*delivery) bool { return true })
		return
	}
	kept := l.waiting[:0]
	for _, d := range l.waiting {
		if d.state != ready || l.running >= l.worker.options.Window {
			kept = append(kept, d)
			continue
		}
		var own context.Context
		own, d.cancel = d.bounded(l.handlers)
		d.state, d.began = running, time.Now()
		d.report = l.reporter(own, d)
		d.upload = func(ctx context.Context, f *File) (*wire.Artifact, error) { return l.client.Upload(ctx, d.ref, f) }
		l.running++
		go l.worker.runHandler(own, l, d)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// bounded is the context of a handler. The run has begun for the server when it
// heard that the delivery came, so the end by this clock is not after its own.
func (d *delivery) bounded(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	own, cancel := context.WithCancelCause(ctx)
	if d.Timeout == 0 {
		return own, cancel
	}
	own, stop := context.WithDeadlineCause(own, d.came.Add(d.Timeout), ErrTimeout)
	return own, func(cause error) {
		cancel(cause)
		stop()
	}
}

// stale is when the oldest delivery that is ready has waited for a handler for too
// long; zero if none is ready. Only those that are ready can be handed back.
func (l *workerLoop) stale() time.Time {
	i := slices.IndexFunc(l.waiting, func(d *delivery) bool { return d.state == ready })
	if i < 0 || l.link == nil {
		return time.Time{}
	}
	return l.waiting[i].came.Add(startWithin)
}

// handBack hands back what could be started and was not. What is not known to be
// this worker's own is not its to hand back, and without a link nothing is.
func (l *workerLoop) handBack(which func(*delivery) bool) {
	if l.link == nil {
		return
	}
	kept := l.waiting[:0]
	var back []*delivery
	for _, d := range l.waiting {
		if d.state == ready && which(d) {
			back = append(back, d)
			continue
		}
		kept = append(kept, d)
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
	for _, d := range back {
		l.finish(d, untouched())
	}
}

// releaseUnstarted hands back what nobody has begun. Without a link it is left
// to the server, which misses this worker soon enough.
func (l *workerLoop) releaseUnstarted() {
	for _, d := range l.waiting {
		if l.link == nil {
			l.forget(d)
			continue
		}
		l.finish(d, untouched())
	}
	l.waiting = nil
}

// untouched hands back what no handler has seen.
func untouched() Outcome {
	return Outcome{Kind: Released, why: wire.ReleaseRequest{NotStarted: true}}
}

// finish gives a delivery its outcome and hands it in.
func (l *workerLoop) finish(d *delivery, outcome Outcome) {
	if outcome.Kind == Released && l.ending() {
		outcome.why.Stopping = true
	}
	if d.state == running {
		l.pace(d, outcome)
		l.running--
		d.ranFor = time.Since(d.began)
		d.cancel(nil)
	}
	d.state, d.outcome = ended, outcome
	l.handIn(d)
}

// pace makes the worker rest after work that could not be begun. The server is
// told before the task goes back, so that it does not send it here again.
func (l *workerLoop) pace(d *delivery, outcome Outcome) {
	switch {
	case !outcome.why.NotStarted:
		l.unbegun = 0
	case l.restEnd.IsZero() && !l.ending():
		pause := min(firstRest<<min(l.unbegun, 16), longestRest)
		l.client.notice(fmt.Sprintf("task %s could not be begun: %s; taking nothing for %s", d.Task.ID, outcome.Reason, pause))
		l.unbegun++
		l.restEnd = time.Now().Add(pause)
		l.stateWindow()
	}
}

// handIn sends an outcome, or leaves it for the next link.
func (l *workerLoop) handIn(d *delivery) {
	if l.link == nil {
		return
	}
	d.asked = l.ask(question{outcome: d})
	l.out = append(l.out, d.outcome.frame(d.asked, d.ref))
}

// handInAll sends every outcome that is not on its way over this link.
func (l *workerLoop) handInAll() {
	for _, d := range l.deliveries {
		if d.state == ended && !d.asked.Present {
			l.handIn(d)
		}
	}
}

// outcomeTaken ends a delivery with the server's answer for its outcome, which is a refusal
// if said.Err is set, and tells the caller's hook.
func (l *workerLoop) outcomeTaken(d *delivery, said Ending) {
	l.forget(d)
	if !d.unknown {
		said.Task, said.Outcome, said.Started, said.RanFor = d.Task, d.outcome, !d.began.IsZero(), d.ranFor
		if said.Err != nil && d.lost != nil {
			said.Err = d.lost
		}
		l.worker.options.Ended(said)
	}
	l.stateWindow()
}

// lose notes that a delivery is no longer this worker's. A running handler is
// told; its outcome is handed in all the same, because only an answer gives
// the unit of the window back, and a completion may still count.
func (l *workerLoop) lose(d *delivery, why string) {
	if d.lost != nil {
		return
	}
	d.lost = fmt.Errorf("%w: %s", ErrLeaseLost, why)
	switch d.state {
	case running:
		if why == wire.RevokedTimeout {
			d.cancel(ErrTimeout) // before its own deadline, by the clock of the server
		}
		d.cancel(d.lost)
	case arrived, ready:
		l.waiting = slices.DeleteFunc(l.waiting, func(other *delivery) bool { return other == d })
		if d.link == l.link {
			l.finish(d, Release())
			return
		}
		l.forget(d)
		l.stateWindow()
	}
}

// forget removes a delivery that needs nothing more.
func (l *workerLoop) forget(d *delivery) {
	delete(l.deliveries, d.ref.Token)
	if d.link != l.link {
		l.carried--
	}
}
