package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// greeted waits for the next connection of the client, which must ask to go on
// with a session by that key, and welcomes it as that session.
func (s *stage) greeted(asks, key string, session byte, held ...wire.TaskRef) *peer {
	s.t.Helper()
	p := s.upgraded()
	if hello := next[*wire.Hello](p); hello.Resume != asks {
		s.t.Fatalf("hello resumes %q, want %q", hello.Resume, asks)
	}
	p.send(&wire.Welcome{
		SessionID: wire.SessionID{session}, Resume: key, TenantID: "default", PingSeconds: 20,
		MaxUnanswered: 8192, MaxMessageBytes: 2 << 20, Held: held,
	})
	return p
}

func TestWorkerGoesOnWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 3)
		p := s.greeted("", "key", 1)
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a, b := s.running('a'), s.running('b')
		p.cut()

		// The server still has a; b is lost; z it had sent and nobody got.
		p = s.greeted("key", "key", 1, ref('a'), ref('z'))
		if cause := b.cancelled(); !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("b was cancelled with %v, want ErrLeaseLost", cause)
		}
		release := next[*wire.Release](p)
		if release.TaskRef != ref('z') {
			t.Errorf("%v was released, want z", release.TaskRef)
		}
		if beat := next[*wire.Heartbeat](p); len(beat.Tasks) != 1 || beat.Tasks[0] != ref('a') {
			t.Errorf("heartbeat for %v, want a", beat.Tasks)
		}
		// The server counts a and z, and b only runs on here.
		if f := p.subscribed(); f.Window != 2 {
			t.Errorf("window %d, want 2 of 3: the handler of b has not returned", f.Window)
		}
		p.ok(release.Ref)
		if a.ctx.Err() != nil {
			t.Errorf("a was cancelled: %v", a.ctx.Err())
		}
		a.end <- Complete([]byte(`{"n":1}`))
		p.ok(wantResult(t, p, 'a', `{"n":1}`).Ref)
		b.end <- Complete([]byte(`{"n":2}`))
		p.refuse(wantResult(t, p, 'b', `{"n":2}`).Ref, wire.CodeLeaseLost)
		if w := next[*wire.Window](p); w.Size != 3 {
			t.Errorf("window %d, want 3", w.Size)
		} else {
			p.ok(w.Ref)
		}
		synctest.Wait()
		if len(s.settled) != 2 || s.settled[0].Err != nil || !errors.Is(s.settled[1].Err, ErrLeaseLost) {
			t.Errorf("settled %+v, want a and a lost b, and nothing of z", s.settled)
		}
		s.goHome(p)
	})
}

// What had arrived and not begun when the connection was lost is begun as soon
// as the session has it still, without another question.
func TestWorkerBeginsWhatItsSessionStillHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.greeted("", "key", 1)
		p.subscribed()
		p.push('a', 'b')
		next[*wire.Received](p)
		a := s.running('a')
		p.cut()
		a.end <- Complete([]byte(`{}`))
		s.idle() // whose b is, nobody knows

		p = s.greeted("key", "key", 1, ref('a'), ref('b'))
		b := s.running('b')
		wantResult(t, p, 'a', `{}`)
		next[*wire.Heartbeat](p)
		p.subscribed()
		b.end <- Complete([]byte(`{}`))
		wantResult(t, p, 'b', `{}`)
		s.stop(errTest)
		if w := next[*wire.Window](p); w.Size != 0 {
			t.Errorf("window %d at the end, want 0", w.Size)
		}
		if err := s.over(); !errors.Is(err, errTest) {
			t.Errorf("Run returned %v, want %v", err, errTest)
		}
	})
}

func TestWorkerMakesANewSessionWhenAnotherTookItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.greeted("", "key", 1)
		p.subscribed()
		if err := p.conn.WriteClose(4409, nil); err != nil {
			t.Fatal(err)
		}
		p = s.greeted("", "other", 2)
		p.subscribed()
		s.goHome(p)
	})
}

func TestWorkerHandsBackWhatItCannotBeginWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.greeted("", "key", 1)
		p.subscribed()
		p.push('a', 'b') // more than its window
		next[*wire.Received](p)
		a := s.running('a')
		began := time.Now()
		release := next[*wire.Release](p)
		if release.TaskRef != ref('b') || time.Since(began) < 5*time.Second || time.Since(began) > 6*time.Second {
			t.Errorf("%v was released after %v, want b after 5 s", release.TaskRef, time.Since(began))
		}
		p.ok(release.Ref)
		a.end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'a', `{}`).Ref)
		s.goHome(p)
	})
}

func TestWorkerSaysWhenItIsDeafAndWhenItHearsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := newStage(t)
		health := make(chan error, 10)
		worker, err := stage.client.NewWorker(WorkerOptions{
			Commands: []string{"hash"}, Health: func(err error) { health <- err },
			Handler: func(context.Context, Delivery) Outcome { return Release() },
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(t.Context()) }()
		p := stage.greeted("", "key", 1)
		p.subscribed()
		if err := <-health; err != nil {
			t.Errorf("health is %v with a session, want nil", err)
		}
		began := time.Now() // and now the server says nothing at all
		err = <-health
		if err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("health is %v, want a timeout", err)
		}
		if silent := time.Since(began); silent < 40*time.Second || silent > 60*time.Second {
			t.Errorf("it took %v to be noticed, want 2 to 3 pings of 20 s", silent)
		}
		p = stage.greeted("key", "key", 1)
		p.subscribed()
		if err := <-health; err != nil {
			t.Errorf("health is %v again, want nil", err)
		}
		worker.Drain()
		p.ok(next[*wire.Window](p).Ref)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A worker that takes nothing new still says that it works on what it has.
func TestWorkerRenewsLeasesWhileItDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 2)
		p := s.greeted("", "key", 1)
		p.subscribed()
		p.push('a')
		next[*wire.Received](p)
		a := s.running('a')
		s.worker.Drain()
		w := next[*wire.Window](p)
		if w.Size != 0 {
			t.Errorf("window %d in a drain, want 0", w.Size)
		}
		p.ok(w.Ref)
		for range 6 {
			beat := next[*wire.Heartbeat](p)
			if len(beat.Tasks) != 1 || beat.Tasks[0] != ref('a') {
				t.Fatalf("heartbeat for %v, want a", beat.Tasks)
			}
			p.send(&wire.OK{Ref: beat.Ref, IsHeartbeat: true})
		}
		a.end <- Complete([]byte(`{}`))
		p.ok(wantResult(t, p, 'a', `{}`).Ref)
		if err := s.over(); err != nil {
			t.Errorf("Run returned %v", err)
		}
		p.closed()
	})
}
