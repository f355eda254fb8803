package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"codeq/client"
	"codeq/wire"
)

// line is a command of the kit, with the members of all kinds.
type line struct {
	Do, URL, Token, Becomes, Command, Key, Name, Reason, Note, Stream, Text string
	Task, TraceParent, TraceState, ConcurrencyKey, Queue                    string
	ID, Delivery, Window, LeaseSeconds, GraceSeconds, WaitSeconds           int
	Priority, MaxAttempts, Percent, TTLSeconds, TimeoutSeconds              int
	DelaySeconds                                                            *int
	Commands                                                                []string
	Payload, Result                                                         json.RawMessage
	Labels                                                                  map[string]string
	Tasks                                                                   []line
}

type event map[string]any

// driver is the state that commands and handlers share. Any goroutine.
type driver struct {
	mu      sync.Mutex
	out     *json.Encoder
	clients map[string]*client.Client
	tokens  map[string]string // what a token has become
	worker  *client.Worker
	stop    context.CancelCauseFunc
	grace   time.Duration
	number  int
	held    map[int]chan *line // handlers that wait for their answer
	numbers map[string]int     // of deliveries, by task and delivery
	watches map[int]context.CancelFunc
}

func main() {
	d := &driver{out: json.NewEncoder(os.Stdout), clients: map[string]*client.Client{}, tokens: map[string]string{}, held: map[int]chan *line{}, numbers: map[string]int{}, watches: map[int]context.CancelFunc{}}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		for range terms {
			d.drain()
		}
	}()
	d.say("ready", event{"sdk": "go", "version": "1", "can": []string{"progress", "output", "batch", "cancel", "watch", "notstarted", "signals", "nodes", "tokens", "artifacts"}})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if l.Do == "exit" {
			return
		}
		d.do(&l)
	}
}

// say prints an event.
func (d *driver) say(kind string, e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e["event"] = kind
	if err := d.out.Encode(e); err != nil {
		os.Exit(2)
	}
}

// do runs a command; what takes time has a goroutine of its own.
func (d *driver) do(l *line) {
	switch l.Do {
	case "worker":
		d.work(l)
	case "drain":
		d.drain()
	case "stop":
		d.stop(client.ErrStopping)
	case "complete", "nack", "fail", "throw", "release", "notstarted", "progress", "output", "upload":
		d.mu.Lock()
		answer := d.held[l.Delivery]
		d.mu.Unlock()
		answer <- l
	case "unwatch":
		d.watches[l.ID]()
	case "watch":
		ctx, cancel := context.WithCancel(context.Background())
		d.watches[l.ID] = cancel
		go d.watch(ctx, l)
	default:
		go d.produce(l)
	}
}

func (d *driver) client(l *line) *client.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := l.URL + " " + l.Token
	if d.clients[name] == nil {
		c, err := client.New(l.URL, client.WithTokens(d.token(l.Token)), client.WithNotices(func(s string) { fmt.Fprintln(os.Stderr, s) }))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		d.clients[name] = c
	}
	return d.clients[name]
}

// token returns what a token is now.
func (d *driver) token(first string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return cmp.Or(d.tokens[first], first), nil
	}
}

