package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"codeq/loadtest"
	"codeq/mailbox"
	"codeq/server"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	// messageBytes is what a message weighs in a mailbox beside its payload,
	// about what a session counts.
	messageBytes = 512
	engineTenant = wire.DefaultTenant
	// fullPause is how long a worker waits for a mailbox that is full.
	fullPause = time.Millisecond
)

// engineSite is an engine in this process, over a store in that directory.
func engineSite(dir string, shards int) (*site, error) {
	var last *engineTarget
	return &site{
		target: func() (loadtest.Target, error) {
			last = &engineTarget{dir: dir, shards: shards}
			return last, nil
		},
		server: loadtest.ProcessOf(os.Getpid()),
		figures: func(context.Context) func() []string {
			return func() []string { return last.figures }
		},
	}, nil
}

// engineTarget drives an engine without a socket in between. It serves one
// run; the next one opens the directory again.
type engineTarget struct {
	dir    string
	shards int

	workload *loadtest.Workload
	store    *store.Store
	engine   *shardactor.Engine
	workers  []*engineWorker
	figures  []string
}

// Durability implements loadtest.Target.
func (t *engineTarget) Durability() string {
	return server.Durability + ", engine in the process of the bench"
}

// Open implements loadtest.Target.
func (t *engineTarget) Open(_ context.Context, w *loadtest.Workload, newTally func() *loadtest.Tally, fail func(error)) ([]loadtest.Line, error) {
	if err := t.start(fail); err != nil {
		return nil, err
	}
	t.workload = w
	var lines []loadtest.Line
	for i := range w.Sessions {
		t.workers = append(t.workers, newEngineWorker(t.engine, byte(i+1), newTally()))
		lines = append(lines, &engineLine{engine: t.engine, workload: w, tally: newTally()})
	}
	return lines, nil
}

// Work implements loadtest.Target.
func (t *engineTarget) Work(context.Context) error {
	for _, worker := range t.workers {
		worker.seat.SetWindow(t.workload.Window)
		for shard := range t.engine.Shards() {
			m := &shardactor.Subscribe{
				Seat: worker.seat, Commands: t.workload.Commands, LeaseForMs: wire.DefaultLeaseSeconds * 1000,
			}
			if v := t.engine.Post(shard, []shardactor.Message{m}, messageBytes, mailbox.ClassKeep); v != mailbox.Accepted {
				return fmt.Errorf("subscribe at shard %d: verdict %d", shard, v)
			}
		}
	}
	return nil
}

func (t *engineTarget) start(fail func(error)) error {
	outlets := &shardactor.Outlets{}
	s, err := store.Open(store.Options{
		Dir: t.dir, Shards: t.shards, Log: zerolog.Nop(), Random: rand.Reader,
		Synced: outlets.Synced, LevelChanged: outlets.SpaceChanged,
	})
	if err != nil {
		return err
	}
	t.engine, err = shardactor.NewEngine(shardactor.EngineOptions{
		Store: s, Outlets: outlets, Random: rand.Reader, Log: zerolog.Nop(), Fatal: fail,
		StartClock: func(floorMs int64) func() int64 { return server.NewClock(floorMs, server.TimeSource{}).NowMs },
	})
	if err != nil {
		return errors.Join(fmt.Errorf("start engine: %w", err), s.Close())
	}
	t.store = s
	s.StartSyncer()
	t.engine.Start()
	return nil
}

// Close implements loadtest.Target.
func (t *engineTarget) Close() error {
	if t.store == nil {
		return nil
	}
	for shard := range t.engine.Shards() {
		f := t.engine.MailboxFigures(shard)
		t.figures = append(t.figures, fmt.Sprintf(
			"shard %d: at most %d waiting, %d refused, batches of %.1f on average and %d at most, time in mailbox %v at most",
			shard, f.HighWater, f.Refused, float64(f.Pushed)/max(float64(f.Batches), 1), f.MaxBatch, f.MaxWait))
	}
	err := t.engine.Stop()
	t.store.StopSyncer()
	for _, w := range t.workers {
		w.stop()
	}
	return errors.Join(err, t.store.Close())
}

// engineLine posts to the engine and hears its answers. The number of a task
// is its ref.
type engineLine struct {
	engine   *shardactor.Engine
	workload *loadtest.Workload

	mu    sync.Mutex
	tally *loadtest.Tally
}

