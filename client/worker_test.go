package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// shift is a worker under test: its handlers start and end when the test says.
type shift struct {
	*stage
	worker  *Worker
	ctx     context.Context
	stop    context.CancelCauseFunc
	started chan *handling
	aside   map[byte]*handling // started, not looked at yet
	settled []Ending
	ended   chan error
	failed  chan struct{} // closed when the test has failed
}

// handling is one run of the handler.
type handling struct {
	name byte
	ctx  context.Context
	end  chan Outcome
}

// cancelled waits for the handler's context to end and returns the cause.
func (h *handling) cancelled() error {
	<-h.ctx.Done()
	return context.Cause(h.ctx)
}

func newShift(t *testing.T, window int) *shift {
	t.Helper()
	s := &shift{stage: newStage(t), started: make(chan *handling, 100), aside: map[byte]*handling{}, ended: make(chan error, 1), failed: make(chan struct{})}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	handler := func(ctx context.Context, d Delivery) Outcome {
		h := &handling{name: d.Task.ID[15], ctx: ctx, end: make(chan Outcome)}
		s.started <- h
		select {
		case outcome := <-h.end:
			return outcome
		case <-s.failed:
			return Release()
		}
	}
	worker, err := s.client.NewWorker(WorkerOptions{
		Commands: []string{"hash"}, Window: window, WorkerID: "ada", Handler: handler,
		Ended: func(b Ending) { s.settled = append(s.settled, b) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.worker = worker
	go func() { s.ended <- worker.Run(s.ctx) }()
	t.Cleanup(func() {
		if t.Failed() { // else the worker would go on for ever
			close(s.failed)
			s.stop(errTest)
		}
	})
	return s
}

// running waits for the handler of that task to start.
func (s *shift) running(name byte) *handling {
	s.t.Helper()
	for s.aside[name] == nil {
		select {
		case h := <-s.started:
			s.aside[h.name] = h
		case <-time.After(time.Hour):
			s.t.Fatalf("the handler of %c did not start within an hour", name)
		}
	}
	h := s.aside[name]
	delete(s.aside, name)
	return h
}

// idle fails if a handler has started that was not looked at.
func (s *shift) idle() {
	s.t.Helper()
	synctest.Wait()
	if len(s.aside) > 0 || len(s.started) > 0 {
		s.t.Fatalf("%d handlers started", len(s.aside)+len(s.started))
	}
}

// over waits for Run to return.
func (s *shift) over() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Hour):
		s.t.Fatal("Run did not return within an hour")
		return nil
	}
}

// goHome ends a shift whose worker has nothing in hand.
func (s *shift) goHome(p *peer) {
	s.t.Helper()
	s.worker.Drain()
	w := next[*wire.Window](p)
	if w.Size != 0 {
		s.t.Fatalf("window %d stated at the end, want 0", w.Size)
	}
	p.ok(w.Ref)
	if err := s.over(); err != nil {
		s.t.Fatalf("Run returned %v after a drain, want nil", err)
	}
	p.closed()
}

func wantResult(t *testing.T, p *peer, name byte, body string) *wire.Result {
	t.Helper()
	f := next[*wire.Result](p)
	if f.TaskRef != ref(name) || string(f.ResultRequest.Result) != body {
		t.Fatalf("got result %s of %v, want %s of %c", f.ResultRequest.Result, f.TaskRef, body, name)
	}
	return f
}

func TestWorkerSubscribesWithWindowAndLeaseAndEndsAfterDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 8)
		p := s.arrives()
		if got := p.request.Header.Get("Sec-Websocket-Protocol"); got != wire.Subprotocol {
			t.Errorf("subprotocol %q asked for, want %q", got, wire.Subprotocol)
		}
		f := p.subscribed()
		if !slices.Equal(f.Commands, []string{"hash"}) || f.Window != 8 || f.LeaseSeconds != 30 {
			t.Errorf("subscribed as %+v, want hash with window 8 and 30 s", f)
		}
		s.goHome(p)
	})
}

func TestWorkerConfirmsBeforeItStartsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		release := s.holdWrites()
		p.push('a')
		s.idle() // the confirmation cannot leave, so nothing starts
		release()
		if f := next[*wire.Received](p); f.Through != 1 {
			t.Errorf("received through %d, want 1", f.Through)
		}
		s.running('a').end <- Complete([]byte(`{"a":1}`))
		p.ok(wantResult(t, p, 'a', `{"a":1}`).Ref)
		s.goHome(p)
		if len(s.settled) != 1 || s.settled[0].Err != nil || !s.settled[0].Started {
			t.Errorf("settled %+v, want one without error", s.settled)
		}
	})
}

func TestWorkerStartsOnlyWhatTheConfirmationThatHasLeftCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		releaseFirst := s.holdWrites()
		p.push('a')
		synctest.Wait() // the confirmation of a is at the wire
		releaseSecond := s.holdWrites()
		p.push('b')
		synctest.Wait()
		releaseFirst()
		if f := next[*wire.Received](p); f.Through != 1 {
			t.Errorf("received through %d, want 1", f.Through)
		}
		a := s.running('a')
		s.idle() // b has arrived, but the server does not know
		releaseSecond()
		if f := next[*wire.Received](p); f.Through != 2 {
			t.Errorf("received through %d, want 2", f.Through)
		}
		s.running('b').end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		a.end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		s.goHome(p)
	})
}

func TestWorkerRunsNoMoreHandlersThanItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b', 'c')
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		s.idle()
		a.end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'a', `{}`).Ref)
		c := s.running('c')
		b.end <- Fail("no")
		f := next[*wire.Result](p)
		if f.Status != wire.StatusFailed || f.Error != "no" {
			t.Errorf("got %+v, want FAILED with no", f)
		}
		p.ok(f.Ref)
		c.end <- NackAfter("later", 1500*time.Millisecond)
		n := next[*wire.Nack](p)
		if n.Reason != "later" || n.DelaySeconds != 2 {
			t.Errorf("got %+v, want later after 2 s", n)
		}
		p.send(&wire.OK{Ref: n.Ref, NackStatus: wire.NackRequeued, DelaySeconds: 1})
		s.goHome(p)
		var waits []time.Duration
		for _, settled := range s.settled {
			waits = append(waits, settled.Wait)
		}
		if want := []time.Duration{0, 0, time.Second}; !slices.Equal(waits, want) {
			t.Errorf("the tasks wait for %v, want %v", waits, want)
		}
	})
}

// The context of a handler ends with its run, by the worker's own clock, and what the
// handler says then is handed in.
func TestU04HandlerHasTheDeadlineOfItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		came := time.Now()
		p.seq += 2
		p.send(&wire.TaskFrame{Seq: 1, Token: token('a'), LeaseForMs: 30_000, RunForMs: 2000, Task: task('a')},
			&wire.TaskFrame{Seq: 2, Token: token('b'), LeaseForMs: 30_000, Task: task('b')})
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		if at, ok := a.ctx.Deadline(); !ok || at.Sub(came) != 2*time.Second {
			t.Errorf("the deadline is %v, %v after the task came", ok, at.Sub(came))
		}
		if _, ok := b.ctx.Deadline(); ok {
			t.Error("a run without a limit has a deadline")
		}
		if cause := a.cancelled(); !errors.Is(cause, ErrTimeout) || time.Since(came) != 2*time.Second {
			t.Errorf("ended by %v after %v", cause, time.Since(came))
		}
		a.end <- Nack("late")
		f := next[*wire.Nack](p)
		p.send(&wire.OK{Ref: f.Ref, NackStatus: wire.NackExpired})
		b.end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		s.goHome(p)
		if !s.settled[0].Expired || s.settled[0].DeadLetter || s.settled[1].Expired {
			t.Errorf("settled as %+v", s.settled)
		}
	})
}

func TestWorkerTakesTheSameDeliveryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		h := s.running('a')
		p.push('a')
		if f := next[*wire.Received](p); f.Through != 2 {
			t.Errorf("received through %d, want 2", f.Through)
		}
		s.idle()
		h.end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		s.goHome(p)
	})
}

func TestWorkerHeartbeatsAtAThirdOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		began := time.Now()
		for range 3 {
			f := next[*wire.Heartbeat](p)
			if len(f.Tasks) != 2 || !slices.Contains(f.Tasks, ref('a')) || !slices.Contains(f.Tasks, ref('b')) {
				t.Errorf("heartbeat names %v, want a and b", f.Tasks)
			}
			if f.ExtendSeconds != 30 {
				t.Errorf("extend by %d s, want 30", f.ExtendSeconds)
			}
			p.send(&wire.OK{Ref: f.Ref, IsHeartbeat: true})
		}
		if took := time.Since(began); took > 31*time.Second {
			t.Errorf("three heartbeats took %s, want at most 30 s", took)
		}
		a.end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		b.end <- Release()
		p.ok(next[*wire.Release](p).Ref)
		s.goHome(p)
	})
}

func TestWorkerCancelsTheHandlerOfALostLeaseAndStillAnswers(t *testing.T) {
	lose := map[string]func(p *peer){
		"lost in the answer to a heartbeat": func(p *peer) {
			f := next[*wire.Heartbeat](p)
			p.send(&wire.OK{Ref: f.Ref, IsHeartbeat: true, Lost: []wire.TaskRef{ref('a')}})
		},
		"revoked": func(p *peer) {
			p.send(&wire.Revoked{TaskRef: ref('a'), Reason: wire.RevokedExpired})
		},
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShift(t, 1)
				p := s.arrives()
				p.subscribed()
				p.push('a')
				next[*wire.Received](p)
				h := s.running('a')
				lose(p)
				if cause := h.cancelled(); !errors.Is(cause, ErrLeaseLost) {
					t.Errorf("cause is %v, want ErrLeaseLost", cause)
				}
				h.end <- Nack("stopped")
				// The answer is what gives the unit of the window back.
				p.refuse(next[*wire.Nack](p).Ref, wire.CodeLeaseLost)
				s.goHome(p)
				if len(s.settled) != 1 || !errors.Is(s.settled[0].Err, ErrLeaseLost) {
					t.Errorf("settled %+v, want ErrLeaseLost", s.settled)
				}
			})
		})
	}
}

func TestWorkerBringsRunningTasksAndLostResultsToTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 3)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		a.end <- Complete([]byte(`{"a":1}`))
		wantResult(t, p, 'a', `{"a":1}`) // and no answer
		p.cut()

		p = s.arrives()
		again := wantResult(t, p, 'a', `{"a":1}`)
		beat := next[*wire.Heartbeat](p)
		if !slices.Equal(beat.Tasks, []wire.TaskRef{ref('b')}) {
			t.Errorf("heartbeat names %v, want b", beat.Tasks)
		}
		if f := p.subscribed(); f.Window != 1 {
			t.Errorf("window %d beside two tasks of the old session, want 1", f.Window)
		}
		p.send(&wire.OK{Ref: beat.Ref, IsHeartbeat: true})
		p.ok(again.Ref)
		if w := next[*wire.Window](p); w.Size != 2 {
			t.Errorf("window %d after the first of them, want 2", w.Size)
		} else {
			p.ok(w.Ref)
		}
		b.end <- Complete([]byte(`{"b":1}`))
		p.ok(wantResult(t, p, 'b', `{"b":1}`).Ref)
		if w := next[*wire.Window](p); w.Size != 3 {
			t.Errorf("window %d after the second, want 3", w.Size)
		} else {
			p.ok(w.Ref)
		}
		s.goHome(p)
		if len(s.settled) != 2 {
			t.Errorf("settled %d deliveries, want 2", len(s.settled))
		}
	})
}

func TestWorkerStartsWhatItBroughtAlongOnlyWhenTheServerSaysItIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b', 'c')
		next[*wire.Received](p)
		a := s.running('a')
		p.cut()
		a.end <- Complete([]byte(`{}`))
		synctest.Wait()

		p = s.arrives()
		result := wantResult(t, p, 'a', `{}`)
		beat := next[*wire.Heartbeat](p)
		p.subscribed()
		p.ok(result.Ref)
		s.idle()
		p.send(&wire.OK{Ref: beat.Ref, IsHeartbeat: true, Lost: []wire.TaskRef{ref('b')}})
		c := s.running('c')
		s.idle() // b was lost
		c.end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'c', `{}`).Ref)
		w := next[*wire.Window](p)
		if w.Size != 1 {
			t.Errorf("window %d, want 1", w.Size)
		}
		p.ok(w.Ref)
		s.goHome(p)
	})
}

