package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	producers    = 32
	payloadBytes = 100
	// unfinished is the largest number of tasks that are created and not completed: with
	// more, some queues would be measured beside a growing backlog.
	unfinished = 8192
	// maxTasks is how many a run may have.
	maxTasks = 4 << 20
	// drainFor is how long the last tasks may take.
	drainFor = time.Minute
)

// ledger knows each task by its number. Any goroutine may call it.
type ledger struct {
	next, confirmed, completed, duplicates atomic.Int64
	// delivered has an entry for each task.
	delivered []atomic.Uint32
	// room has an element for each task that may be created before another is completed.
	room chan struct{}
}

// payload is that of the task with that number.
func payload(n int64) []byte {
	p := strconv.AppendInt(append(make([]byte, 0, payloadBytes), payloadHead...), n, 10)
	p = append(p, payloadMid...)
	return append(append(p, padding[:payloadBytes-len(p)-len(payloadTail)]...), payloadTail...)
}

const (
	payloadHead = `{"n":`
	payloadMid  = `,"pad":"`
	payloadTail = `"}`
)

var padding = strings.Repeat("x", payloadBytes)

// deliver notes a delivery.
func (l *ledger) deliver(payload []byte) error {
	digits, _, found := bytes.Cut(bytes.TrimPrefix(payload, []byte(payloadHead)), []byte(payloadMid))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if !found || err != nil || len(payload) != payloadBytes || n < 0 || n >= l.next.Load() {
		return fmt.Errorf("a payload that nobody posted: %.120q", payload)
	}
	if l.delivered[n].Add(1) > 1 {
		l.duplicates.Add(1)
	}
	return nil
}

// complete notes the completion of tasks.
func (l *ledger) complete(tasks int) {
	l.completed.Add(int64(tasks))
	for range tasks {
		<-l.room
	}
}

// run is one run.
type run struct {
	*settings
	way    *way
	link   link
	server *server
	ledger *ledger
	fail   context.CancelCauseFunc
}

func newRun(s *settings, w *way, l link, server *server) *run {
	return &run{settings: s, way: w, link: l, server: server, ledger: &ledger{
		delivered: make([]atomic.Uint32, maxTasks), room: make(chan struct{}, unfinished),
	}}
}

// carryOut measures, lets the last tasks end and checks that each was delivered once.
func (r *run) carryOut(ctx context.Context) (*figure, error) {
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	var working, producing sync.WaitGroup
	workers, stopWorkers := context.WithCancel(ctx)
	working.Go(func() {
		if err := r.link.work(workers, r.ledger); err != nil && workers.Err() == nil {
			r.fail(fmt.Errorf("work: %w", err))
		}
	})
	posting, stopPosting := context.WithCancel(ctx)
	for range producers {
		producing.Go(func() {
			if err := r.produce(posting); err != nil {
				r.fail(fmt.Errorf("post: %w", err))
			}
		})
	}
	f, err := r.measureServer(ctx)
	stopPosting()
	producing.Wait()
	err = errors.Join(err, r.drain(ctx))
	stopWorkers()
	working.Wait()
	return f, errors.Join(err, r.verdict())
}

func (r *run) produce(ctx context.Context) error {
	p, err := r.link.producer()
	if err != nil {
		return err
	}
	var waiting []func() error
	confirm := func(most int) error {
		for len(waiting) > most {
			if err := waiting[0](); err != nil {
				return err
			}
			waiting = waiting[1:]
			r.ledger.confirmed.Add(int64(r.way.batch))
		}
		return nil
	}
	for r.reserve(ctx) {
		first := r.ledger.next.Add(int64(r.way.batch)) - int64(r.way.batch)
		payloads := make([][]byte, r.way.batch)
		for i := range payloads {
			payloads[i] = payload(first + int64(i))
		}
		confirmed, err := p.post(payloads)
		if err != nil {
			return err
		}
		waiting = append(waiting, confirmed)
		if err := confirm(r.way.inFlight - 1); err != nil {
			return err
		}
	}
	if err := confirm(0); err != nil {
		return err
	}
	if closes, ok := p.(interface{ finish() error }); ok {
		return closes.finish()
	}
	return nil
}

// reserve waits until another batch may be created. It reports false when ctx ended.
func (r *run) reserve(ctx context.Context) bool {
	if r.ledger.next.Load() > maxTasks-producers*int64(r.way.batch) {
		r.fail(fmt.Errorf("more than %d tasks", maxTasks))
	}
	for reserved := range r.way.batch {
		select {
		case r.ledger.room <- struct{}{}:
		case <-ctx.Done():
			for range reserved {
				<-r.ledger.room
			}
			return false
		}
	}
	return ctx.Err() == nil
}

// measureServer reads all figures at both ends of the measured time.
func (r *run) measureServer(ctx context.Context) (*figure, error) {
	if err := pause(ctx, r.warmUp); err != nil {
		return nil, err
	}
	cpu, err := r.server.cpu()
	if err != nil {
		return nil, err
	}
	began, done := time.Now(), r.ledger.completed.Load()
	if err := pause(ctx, r.measure); err != nil {
		return nil, err
	}
	tasks, took := float64(r.ledger.completed.Load()-done), time.Since(began)
	after, err := r.server.cpu()
	if err != nil {
		return nil, err
	}
	mib, err := r.server.mib()
	if err != nil {
		return nil, err
	}
	if tasks == 0 {
		return nil, errors.New("no task was completed")
	}
	return &figure{tasks / took.Seconds(), float64((after - cpu).Microseconds()) / tasks, mib}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain waits for the completion of every confirmed task.
func (r *run) drain(ctx context.Context) error {
	for late := time.Now().Add(drainFor); r.ledger.completed.Load() < r.ledger.confirmed.Load() && time.Now().Before(late); {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// verdict is an error if a task was lost or delivered twice.
func (r *run) verdict() error {
	l, lost := r.ledger, int64(0)
	for n := range l.next.Load() {
		if l.delivered[n].Load() == 0 {
			lost++
		}
	}
	return wrongCounts(l.next.Load(), lost, l.duplicates.Load(), l.confirmed.Load(), l.completed.Load())
}

// wrongCounts is nil if every task was delivered once and completed.
func wrongCounts(created, lost, duplicates, confirmed, completed int64) error {
	if lost == 0 && duplicates == 0 && created == confirmed && confirmed == completed {
		return nil
	}
	return fmt.Errorf("of %d tasks %d were lost and %d delivered again; %d were confirmed and %d completed",
		created, lost, duplicates, confirmed, completed)
}
