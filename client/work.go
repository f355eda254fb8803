package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// defaultGrace is below the time that process managers commonly allow
	// between asking and killing.
	defaultGrace = 20 * time.Second
	// lastMoment is how long a handler may take to heed its cancelled context
	// before its task is handed back without it.
	lastMoment = 5 * time.Second
)

// WorkOption changes one thing about Work.
type WorkOption func(*workOptions)

type workOptions struct {
	WorkerOptions
	grace time.Duration
}

// Window is how many handlers Work runs at a time; 1 without this option.
func Window(tasks int) WorkOption { return func(o *workOptions) { o.Window = tasks } }

// Lease is how long a task stays this worker's after its process has died, in
// whole seconds; 30 s without this option. It does not bound a handler: while
// the worker lives its leases are renewed.
func Lease(lease time.Duration) WorkOption { return func(o *workOptions) { o.Lease = lease } }

// WorkerID is a name of this worker for people.
func WorkerID(name string) WorkOption { return func(o *workOptions) { o.WorkerID = name } }

// Grace is how long handlers may go on after the context of Work has ended;
// 20 s without this option.
func Grace(grace time.Duration) WorkOption { return func(o *workOptions) { o.grace = grace } }

// Health has a function called with the reason when the connection to the
// server is lost or deaf, and with nil when a session is up, for probes. It is
// called from the worker's loop and must not block.
func Health(health func(err error)) WorkOption {
	return func(o *workOptions) { o.Health = health }
}

// Ended has a function called for every task that has ended here, for logs
// and counters. It is called from the worker's loop and must not block.
func Ended(settled func(Ending)) WorkOption {
	return func(o *workOptions) { o.Ended = settled }
}

// Work takes the tasks of one command and runs handler for each, until ctx
// ends. The payload is decoded into a T, and the result, which must encode to a
// JSON object, completes the task; a nil result is the empty object.
//
// An error has the task tried again later, until its attempts are used up;
// Permanent and RetryIn say otherwise. So does a panic, which is passed to the
// notices with its stack, and a payload that does not fit T.
//
// The context of a handler carries the values of ctx and the task's facts
// (TaskFrom). It is not cancelled when ctx ends, but when the lease of its task
// is lost (context.Cause is ErrLeaseLost), at its deadline, which it has if the task or
// its queue has a timeout (ErrTimeout), or when the grace is over (ErrStopping); a
// handler should then return soon.
//
// A handler that can stop early watches Draining, and returns ErrStopping to hand
// its task back. One that could not even begin, for a reason that is not the
// task's, returns CannotStart.
//
// A connection that is lost is made again, with a jitter, while the handlers go
// on. When ctx ends, Work takes no more tasks, hands back what it has not begun
// and waits for what runs. Then it returns nil. What still runs after the grace
// is cancelled and handed back, at no cost to its attempts, and the error is
// ErrGraceOver; a handler that does not heed its context within 5 s goes on
// alone, and what it returns counts for nothing.
//
// Work returns an error at once if the server refuses what is asked of it. One that
// is not there yet is waited for, and the notices say so, at once and each 30 s; a
// client made with WithoutWaiting does not wait.
func Work[T, R any](ctx context.Context, c *Client, command string,
	handler func(ctx context.Context, payload T) (R, error), options ...WorkOption) error {
	if err := checkResultType(reflect.TypeFor[R]()); err != nil {
		return err
	}
	return c.work(ctx, command, func(ctx context.Context, d Delivery) Outcome {
		var payload T
		if err := json.Unmarshal(d.Task.Payload, &payload); err != nil {
			return Nack("the payload does not fit the handler: " + err.Error())
		}
		result, err := handler(ctx, payload)
		return outcomeOf(ctx, result, err)
	}, options)
}

// handlers run the handler of one Work.
type handlers struct {
	handler Handler
	notice  func(sentence string)
	// overdue is closed when the grace is over.
	overdue chan struct{}
}

func (c *Client) work(ctx context.Context, command string, handler Handler, options []WorkOption) error {
	h := &handlers{handler: handler, notice: c.notice, overdue: make(chan struct{})}
	o := workOptions{grace: defaultGrace}
	for _, option := range options {
		option(&o)
	}
	if o.grace < 0 {
		return fmt.Errorf("the grace must not be negative, got %s", o.grace)
	}
	o.Commands, o.Handler = []string{command}, h.handle
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

// handle runs on the goroutine that the worker gives to a delivery, and waits
// there for the handler no longer than the worker itself lasts.
func (h *handlers) handle(ctx context.Context, d Delivery) Outcome {
	done := make(chan Outcome, 1)
	go h.call(context.WithValue(ctx, taskKey{}, d.Task), d, done)
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
		h.notice(fmt.Sprintf("the handler of task %s does not heed its context and is left alone", d.Task.ID))
		return Stopped()
	}
}

// call runs the handler. Whatever it does, there is an outcome.
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

// TaskInfo is what a handler may want to know of its task besides the payload.
type TaskInfo struct {
	ID      wire.TaskID
	Command string
	// Attempts is how many executions have failed before this one, MaxAttempts
	// how many may.
	Attempts    int
	MaxAttempts int
	// Delivery counts the times the task was handed to a worker; it is 1 the
	// first time.
	Delivery int
}

// TaskFrom is the task of a handler that Work runs, from the handler's context.
// In any other context it is the zero TaskInfo.
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
	}
}