func TestWorkerHandsBackWhatItHasNotStartedWhenItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a := s.running('a')
		s.worker.Drain()
		w := next[*wire.Window](p)
		if w.Size != 0 {
			t.Errorf("window %d, want 0", w.Size)
		}
		if f := next[*wire.Release](p); f.TaskRef != ref('b') {
			t.Errorf("released %v, want b", f.TaskRef)
		} else {
			p.ok(f.Ref)
		}
		p.push('c') // was on its way
		next[*wire.Received](p)
		if f := next[*wire.Release](p); f.TaskRef != ref('c') {
			t.Errorf("released %v, want c", f.TaskRef)
		} else {
			p.ok(f.Ref)
		}
		a.end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'a', `{}`).Ref)
		synctest.Wait()
		select {
		case err := <-s.ended:
			t.Errorf("Run returned %v while the server may still send tasks", err)
		default:
		}
		p.ok(w.Ref)
		if err := s.over(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		p.closed()
		s.idle()
	})
}

func TestWorkerCancelsHandlersWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		h := s.running('a')
		s.stop(errTest)
		if cause := h.cancelled(); !errors.Is(cause, ErrStopping) {
			t.Errorf("cause is %v, want ErrStopping", cause)
		}
		p.ok(next[*wire.Window](p).Ref)
		h.end <- Nack("stopped")
		p.ok(next[*wire.Nack](p).Ref)
		if err := s.over(); !errors.Is(err, errTest) {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
		p.closed()
	})
}

func TestWorkerGivesUpHandingInAfterFiveSecondsWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		h := s.running('a')
		s.unreachable.Store(true)
		p.cut()
		began := time.Now()
		s.stop(errTest)
		h.end <- Nack("stopped")
		err := s.over()
		if !errors.Is(err, errTest) || !strings.Contains(err.Error(), "1 tasks") {
			t.Errorf("Run returned %v, want the cause and the number of outcomes", err)
		}
		if took := time.Since(began); took < flushFor || took > flushFor+time.Second {
			t.Errorf("it took %s, want %s", took, flushFor)
		}
	})
}

func TestU09WorkerWithoutWaitingFailsAtOnceWhenNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, WithoutWaiting())
		s.unreachable.Store(true)
		w, err := s.client.NewWorker(WorkerOptions{Commands: []string{"a"}, Handler: panicking})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Run(context.Background())
		var nobody *UnreachableError
		if !errors.As(err, &nobody) || !errors.Is(err, errTest) {
			t.Fatalf("Run returned %v, want an UnreachableError", err)
		}
		want := `no codeq server answers at http://queue.test:8080: start one with "codeq serve", or give another address (--url)`
		if err.Error() != want {
			t.Errorf("it says %q, want %q", err, want)
		}
	})
}

func panicking(context.Context, Delivery) Outcome { panic("on purpose") }

func TestWorkerEndsWithTheRefusalOfItsSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.refuse(next[*wire.Subscribe](p).Ref, wire.CodeForbidden)
		w := next[*wire.Window](p)
		p.ok(w.Ref)
		var refusal *wire.Error
		if err := s.over(); !errors.As(err, &refusal) || refusal.Code != wire.CodeForbidden {
			t.Errorf("Run returned %v, want forbidden", err)
		}
		p.closed()
	})
}

func TestWorkerSubscribesAgainWhenItIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.refuse(next[*wire.Subscribe](p).Ref, wire.CodeOverloaded)
		p.subscribed()
		s.goHome(p)
	})
}

func TestWorkerHandsAnOutcomeInAgainWhenItIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		s.running('a').end <- Complete([]byte(`{}`))
		for range 3 {
			p.refuse(wantResult(t, p, 'a', `{}`).Ref, wire.CodeOverloaded)
		}
		p.ok(wantResult(t, p, 'a', `{}`).Ref)
		s.goHome(p)
	})
}

