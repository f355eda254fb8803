package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// complete has the handler of a task end well, and takes its result.
func (s *shift) complete(p *peer, name byte) {
	s.t.Helper()
	s.running(name).end <- Complete([]byte(`{}`))
	p.ok(wantResult(s.t, p, name, `{}`).Ref)
}

// Each link counts its deliveries from 1. One whose number the link before has passed
// is confirmed at once, and not begun before that has left.
func TestWorkerConfirmsTheDeliveriesOfEachLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 3)
		p := s.arrives()
		p.subscribed()
		p.push('a', 'b', 'c')
		next[*wire.Received](p)
		for _, name := range []byte("abc") {
			s.complete(p, name)
		}
		for _, name := range []byte("de") {
			p.cut()
			p = s.arrives()
			if f := p.subscribed(); f.Window != 3 {
				t.Errorf("window %d on the next link, want 3", f.Window)
			}
			synctest.Wait()
			began := time.Now()
			release := s.holdWrites()
			p.push(name)
			s.idle() // the confirmation cannot leave
			release()
			if f := next[*wire.Received](p); f.Through != 1 {
				t.Errorf("received through %d, want 1", f.Through)
			}
			s.complete(p, name)
			if took := time.Since(began); took != 0 {
				t.Errorf("the first task of the next link was begun after %s", took)
			}
		}
		s.goHome(p)
	})
}

// A link that breaks with requests that it has not answered halves what the next one
// is offered, also after a link that answered more than these.
func TestF03SessionOffersLessAfterALinkThatAnsweredMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		post := func(from, to int) {
			for i := from; i < to; i++ {
				s.post(fmt.Sprint(i), fmt.Sprint("k", i))
			}
		}
		post(0, 16)
		for i := range 16 {
			p.ok(p.enqueue(fmt.Sprint(i)).Ref)
		}
		synctest.Wait()
		post(16, 24)
		for _, offered := range []int{8, 8, 4, 2} { // the first link has answered more than 8
			for i := range offered {
				p.enqueue(fmt.Sprint(16 + i))
			}
			synctest.Wait()
			p.silent()
			p.cut()
			p = s.arrives()
		}
		s.session.Close()
		p.closed()
	})
}

// What has ended takes no part of the bytes under way any more, however it ended.
func TestSessionForgetsTheBytesOfWhatHasEnded(t *testing.T) {
	for name, end := range map[string]func(s *shop, p *peer, ref wire.Ref) *peer{
		"done":    func(_ *shop, p *peer, ref wire.Ref) *peer { p.ok(ref); return p },
		"refused": func(_ *shop, p *peer, ref wire.Ref) *peer { p.refuse(ref, wire.CodeInvalidCommand); return p },
		"put off, then done": func(_ *shop, p *peer, ref wire.Ref) *peer {
			p.refuse(ref, wire.CodeOverloaded)
			p.ok(next[*wire.Enqueue](p).Ref)
			return p
		},
		"lost": func(s *shop, p *peer, _ wire.Ref) *peer { p.cut(); return s.arrives() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newShop(t, SessionOptions{})
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // less than a silent server is given
				defer cancel()
				large, ended := `"`+strings.Repeat("x", wire.MaxPayloadBytes-2)+`"`, 0
				post := func(payload string) error {
					return s.session.EnqueueAsync(ctx, request(payload, ""), func(*Enqueued, error) { ended++ })
				}
				for range maxPostBytes/wire.MaxPayloadBytes + 1 {
					if err := post(large); err != nil {
						t.Fatal(err)
					}
					p = end(s, p, next[*wire.Enqueue](p).Ref)
					synctest.Wait()
				}
				for i := range 2 { // both before the first is answered
					if err := post("1"); err != nil {
						t.Fatalf("post %d behind %d large ones that have ended: %v", i, ended, err)
					}
				}
				for range 2 {
					p.ok(p.enqueue("1").Ref)
				}
				s.session.Close()
				p.closed()
			})
		})
	}
}

// An owner that is busy for longer than a server may be silent keeps a link whose
// server has spoken meanwhile. From then on silence ends it as ever.
func TestLinkOutlivesAnOwnerThatIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		allowed := silenceAllowed(wire.PingSeconds)
		for range 2 {
			p.push('a')
			ping := make(chan error, 1)
			go func() { ping <- p.conn.WritePing(nil) }()
			time.Sleep(2 * allowed)
			if frames := <-l.incoming; len(frames) != 1 {
				t.Errorf("%d frames, want 1", len(frames))
			}
			synctest.Wait()
			select {
			case <-l.gone:
				t.Fatalf("the link of a server that has spoken ended: %v", l.err)
			case err := <-ping:
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(p.pongs) != 2 {
			t.Errorf("%d pongs, want 2", len(p.pongs))
		}
		began := time.Now()
		<-l.gone
		if silent := time.Since(began); silent != allowed {
			t.Errorf("it ended after %s of silence, want %s", silent, allowed)
		}
		l.close()
		p.closed()
	})
}