// work starts the worker.
func (d *driver) work(l *line) {
	var handlers client.Handlers
	for _, command := range l.Commands {
		client.Handle(&handlers, command, func(ctx context.Context, _ json.RawMessage) (map[string]any, error) { return d.handle(ctx, command) })
	}
	handlers.Use(func(next client.Handler) client.Handler {
		return func(ctx context.Context, delivery client.Delivery) client.Outcome {
			h := &held{Delivery: delivery}
			return next(context.WithValue(ctx, heldKey{}, h), delivery).With(h.artifacts...)
		}
	})
	worker, err := d.client(l).NewWorker(client.WorkerOptions{
		Commands: handlers.Commands(), Handler: handlers.Handler(), Window: l.Window, Lease: time.Duration(l.LeaseSeconds) * time.Second, WorkerID: l.Name,
		Connected: func(w *wire.Welcome) { d.say("connected", event{"session": w.SessionID.String()}) },
		Health: func(err error) {
			if err != nil {
				d.say("disconnected", event{"message": err.Error()})
			}
		},
		Ended: d.settled,
	})
	if err != nil {
		d.say("stopped", codeOf(err))
		return
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancelCause(context.Background())
	d.worker, d.grace = worker, time.Duration(l.GraceSeconds)*time.Second
	go func() {
		err := worker.Run(ctx)
		if errors.Is(err, client.ErrStopping) || errors.Is(err, client.ErrGraceOver) {
			err = nil
		}
		d.say("stopped", codeOf(err))
	}()
}

func (d *driver) drain() {
	d.worker.Drain()
	if d.grace > 0 {
		time.AfterFunc(d.grace, func() { d.stop(client.ErrGraceOver) })
	}
}

// held is a delivery that a handler has, and what it has uploaded.
type held struct {
	client.Delivery
	artifacts []wire.Artifact
}

type heldKey struct{}

func keyOf(t *wire.Task) string { return fmt.Sprint(t.ID, "/", t.Deliveries) }

// handle is the handler of every command.
func (d *driver) handle(ctx context.Context, command string) (map[string]any, error) {
	delivery := ctx.Value(heldKey{}).(*held)
	task := delivery.Task
	answers := make(chan *line, 10)
	d.mu.Lock()
	d.number++
	number := d.number
	d.held[number], d.numbers[keyOf(task)] = answers, number
	d.mu.Unlock()
	d.say("delivery", event{
		"delivery": number, "handler": command, "task": task.ID.String(), "command": task.Command, "payload": json.RawMessage(task.Payload), "attempts": task.Attempts,
		"maxAttempts": task.MaxAttempts, "number": task.Deliveries, "traceParent": task.TraceParent, "traceState": task.TraceState, "runMs": delivery.Timeout.Milliseconds(),
	})
	over := ctx.Done()
	for {
		select {
		case <-over:
			over = nil
			cause := "stopping"
			switch err := context.Cause(ctx); {
			case errors.Is(err, client.ErrLeaseLost):
				cause = "lease_lost"
			case errors.Is(err, client.ErrTimeout):
				cause = "timeout"
			}
			d.say("cancelled", event{"delivery": number, "cause": cause})
			if cause == "stopping" {
				return nil, client.ErrStopping
			}
		case l := <-answers:
			switch l.Do {
			case "progress":
				delivery.Progress(wire.ProgressRequest{Percent: l.Percent, HasPercent: true, Note: l.Note})
			case "output":
				delivery.Output(l.Stream, l.Text)
			case "upload":
				a, err := delivery.Upload(ctx, &client.File{Name: l.Name, Content: strings.NewReader(l.Text), SizeBytes: int64(len(l.Text))})
				if err != nil {
					return nil, err
				}
				delivery.artifacts = append(delivery.artifacts, *a)
				d.say("uploaded", event{"delivery": number, "name": a.Name, "sizeBytes": a.SizeBytes})
			default:
				return end(l)
			}
		}
	}
}

// end is what a handler returns for a command.
func end(l *line) (map[string]any, error) {
	err := errors.New(l.Reason)
	switch l.Do {
	case "complete":
		var result map[string]any
		return result, json.Unmarshal(l.Result, &result)
	case "nack":
		if l.DelaySeconds != nil {
			return nil, client.RetryIn(time.Duration(*l.DelaySeconds)*time.Second, err)
		}
		return nil, err
	case "fail":
		return nil, client.Permanent(err)
	case "release":
		return nil, client.ErrStopping
	case "notstarted":
		return nil, client.CannotStart(err)
	}
	panic(l.Reason)
}

// settled is called with the end of each delivery.
func (d *driver) settled(e client.Ending) {
	if !e.Started {
		return
	}
	d.mu.Lock()
	said := event{"delivery": d.numbers[keyOf(e.Task)], "outcome": e.Outcome.Kind.String(), "ok": e.Err == nil}
	d.mu.Unlock()
	for name, value := range codeOf(e.Err) {
		said[name] = value
	}
	d.say("settled", said)
}

// codeOf are the members of an error.
func codeOf(err error) event {
	var refusal *wire.Error
	var unreachable *client.UnreachableError
	e := event{}
	switch {
	case err == nil:
		return e
	case errors.Is(err, client.ErrOutcomeUnknown):
		e["code"] = "outcome_unknown"
	case errors.As(err, &refusal):
		e["code"], e["retryable"], e["retryAfterSeconds"], e["status"] = refusal.Code, refusal.Code.Retryable(), refusal.RetryAfterSeconds, refusal.Code.HTTPStatus()
		if refusal.TaskID != (wire.TaskID{}) {
			e["task"] = refusal.TaskID.String()
		}
	case errors.As(err, &unreachable):
		e["code"] = "unreachable"
	case errors.Is(err, client.ErrLeaseLost):
		e["code"] = "lease_lost"
	case errors.Is(err, client.ErrRedirected):
		e["code"] = "moved"
	case errors.Is(err, client.ErrNotCodeq):
		e["code"] = "not_codeq"
	default:
		e["code"] = "timeout"
	}
	e["message"] = err.Error()
	return e
}

// options are those of a new task.
func (l *line) options() (all []client.EnqueueOption) {
	add := func(set bool, option client.EnqueueOption) {
		if set {
			all = append(all, option)
		}
	}
	add(l.Priority != 0, client.Priority(l.Priority))
	add(l.DelaySeconds != nil, func(r *wire.EnqueueRequest) error {
		return client.Delay(time.Duration(*l.DelaySeconds) * time.Second)(r)
	})
	add(l.MaxAttempts != 0, client.MaxAttempts(l.MaxAttempts))
	add(l.TimeoutSeconds != 0, client.Timeout(time.Duration(l.TimeoutSeconds)*time.Second))
	add(l.TTLSeconds != 0, client.TTL(time.Duration(l.TTLSeconds)*time.Second))
	add(l.Key != "", client.Key(l.Key))
	add(l.ConcurrencyKey != "", client.ConcurrencyKey(l.ConcurrencyKey))
	add(l.TraceParent != "", client.Trace(l.TraceParent, l.TraceState))
	for name, value := range l.Labels {
		add(true, client.Label(name, value))
	}
	return all
}

// produce runs the command of a producer.
func (d *driver) produce(l *line) {
	wait := 30 * time.Second
	if l.WaitSeconds > 0 {
		wait = time.Duration(l.WaitSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	kind, said, err := d.answer(ctx, l, wait)
	if err != nil {
		kind, said = "error", codeOf(err)
	}
	said["id"] = l.ID
	d.say(kind, said)
}

func (d *driver) answer(ctx context.Context, l *line, wait time.Duration) (string, event, error) {
	c := d.client(l)
	id, _ := wire.ParseTaskID(l.Task) // the server refuses the zero id
	switch l.Do {
	case "enqueue":
		e, err := c.Enqueue(ctx, l.Command, l.Payload, l.options()...)
		if err != nil {
			return "", nil, err
		}
		return "enqueued", event{"task": e.TaskID.String(), "replayed": e.Replayed}, nil
	case "batch":
		var tasks []client.NewTask
		for _, t := range l.Tasks {
			tasks = append(tasks, client.NewTask{Command: t.Command, Payload: t.Payload, Options: t.options()})
		}
		answers, err := c.EnqueueBatch(ctx, tasks)
		results := []event{}
		for _, a := range answers {
			if a.Err != nil {
				results = append(results, codeOf(a.Err))
				continue
			}
			results = append(results, event{"task": a.Enqueued.TaskID.String(), "replayed": a.Enqueued.Replayed})
		}
		return "batch", event{"results": results}, err
	case "result":
		a, err := c.ResultWithin(ctx, id, wait)
		if err != nil {
			return "", nil, err
		}
		return "result", event{"status": a.Result.Status, "result": json.RawMessage(a.Result.Result), "reason": a.Result.Error}, nil
	case "task":
		t, err := c.Task(ctx, id)
		if err != nil {
			return "", nil, err
		}
		return "task", event{"status": t.Status, "attempts": t.Attempts}, nil
	case "cancel":
		t, err := c.Cancel(ctx, id)
		if err != nil {
			return "", nil, err
		}
		return "cancelled_task", event{"status": t.Status}, nil
	case "download":
		file, err := c.Artifact(ctx, id, l.Name)
		if err != nil {
			return "", nil, err
		}
		text, err := io.ReadAll(file)
		return "downloaded", event{"text": string(text)}, errors.Join(err, file.Close())
	case "token":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tokens[l.Token] = l.Becomes
		return "token", event{}, nil
	}
	return "", nil, fmt.Errorf("there is no command %q", l.Do)
}

// watch shows a queue until it is told to stop.
func (d *driver) watch(ctx context.Context, l *line) {
	for news, err := range d.client(l).Watch(ctx, client.QueueWatch{Commands: []string{l.Queue}}) {
		if err != nil {
			if ctx.Err() == nil {
				e := codeOf(err)
				e["id"] = l.ID
				d.say("error", e)
			}
			return
		}
		d.say("news", event{"id": l.ID, "kind": fmt.Sprintf("%T", news)})
	}
}