// Post implements loadtest.Line. Tasks of one shard are one push, as those of
// one message are.
func (l *engineLine) Post(first uint64, count int) error {
	batches := make([][]shardactor.Message, l.engine.Shards())
	for n := first; n < first+uint64(count); n++ {
		id, shard := l.engine.Route(engineTenant, l.workload.CommandOf(n), "")
		batches[shard] = append(batches[shard], &shardactor.Enqueue{
			Asker: shardactor.Asker{Sink: l, Ref: n}, ID: id, Tenant: engineTenant,
			EnqueueRequest: wire.EnqueueRequest{
				Command: l.workload.CommandOf(n), MaxAttempts: wire.DefaultMaxAttempts, Payload: l.workload.Payload(n),
			},
		})
	}
	for shard, batch := range batches {
		if len(batch) == 0 {
			continue
		}
		bytes := len(batch) * (messageBytes + l.workload.PayloadBytes)
		if v := l.engine.Post(shard, batch, bytes, mailbox.ClassNew); v != mailbox.Accepted {
			l.refuse(batch)
		}
	}
	return nil
}

var errFull = wire.Refuse(wire.CodeOverloaded, "the mailbox of the shard is full")

func (l *engineLine) refuse(batch []shardactor.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Begin()
	for _, m := range batch {
		l.tally.Refused(m.(*shardactor.Enqueue).Ref, errFull)
	}
	l.tally.End()
}

// Deliver implements shardactor.Sink.
func (l *engineLine) Deliver(effects []shardactor.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.Begin()
	for _, e := range effects {
		switch e := e.(type) {
		case *shardactor.Enqueued:
			l.tally.Acked(e.Ref, e.TaskID)
		case *shardactor.Refused:
			l.tally.Refused(e.Ref, e.Err)
		}
	}
	l.tally.End()
}

// engineWorker completes what it is granted, on a goroutine of its own because
// Deliver must not wait for a mailbox.
type engineWorker struct {
	engine *shardactor.Engine
	seat   *shardactor.Seat
	tally  *loadtest.Tally
	wake   chan struct{}
	ending chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	waiting []shardactor.Effect
}

func newEngineWorker(e *shardactor.Engine, number byte, tally *loadtest.Tally) *engineWorker {
	w := &engineWorker{
		engine: e, tally: tally,
		wake: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}),
	}
	w.seat = e.NewSeat(shardactor.SeatOptions{
		ID: wire.SessionID{number}, Tenant: engineTenant, Subject: wire.AnonymousSubject, Sink: w,
	})
	go w.work()
	return w
}

func (w *engineWorker) stop() {
	close(w.ending)
	<-w.ended
}

// Deliver implements shardactor.Sink.
func (w *engineWorker) Deliver(effects []shardactor.Effect) {
	w.mu.Lock()
	w.waiting = append(w.waiting, effects...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *engineWorker) work() {
	defer close(w.ended)
	var effects []shardactor.Effect
	for {
		select {
		case <-w.wake:
		case <-w.ending:
			return
		}
		w.mu.Lock()
		effects, w.waiting = w.waiting, effects[:0]
		w.mu.Unlock()
		w.answer(effects)
		clear(effects)
	}
}

func (w *engineWorker) answer(effects []shardactor.Effect) {
	results := make([][]shardactor.Message, w.engine.Shards())
	w.tally.Begin()
	for _, e := range effects {
		switch e := e.(type) {
		case *shardactor.Granted:
			if m := w.result(e); m != nil {
				shard := w.engine.ShardOf(e.Task.ID)
				results[shard] = append(results[shard], m)
			}
		case *shardactor.Completed:
			w.tally.Completed(e.Ref)
			w.seat.Give(1)
		}
	}
	w.tally.End()
	for shard, batch := range results {
		w.post(shard, batch)
	}
}

func (w *engineWorker) result(e *shardactor.Granted) shardactor.Message {
	w.seat.Taken(len(e.Task.Payload), shardactor.MaxUntakenBytes)
	n, ok := w.tally.Given(e.Task.ID, e.Task.Payload)
	if !ok {
		return nil
	}
	return &shardactor.Result{
		Asker:         shardactor.Asker{Sink: w, Ref: n},
		Owner:         shardactor.Owner{Tenant: engineTenant, Subject: wire.AnonymousSubject},
		TaskRef:       wire.TaskRef{TaskID: e.Task.ID, Token: e.Token},
		ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
	}
}

// post repeats a push until there is room for it.
func (w *engineWorker) post(shard int, batch []shardactor.Message) {
	if len(batch) == 0 {
		return
	}
	timer := time.NewTimer(fullPause)
	defer timer.Stop()
	for w.engine.Post(shard, batch, len(batch)*messageBytes, mailbox.ClassKeep) == mailbox.Full {
		timer.Reset(fullPause)
		select {
		case <-timer.C:
		case <-w.ending:
			return
		}
	}
}