func TestWorkerNacksWhatTheServerDoesNotTakeAsAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		s.running('a').end <- Complete([]byte(`{}`))
		p.refuse(wantResult(t, p, 'a', `{}`).Ref, wire.CodeInvalidResult)
		n := next[*wire.Nack](p)
		if !strings.Contains(n.Reason, "because of the test") {
			t.Errorf("reason %q does not say what the server said", n.Reason)
		}
		p.ok(n.Ref)
		s.goHome(p)
	})
}

func TestWorkerNacksForAHandlerThatPanicsOrReturnsNothing(t *testing.T) {
	for want, handler := range map[string]Handler{
		"handler panicked: on purpose":          panicking,
		"the handler ended without an outcome":  func(context.Context, Delivery) Outcome { return Outcome{} },
		"the result is JSON, but not an object": func(context.Context, Delivery) Outcome { return Complete([]byte(`[1]`)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			w, err := s.client.NewWorker(WorkerOptions{Commands: []string{"hash"}, Handler: handler})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- w.Run(context.Background()) }()
			p := s.arrives()
			p.subscribed()
			p.push('a')
			next[*wire.Received](p)
			n := next[*wire.Nack](p)
			if n.Reason != want || n.DelaySeconds >= 0 {
				t.Errorf("nacked with %q and %d s, want %q and no delay", n.Reason, n.DelaySeconds, want)
			}
			p.ok(n.Ref)
			w.Drain()
			p.ok(next[*wire.Window](p).Ref)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			p.closed()
		})
	}
}

func TestWorkerLooksForItsServerUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		s.unreachable.Store(true)
		began, dials := time.Now(), s.dials.Load()
		p.cut()
		time.Sleep(10 * time.Minute)
		tried := s.dials.Load() - dials
		s.unreachable.Store(false)
		p = s.arrives()
		p.subscribed()
		if back := time.Since(began) - 10*time.Minute; back > 2*maxBackoff {
			t.Errorf("connected %s after the server was back", back)
		}
		if tried < 60 || tried > 400 {
			t.Errorf("%d attempts in ten minutes", tried)
		}
		began = time.Now()
		p.cut()
		p = s.arrives()
		p.subscribed()
		if back := time.Since(began); back > 2*firstBackoff {
			t.Errorf("the next time it was connected after %s only", back)
		}
		s.goHome(p)
	})
}

func TestWorkerThatDrainsWithoutAConnectionHandsInBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a := s.running('a')
		s.unreachable.Store(true)
		p.cut()
		s.worker.Drain()
		a.end <- Complete([]byte(`{}`))
		time.Sleep(time.Minute)
		s.unreachable.Store(false)
		p = s.arrives()
		result := wantResult(t, p, 'a', `{}`)
		if f := p.subscribed(); f.Window != 0 {
			t.Errorf("window %d of a worker that drains, want 0", f.Window)
		}
		p.ok(result.Ref)
		if err := s.over(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
		p.closed()
		s.idle()
	})
}

func TestWorkerThatDrainsWithoutAConnectionAndHasNothingInHandEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.subscribed()
		s.unreachable.Store(true)
		p.cut()
		s.worker.Drain()
		if err := s.over(); err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	})
}

// A worker that is told to end says what it still waits for, and why.
func TestN13WorkerSaysWhichOutcomesTheServerDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notices []string
		s := newShift(t, 1)
		s.client.notice = func(n string) { notices = append(notices, n) }
		p := s.arrives()
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		s.running('a').end <- Complete([]byte(`{}`))
		p.refuse(wantResult(t, p, 'a', `{}`).Ref, wire.CodeStorageFull)
		synctest.Wait()
		s.worker.Drain()
		p.ok(next[*wire.Window](p).Ref)
		want := "waiting to hand in the outcomes of 1 tasks; the server does not take them yet: because of the test (storage_full)"
		if !slices.Contains(notices, want) {
			t.Errorf("notices are %q, want %q", notices, want)
		}
		s.stop(errTest)
		if err := s.over(); !errors.Is(err, errTest) || !strings.HasSuffix(err.Error(), "could not be handed in: because of the test (storage_full)") {
			t.Errorf("Run returned %v", err)
		}
		p.closed()
	})
}
