package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// gaveBack waits for a release and answers it.
func gaveBack(t *testing.T, p *peer, name byte, why wire.ReleaseRequest) {
	t.Helper()
	f := next[*wire.Release](p)
	if f.TaskRef != ref(name) || f.ReleaseRequest != why {
		t.Errorf("release of %v for %+v, want %c for %+v", f.TaskRef, f.ReleaseRequest, name, why)
	}
	p.ok(f.Ref)
}

func (s *shift) wantWindow(p *peer, size int) {
	s.t.Helper()
	f := next[*wire.Window](p)
	if f.Size != size {
		s.t.Errorf("window %d, want %d", f.Size, size)
	}
	p.ok(f.Ref)
}

func TestN03WorkerThatGivesBackUnbegunWorkRestsLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		unbegun := wire.ReleaseRequest{NotStarted: true}
		fails := func(pause time.Duration) {
			t.Helper()
			p.push('a', 'b', 'c')
			next[*wire.Received](p)
			a, b := s.running('a'), s.running('b')
			began := time.Now()
			a.end <- NotStarted("no descriptors")
			s.wantWindow(p, 0) // before the task, or it would come again
			gaveBack(t, p, 'a', unbegun)
			gaveBack(t, p, 'c', unbegun) // nobody begins it
			b.end <- NotStarted("no descriptors")
			gaveBack(t, p, 'b', unbegun)
			s.wantWindow(p, 2)
			if took := time.Since(began); took != pause {
				t.Errorf("it took nothing for %s, want %s", took, pause)
			}
		}
		for _, seconds := range []int{1, 2, 4} {
			fails(time.Duration(seconds) * time.Second)
		}
		p.push('d')
		next[*wire.Received](p)
		s.running('d').end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'd', `{}`).Ref)
		for _, seconds := range []int{1, 2, 4, 8, 16} {
			fails(time.Duration(seconds) * time.Second)
		}
		if len(s.settled) != 25 || s.settled[0].Outcome.Reason != "no descriptors" {
			t.Errorf("%d settled, the first %+v", len(s.settled), s.settled[0])
		}
		s.goHome(p)
	})
}

func TestN03RestNeverEndsLaterThanAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &workerLoop{loop: loop{client: &Client{notice: func(string) {}}}, worker: &Worker{}}
		for range 100 {
			l.pace(&delivery{Delivery: Delivery{Task: &wire.Task{}}}, NotStarted("no memory"))
			if rest := time.Until(l.restEnd); rest < firstRest || rest > longestRest {
				t.Fatalf("pause %d is %s", l.unbegun, rest)
			}
			l.restEnd = time.Time{}
		}
	})
}

func TestN01HandlerSeesThatItsWorkerDrains(t *testing.T) {
	if Draining(context.Background()) != nil {
		t.Error("a context that is no handler's drains")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		select {
		case <-Draining(a.ctx):
			t.Error("the worker drains before it was told to")
		default:
		}
		s.worker.Drain()
		s.wantWindow(p, 0)
		<-Draining(a.ctx)
		if a.ctx.Err() != nil {
			t.Error("to drain is not to cancel")
		}
		a.end <- Release() // as a handler says that knows nothing of stopping
		gaveBack(t, p, 'a', wire.ReleaseRequest{Stopping: true})
		b.end <- NotStarted("no descriptors")
		gaveBack(t, p, 'b', wire.ReleaseRequest{NotStarted: true, Stopping: true})
		if err := s.over(); err != nil {
			t.Error(err)
		}
		p.closed()
	})
}

func TestN01N03ErrorsOfAHandlerThatHandBack(t *testing.T) {
	for _, c := range []struct {
		err  error
		want wire.ReleaseRequest
	}{
		{CannotStart(errTest), wire.ReleaseRequest{NotStarted: true}},
		{fmt.Errorf("x: %w", CannotStart(errTest)), wire.ReleaseRequest{NotStarted: true}},
		{ErrStopping, wire.ReleaseRequest{Stopping: true}},
		{fmt.Errorf("x: %w", ErrStopping), wire.ReleaseRequest{Stopping: true}},
	} {
		if o := outcomeOf(context.Background(), nil, c.err); o.Kind != Released || o.why != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, o, c.want)
		}
	}
	if CannotStart(nil) != nil || !errors.Is(CannotStart(errTest), errTest) {
		t.Error("the mark hides its error, or makes one")
	}
}
