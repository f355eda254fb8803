package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codeq/wire"
)

// defaultLease is what a worker asks for when its options name none.
const defaultLease = 30 * time.Second

// flushFor is how long a stopped worker still tries to hand in the outcomes of
// what has ended.
const flushFor = 5 * time.Second

// startWithin is how long a delivery may wait here for a handler.
const startWithin = 5 * time.Second

// The pause of a worker after work that could not be begun doubles from the
// first to the longest.
const (
	firstRest   = time.Second
	longestRest = time.Minute
)

// Delivery is one task in the hands of a worker.
type Delivery struct {
	// Task is the task as it was delivered; its payload is the JSON as posted.
	// The handler may keep it.
	Task *wire.Task
	// Lease is the lease that came with it. The worker renews it; a handler
	// has no need to.
	Lease time.Duration
	// Timeout is how long the work may take, 0 for as long as it likes. The deadline of
	// the handler's context is when that is over.
	Timeout time.Duration
}

// Handler does the work for one delivery and says how it ended. It runs on its
// own goroutine. Its context ends when the lease is lost (cause ErrLeaseLost), at
// its deadline, if the run has a limit (cause ErrTimeout), or when the worker stops
// without waiting (cause ErrStopping); it should then
// return soon, and what it returns is still handed in for what it is worth. A
// handler that panics nacks its task. Draining tells it that the worker was
// asked to end.
type Handler func(ctx context.Context, delivery Delivery) Outcome

// Ending tells how a delivery ended.
type Ending struct {
	Task    *wire.Task
	Outcome Outcome
	// Started: the handler ran, for RanFor.
	Started bool
	RanFor  time.Duration
	// DeadLetter: that was the last attempt, or the task was handed back too often.
	DeadLetter bool
	// Expired: the task had expired, so that it ended instead of being tried again.
	Expired bool
	// Wait is after how long the task is tried again after a nack, as in
	// EndAnswer.
	Wait time.Duration
	// Err is nil when the server took the outcome, its refusal when it did
	// not, and ErrLeaseLost when the delivery had been lost before.
	Err error
}

// WorkerOptions says what a worker takes and does. Commands and Handler are
// required.
type WorkerOptions struct {
	Commands []string
	Handler  Handler
	// Window is the number of handlers that run at a time, and so of tasks
	// this worker holds; 0 means 1.
	Window int
	// Lease is how long a task stays this worker's without a sign of it, in
	// whole seconds; 0 means 30 s. Heartbeats go out at a third of it.
	Lease time.Duration
	// WorkerID is a name for people.
	WorkerID string
	// Connected is called each time a session is up and subscribed.
	Connected func(welcome *wire.Welcome)
	// Health is called with the reason when the worker has lost its server:
	// the connection has ended, or nothing was heard over it for two and a half
	// pings. It is called with nil when a session is up. In between the worker
	// goes on and finds its server again by itself; whoever watches it may say
	// that it is not well.
	Health func(err error)
	// Ended is called for every delivery that has ended.
	Ended func(Ending)
}

// Worker takes tasks over a WebSocket, as many as its window, and finds its
// server again when the connection is lost; what runs meanwhile keeps running.
// Within the grace of the server the session goes on with its tasks in hand;
// after it, or at another server, a new one takes over the leases that stand.
type Worker struct {
	client   *Client
	options  WorkerOptions
	draining chan struct{}
	once     sync.Once
	events   chan func() // for the loop
}

// NewWorker checks the options and makes a worker; Run runs it, once.
func (c *Client) NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Handler == nil || len(o.Commands) == 0 {
		return nil, errors.New("a worker needs a handler and at least one command")
	}
	for _, command := range o.Commands {
		if command == wire.AllCommands {
			continue
		}
		if refusal := wire.CheckCommand(command); refusal != nil {
			return nil, refusal
		}
	}
	if o.Window == 0 {
		o.Window = wire.DefaultWindow
	}
	if o.Window < 1 || o.Window > wire.MaxWindow {
		return nil, fmt.Errorf("window must be from 1 to %d, got %d", wire.MaxWindow, o.Window)
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Lease < time.Second || o.Lease > wire.MaxLeaseSeconds*time.Second || o.Lease%time.Second != 0 {
		return nil, fmt.Errorf("lease must be whole seconds from 1s to %s, got %s",
			wire.MaxLeaseSeconds*time.Second, o.Lease)
	}
	if o.Connected == nil {
		o.Connected = func(*wire.Welcome) {}
	}
	if o.Health == nil {
		o.Health = func(error) {}
	}
	if o.Ended == nil {
		o.Ended = func(Ending) {}
	}
	return &Worker{client: c, options: o, draining: make(chan struct{}), events: make(chan func())}, nil
}

// Drain makes the worker take no more, hand back what it has not started and
// return from Run once what runs has ended and its outcomes are with the
// server. It returns at once; draining twice is harmless.
func (w *Worker) Drain() { w.once.Do(func() { close(w.draining) }) }

// Run takes tasks until the worker is drained (nil) or ctx ends (the cause of
// ctx). When ctx ends, handlers are cancelled and waited for, and their
// outcomes are handed in if that takes no longer than 5 s. Run fails at once if
// the server refuses the worker or its subscription. A server that is not there
// yet, and a connection lost later, are tried until then.
func (w *Worker) Run(ctx context.Context) error {
	redial := w.client.newRedialer(w.options.WorkerID)
	defer redial.stop()
	first, err := w.first(ctx, redial)
	if first == nil {
		return err
	}
	return w.run(ctx, redial, first)
}

// first makes the first link. A worker that is drained before has nothing to wait
// for: no link and no error.
func (w *Worker) first(ctx context.Context, redial *redialer) (*link, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.draining:
			cancel(ErrStopping)
		case <-ctx.Done():
		}
	}()
	first, err := redial.first(ctx, waitForever)
	if context.Cause(ctx) == ErrStopping {
		err = nil
	}
	return first, err
}

type drainingKey struct{}

// Draining is closed when the worker that runs a handler was told to end after
// what it has in hand: Worker.Drain was called, or the context of Work is over.
// A handler that can stop early does, and hands its task back with Stopped, or
// with the error ErrStopping; any other just goes on. In a context that is no
// handler's it is nil, which never is closed. It may be called from any
// goroutine.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(chan struct{})
	return draining
}

// runHandler runs on the goroutine of one delivery.
func (w *Worker) runHandler(ctx context.Context, l *workerLoop, d *delivery) {
	outcome := Nack("the handler ended without an outcome")
	defer func() {
		if p := recover(); p != nil {
			outcome = Nack(fmt.Sprintf("handler panicked: %v", p))
		}
		w.events <- func() { l.finish(d, outcome) }
	}()
	ctx = context.WithValue(ctx, drainingKey{}, w.draining)
	if said := w.options.Handler(ctx, d.Delivery); said.Kind != 0 {
		outcome = said
	}
}
