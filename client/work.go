package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// defaultGrace is below the 30 s that process managers commonly allow between TERM
	// and KILL.
	defaultGrace = 20 * time.Second
	// lastMoment is how long a handler may run after its context was cancelled, before
	// its task is handed back.
	lastMoment = 5 * time.Second
)

// WorkOption sets one option of Work.
type WorkOption func(*workOptions)

type workOptions struct {
	WorkerOptions
	grace time.Duration
}

// Window is how many handlers Work runs at a time, from 1 to 10,000; 1 without this option.
func Window(tasks int) WorkOption { return func(o *workOptions) { o.Window = tasks } }

// Lease is how long a task belongs to this worker without a heartbeat, for example after
// its process has died, in whole seconds; 30 s without this option. It does not bound a
// handler, because a live worker renews its leases.
func Lease(lease time.Duration) WorkOption { return func(o *workOptions) { o.Lease = lease } }

// WorkerID is the name of this worker for people; without this option it is the subject
// of the token.
func WorkerID(name string) WorkOption { return func(o *workOptions) { o.WorkerID = name } }

// Grace is how long handlers may still run after the context of Work has ended; 20 s
// without this option.
func Grace(grace time.Duration) WorkOption { return func(o *workOptions) { o.grace = grace } }

// Health calls a function with the error when the connection to the server is lost, and
// with nil when there is one again, for probes. It is called on the loop of the worker
// and must not block.
func Health(health func(err error)) WorkOption {
	return func(o *workOptions) { o.Health = health }
}

// Ended calls a function after the end of each delivery, for logs and counters. It is
// called on the loop of the worker and must not block.
func Ended(ended func(Ending)) WorkOption {
	return func(o *workOptions) { o.Ended = ended }
}

// Work takes tasks of one command and runs handler for each, on a goroutine of its own,
// until ctx ends. It decodes the payload into a T. The result must encode to a JSON object
// and completes the task; a nil result is the empty object.
//
// If handler returns an error, the task is tried again later, until its attempts are used
// up. Permanent, RetryIn and CannotStart mark errors with another effect. A panic, and a
// payload that does not decode into T, are errors as well; the notices get the stack of a
// panic.
//
// The context of a handler carries the values of ctx and the task (see TaskFrom). It is
// not cancelled when ctx ends. It is cancelled, with the cause in context.Cause, when the
// lease of the task is lost (ErrLeaseLost), at the timeout of the task or its queue, which
// is also its deadline (ErrTimeout), and when the grace is over (ErrStopping). The handler
// should then return soon. A handler that can stop earlier watches Draining and returns
// ErrStopping, which hands its task back.
//
// Work reconnects by itself while handlers run. When ctx ends, it takes no more tasks,
// hands back those that no handler has started, waits for the running handlers and returns
// nil. Handlers that still run after the grace are cancelled, their tasks are handed back,
// no attempt is counted, and the error is ErrGraceOver. A handler that still runs 5 s after
// that is left alone, and its result is ignored.
//
// If the server refuses the worker, Work returns a *wire.Error at once. If there is no
// server yet, Work waits for one, unless the client was made WithoutWaiting; the notices
// say so at once and then every 30 s.
func Work[T, R any](ctx context.Context, c *Client, command string,
	handler func(ctx context.Context, payload T) (R, error), options ...WorkOption) error {
	if err := checkResultType(reflect.TypeFor[R]()); err != nil {
		return err
	}
	return c.work(ctx, []string{command}, typed(handler), options)
}

// handlers run the handler of one Work.
type handlers struct {
	handler Handler
	notice  func(sentence string)
	// overdue is closed when the grace is over.
	overdue chan struct{}
}

func (c *Client) work(ctx context.Context, commands []string, handler Handler, options []WorkOption) error {
	h := &handlers{handler: handler, notice: c.notice, overdue: make(chan struct{})}
	o := workOptions{grace: defaultGrace}
	for _, option := range options {
		option(&o)
	}
	if o.grace < 0 {
		return fmt.Errorf("the grace must not be negative, got %s", o.grace)
	}
	o.Commands, o.Handler = commands, h.handle
	worker, err := c.NewWorker(o.WorkerOptions)
	if err != nil {
		return err
	}
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			worker.Drain()
		case <-ended:
			return
		}
		select {
		case <-time.After(o.grace):
			close(h.overdue)
			stop(ErrGraceOver)
		case <-ended:
		}
	})
	err = worker.Run(working)
	close(ended)
	watch.Wait()
	return err
}

// handle runs on the goroutine of one delivery. It waits for the handler until the worker
// ends, and at most lastMoment longer.
func (h *handlers) handle(ctx context.Context, d Delivery) Outcome {
	done := make(chan Outcome, 1)
	go h.call(context.WithValue(context.WithValue(ctx, taskKey{}, d.Task), deliveryKey{}, d), d, done)
	select {
	case outcome := <-done:
		return outcome
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), ErrStopping) {
		select {
		case outcome := <-done:
			return outcome
		case <-h.overdue:
		}
	}
	select {
	case outcome := <-done:
		return outcome
	case <-time.After(lastMoment):
		h.notice(fmt.Sprintf("the handler of task %s still runs after its context was cancelled; it is left alone", d.Task.ID))
		return Stopped()
	}
}

// call runs the handler. There is an outcome also if it panics or ends its goroutine.
func (h *handlers) call(ctx context.Context, d Delivery, done chan<- Outcome) {
	outcome := Nack("the handler ended without an outcome")
	defer func() {
		if p := recover(); p != nil {
			outcome = Nack(fmt.Sprintf("handler panicked: %v", p))
			h.notice(fmt.Sprintf("the handler of task %s panicked: %v\n%s", d.Task.ID, p, debug.Stack()))
		}
		done <- outcome
	}()
	outcome = h.handler(ctx, d)
}

type taskKey struct{}

// TaskInfo describes the task of a handler, without its payload.
type TaskInfo struct {
	ID      wire.TaskID
	Command string
	// Attempts is how many attempts have failed before this one.
	Attempts int
	// MaxAttempts is how many attempts may fail.
	MaxAttempts int
	// Delivery is the number of this delivery of the task; the first one is 1.
	Delivery int
	// TraceParent and TraceState are the trace context of the task, as in W3C Trace Context;
	// empty without one.
	TraceParent, TraceState string
}

// TaskFrom returns the task of a handler from the context that Work has given it. In any
// other context it returns the zero TaskInfo. It may be called from any goroutine.
func TaskFrom(ctx context.Context) TaskInfo {
	task, ok := ctx.Value(taskKey{}).(*wire.Task)
	if !ok {
		return TaskInfo{}
	}
	return TaskInfo{
		ID:          task.ID,
		Command:     task.Command,
		Attempts:    task.Attempts,
		MaxAttempts: task.MaxAttempts,
		Delivery:    task.Deliveries,
		TraceParent: task.TraceParent,
		TraceState:  task.TraceState,
	}
}
