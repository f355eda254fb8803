package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codeq/wire"
)

// defaultLease is the lease of a worker whose options name none.
const defaultLease = 30 * time.Second

// flushFor is how long a stopped worker still tries to send outcomes.
const flushFor = 5 * time.Second

// startWithin is how long a delivery may wait for a handler before it is handed back.
const startWithin = 5 * time.Second

// The pause of a worker after work that could not start doubles from the first to the
// longest.
const (
	firstRest   = time.Second
	longestRest = time.Minute
)

// Delivery is one task that the server has given to a worker.
type Delivery struct {
	// Task is the task; its payload is the JSON as posted. The handler may keep it.
	Task *wire.Task
	// Lease is the length of the lease. The worker renews it.
	Lease time.Duration
	// Timeout is how long the delivery may run; 0 is no limit. The context of the handler
	// has the deadline.
	Timeout time.Duration

	// report sends a frame about the delivery; nil outside a worker.
	report func(frame func(wire.TaskRef) wire.ClientFrame)
	// upload sends a file of the delivery; nil outside a worker.
	upload func(ctx context.Context, f *File) (*wire.Artifact, error)
}

// Handler does the work for one delivery and returns its outcome. It runs on a goroutine
// of its own. Its context is cancelled, with the cause in context.Cause, when the lease is
// lost (ErrLeaseLost), at the timeout (ErrTimeout), and when the worker stops without
// waiting (ErrStopping). The handler should then return soon; its outcome is still sent,
// because a completion may still count. A panic is a nack. Draining tells the handler that
// the worker is to end.
type Handler func(ctx context.Context, delivery Delivery) Outcome

// Ending describes a delivery that has ended.
type Ending struct {
	Task    *wire.Task
	Outcome Outcome
	// Started: the handler ran.
	Started bool
	// RanFor is how long the handler ran.
	RanFor time.Duration
	// DeadLetter: that was the last attempt, or the task was released too often.
	DeadLetter bool
	// Expired: the task had expired, and is not tried again.
	Expired bool
	// Wait is the time until the next attempt after a nack, as in EndAnswer.
	Wait time.Duration
	// Err is nil if the server accepted the outcome. It wraps ErrLeaseLost if the delivery
	// was lost before; otherwise it is the refusal.
	Err error
}

// WorkerOptions are the options of a Worker. Commands and Handler are required. The hooks
// are called on the loop of the worker and must not block.
type WorkerOptions struct {
	// Commands are the commands of the tasks; wire.AllCommands means all that the token
	// allows.
	Commands []string
	Handler  Handler
	// Window is the largest number of tasks that the worker has at a time, and so of
	// handlers that run, from 1 to 10,000; 0 means 1.
	Window int
	// Lease is how long a task belongs to this worker without a heartbeat, in whole
	// seconds from 1 s to 12 h; 0 means 30 s. A heartbeat goes out each third of it.
	Lease time.Duration
	// WorkerID is the name of the worker for people.
	WorkerID string
	// Connected is called each time a session is open and the worker has subscribed.
	Connected func(welcome *wire.Welcome)
	// Health is called with the error when the worker has lost its server: the connection
	// has ended, or nothing came over it for two and a half pings. It is called with nil
	// when there is a session again. The worker reconnects by itself.
	Health func(err error)
	// Ended is called after the end of each delivery.
	Ended func(Ending)
}

// Worker takes tasks over a WebSocket, up to its window, and reconnects by itself while
// its handlers run. Within the resume grace of the server the session goes on with its
// tasks. After it, or at another server, a new session takes over the leases that still
// hold. Make it with Client.NewWorker. Its methods may be called from any goroutine.
type Worker struct {
	client   *Client
	options  WorkerOptions
	draining chan struct{}
	once     sync.Once
	events   chan func() // for the loop
}

// NewWorker makes a worker, or returns an error if the options are wrong. It dials
// nothing.
func (c *Client) NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Handler == nil || len(o.Commands) == 0 {
		return nil, errors.New("a worker needs a handler and at least one command")
	}
	for _, command := range o.Commands {
		if command == wire.AllCommands {
			continue
		}
		if refusal := wire.CheckOwnCommand(command); refusal != nil {
			return nil, refusal
		}
	}
	if o.Window == 0 {
		o.Window = wire.DefaultWindow
	}
	if o.Window < 1 || o.Window > wire.MaxWindow {
		return nil, fmt.Errorf("the window must be from 1 to %d, got %d", wire.MaxWindow, o.Window)
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Lease < time.Second || o.Lease > wire.MaxLeaseSeconds*time.Second || o.Lease%time.Second != 0 {
		return nil, fmt.Errorf("the lease must be whole seconds from 1s to %s, got %s",
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

// Drain makes the worker take no more tasks and hand back those that no handler has
// started. Run returns when the running handlers have ended and the server has their
// outcomes. Drain returns at once and may be called twice.
func (w *Worker) Drain() { w.once.Do(func() { close(w.draining) }) }

// Run takes tasks until the worker is drained, and then returns nil, or until ctx ends,
// and then returns the cause of ctx. When ctx ends, Run cancels the handlers, waits for
// them, and tries for up to 5 s to send their outcomes. If the server refuses the worker
// or its subscription, the error is a *wire.Error. Run waits for a server that is not
// there and reconnects by itself. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	redial := w.client.newRedialer(sessionDialect, w.options.WorkerID)
	defer redial.stop()
	first, err := w.first(ctx, redial)
	if first == nil {
		return err
	}
	return w.run(ctx, redial, first)
}

// first makes the first link. If the worker is drained before, there is no link and no
// error.
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

// Draining returns the channel that is closed when the worker of a handler begins to
// drain: Worker.Drain was called, or the context of Work has ended. A handler that can stop
// early then hands its task back, with the outcome Stopped or the error ErrStopping; any
// other handler goes on. In a context that is not a handler's the channel is nil. Draining
// may be called from any goroutine.
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