// A worker that holds what it may not begin, and not hand back either, sleeps until
// that changes: over a link that takes nothing, and without one.
func TestWorkerSleepsOverWhatItMayNotHandBack(t *testing.T) {
	awake := time.AfterFunc(time.Minute, func() { panic("the worker does not sleep: time stands still for it") })
	defer awake.Stop()
	for name, hold := range map[string]func(s *shift, p *peer) *peer{
		"nothing leaves": func(s *shift, p *peer) *peer {
			release := s.holdWrites()
			p.push('b')
			time.Sleep(writeWindow / 2) // in the bubble of the case
			release()
			return p
		},
		"no link": func(s *shift, p *peer) *peer {
			p.push('b')
			next[*wire.Received](p)
			s.unreachable.Store(true)
			p.cut()
			time.Sleep(time.Minute) // in the bubble of the case
			s.unreachable.Store(false)
			p = s.arrives()
			p.send(&wire.OK{Ref: next[*wire.Heartbeat](p).Ref, IsHeartbeat: true})
			p.subscribed()
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShift(t, 1)
				p := s.arrives()
				p.subscribed()
				p.push('a')
				next[*wire.Received](p)
				a := s.running('a')
				p = hold(s, p)
				// No handler was free for it in time.
				release := awaited[*wire.Release](p)
				if release.TaskRef != ref('b') || !release.NotStarted {
					t.Errorf("handed back %+v, want b, not started", release)
				}
				p.ok(release.Ref)
				a.end <- Complete([]byte(`{}`))
				p.ok(awaited[*wire.Result](p).Ref)
				s.stop(errTest)
				if err := s.over(); !errors.Is(err, errTest) {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

// awaited is the next F of the client, whatever else it says before.
func awaited[F wire.ClientFrame](p *peer) F {
	p.t.Helper()
	for {
		if f, ok := next[wire.ClientFrame](p).(F); ok {
			return f
		}
	}
}

// A subscription that was put off is made again over the next link, and only there.
func TestWorkerSubscribesOnceOverEachLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShift(t, 1)
		p := s.arrives()
		p.send(&wire.ErrorFrame{Ref: next[*wire.Subscribe](p).Ref,
			Err: &wire.Error{Code: wire.CodeOverloaded, Sentence: "later", RetryAfterSeconds: 20}})
		synctest.Wait()
		p.cut()
		p = s.arrives()
		p.subscribed()
		time.Sleep(30 * time.Second)
		p.silent()
		s.goHome(p)
	})
}

// Pauses grow with the refusals in a row, and are short again after a success.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	const soon, many = 2 * firstBackoff, 6
	t.Run("worker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShift(t, 1)
			p := s.arrives()
			p.subscribed()
			for _, name := range []byte("ab") {
				p.push(name)
				awaited[*wire.Received](p)
				s.running(name).end <- Complete([]byte(`{}`))
				result := awaited[*wire.Result](p)
				began := time.Now()
				for i := range many {
					p.refuse(result.Ref, wire.CodeOverloaded)
					result = awaited[*wire.Result](p) // there are heartbeats meanwhile
					if took := time.Since(began); i == 0 && took > soon {
						t.Errorf("the result of %c is handed in again after %s, want %s at most", name, took, soon)
					}
				}
				if took := time.Since(began); took < maxBackoff {
					t.Errorf("%d refusals in a row took %s", many, took)
				}
				p.ok(result.Ref)
			}
			synctest.Wait()
			s.goHome(p)
		})
	})
	t.Run("session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, p := newShop(t, SessionOptions{})
			for _, name := range []string{"1", "2"} {
				s.post(name, "")
				one := p.enqueue(name)
				began := time.Now()
				for i := range many {
					p.refuse(one.Ref, wire.CodeOverloaded)
					one = p.enqueue(name)
					if took := time.Since(began); i == 0 && took > soon {
						t.Errorf("%s is posted again after %s, want %s at most", name, took, soon)
					}
				}
				if took := time.Since(began); took < maxBackoff {
					t.Errorf("%d refusals in a row took %s", many, took)
				}
				p.ok(one.Ref)
			}
			s.session.Close()
			p.closed()
		})
	})
}

// A server that has said that it goes is looked for at once, one time. If it stays away
// the pauses grow as after any loss.
func TestGoodbyeHoldsForOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newShop(t, SessionOptions{})
		p.send(&wire.Draining{Reason: "shutdown", GraceSeconds: 10})
		synctest.Wait()
		s.unreachable.Store(true)
		p.cut()
		const away = 10 * time.Minute
		time.Sleep(away)
		if n, most := s.dials.Load(), int64(away/(maxBackoff/2))+10; n > most {
			t.Errorf("%d attempts in %s, want %d at most", n, away, most)
		}
		s.unreachable.Store(false)
		p = s.arrives()
		s.session.Close()
		p.closed()
	})
}
