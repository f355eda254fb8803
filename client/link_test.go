package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

// linked connects a bare link.
func (s *stage) linked() (*link, *peer) {
	s.t.Helper()
	type made struct {
		link *link
		err  error
	}
	done := make(chan made, 1)
	go func() {
		l, err := s.client.connect(context.Background(), sessionDialect, &wire.Hello{WorkerID: "ada"})
		done <- made{l, err}
	}()
	p := s.arrives()
	m := <-done
	if m.err != nil {
		s.t.Fatal(m.err)
	}
	return m.link, p
}

func TestLinkEchoesThePayloadOfPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		if err := p.conn.WritePing([]byte("17")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.close()
		p.closed()
		if len(p.pongs) != 1 || string(p.pongs[0]) != "17" {
			t.Errorf("pongs %q, want one 17", p.pongs)
		}
	})
}

func TestLinkAnswersAPingOnlyWhenItsOwnerHasTheFramesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		p.push('a')
		ping := make(chan error, 1)
		go func() { ping <- p.conn.WritePing([]byte("1")) }()
		synctest.Wait()
		if len(p.pongs) != 0 {
			t.Fatal("the ping was answered for a task that nobody has seen")
		}
		if frames := <-l.incoming; len(frames) != 1 {
			t.Errorf("%d frames, want 1", len(frames))
		}
		synctest.Wait()
		if err := <-ping; err != nil || len(p.pongs) != 1 {
			t.Errorf("%d pongs, error %v, want one pong", len(p.pongs), err)
		}
		l.close()
		p.closed()
	})
}

// How long a server may be silent is in its welcome, and holds from there on,
// however the goroutines of a client take turns: a server that falls silent
// right behind it is given up in two and a half of its pings.
func TestLinkGivesUpAServerThatFallsSilentRightBehindItsWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.generous = make(chan struct{})
		made := make(chan *link, 1)
		go func() {
			l, err := s.client.connect(context.Background(), sessionDialect, &wire.Hello{WorkerID: "ada"})
			if err != nil {
				t.Error(err)
			}
			made <- l
		}()
		p := s.upgraded()
		synctest.Wait() // whoever wants the welcome waits for it
		p.welcome(next[*wire.Hello](p), 2)
		l := <-made
		synctest.Wait()
		close(s.generous)
		began := time.Now()
		<-l.gone
		if silent := time.Since(began); silent != 5*time.Second {
			t.Errorf("the server was given up after %v of silence", silent)
		}
		l.close()
		p.closed()
	})
}

// A task that comes while its worker leaves is dropped, and so must be the ping
// behind it: its pong would say that the task has arrived.
func TestLinkThatClosesConfirmsNothingThatItsOwnerHasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		p.push('a')
		ping := make(chan error, 1)
		go func() { ping <- p.conn.WritePing([]byte("1")) }()
		synctest.Wait()
		close(l.closing) // the first step of close
		synctest.Wait()
		if err := <-ping; err != nil || len(p.pongs) != 0 {
			t.Errorf("%d pongs, error %v: a task that nobody has seen is confirmed", len(p.pongs), err)
		}
		l.cut()
		<-l.gone
		<-l.wrote
		p.closed()
	})
}

func TestLinkEndsWhenTheServerIsSilentForTwoAndAHalfPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		began := time.Now()
		for range 3 {
			time.Sleep(20 * time.Second)
			if err := p.conn.WritePing(nil); err != nil {
				t.Fatal(err)
			}
		}
		<-l.gone
		if silent := time.Since(began) - time.Minute; silent != 50*time.Second {
			t.Errorf("it ended after %s of silence, want 50 s", silent)
		}
		l.close()
		p.closed()
	})
}

func TestLinkSurvivesAFrameWithANegativeLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t).linked()
		bad := []byte{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		if _, err := p.conn.NetConn().Write(bad); err != nil {
			t.Fatal(err)
		}
		<-l.gone
		if l.err == nil || !strings.Contains(l.err.Error(), "out of range") {
			t.Errorf("it ended with %v, want what gws panicked with", l.err)
		}
		l.close()
		p.closed()
	})
}

func TestLinkEndsOverMessagesThatAreNone(t *testing.T) {
	for name, send := range map[string]func(c *gws.Conn) error{
		"not JSON": func(c *gws.Conn) error { return c.WriteString(`{"type"`) },
		"binary":   func(c *gws.Conn) error { return c.WriteMessage(gws.OpcodeBinary, []byte(`[]`)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p := newStage(t).linked()
				if err := send(p.conn); err != nil {
					t.Fatal(err)
				}
				<-l.gone
				if l.err == nil {
					t.Error("it ended without a reason")
				}
				l.close()
				p.closed()
			})
		})
	}
}

func TestLinkClosesBehindAStuckWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		l, p := s.linked()
		s.holdWrites()
		l.outgoing <- []byte(`[]`)
		synctest.Wait()
		began := time.Now()
		l.close()
		if took := time.Since(began); took > closeTimeout {
			t.Errorf("it took %s to close, want %s at most", took, closeTimeout)
		}
		p.closed()
	})
}

func TestConnectSaysWhyItFails(t *testing.T) {
	refused := func(p *peer) {
		next[*wire.Hello](p)
		p.refuse(wire.Ref{}, wire.CodeUnauthenticated)
	}
	for name, c := range map[string]struct {
		prepare func(s *stage)
		server  func(p *peer)
		want    string
	}{
		"nobody listens": {
			prepare: func(s *stage) { s.unreachable.Store(true) },
			want:    "no codeq server answers at http://queue.test:8080",
		},
		"refused in words of codeq": {
			prepare: func(s *stage) {
				s.answers("HTTP/1.1 401 Unauthorized\r\nContent-Length: 69\r\n\r\n" +
					`{"error":"bad credential","code":"unauthenticated","retryable":false}`)
			},
			want: "unauthenticated: bad credential",
		},
		"some other server": {
			prepare: func(s *stage) { s.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno") },
			want:    "answered 404 Not Found, not in the words of codeq",
		},
		"no HTTP at all": {
			prepare: func(s *stage) { s.answers("220 mail.test ESMTP\r\n") },
			want:    "did not answer in HTTP",
		},
		"hello refused": {server: refused, want: "unauthenticated: because of the test"},
		"closed with 4401": {
			server: func(p *peer) {
				next[*wire.Hello](p)
				go func() { _ = p.conn.WriteClose(4401, nil) }()
			},
			want: "credential",
		},
		"no welcome": {server: func(p *peer) { next[*wire.Hello](p) }, want: "no welcome came"},
		"another frame first": {
			server: func(p *peer) { p.ok(next[*wire.Hello](p).Ref) },
			want:   "instead of a welcome",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				if c.prepare != nil {
					c.prepare(s)
				}
				failed := make(chan error, 1)
				go func() {
					_, err := s.client.connect(context.Background(), sessionDialect, &wire.Hello{})
					failed <- err
				}()
				if c.server != nil {
					p := s.upgraded()
					c.server(p)
					p.closed()
				}
				if err := <-failed; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
			})
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := s.client.connect(ctx, sessionDialect, &wire.Hello{})
			failed <- err
		}()
		p := s.upgraded()
		next[*wire.Hello](p)
		cancel(errTest)
		if err := <-failed; !errors.Is(err, errTest) {
			t.Errorf("error %v, want the cause of the context", err)
		}
		p.closed()
	})
}

func TestConnectSendsTheTokenAndTheTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newStage(t, WithToken("secret"), WithTenant("two")).linked()
		if got := p.request.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("authorization %q, want the token", got)
		}
		if got := p.request.Header.Get("X-Codeq-Tenant"); got != "two" {
			t.Errorf("the tenant is %q", got)
		}
		l.close()
		p.closed()
	})
}

func TestFirstConnectionWaitsForAServerThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 55\r\n\r\n" +
			`{"error":"starting","code":"draining","retryable":true}`)
		dialled := make(chan error, 1)
		var session *Session
		go func() {
			var err error
			session, err = s.client.Dial(context.Background(), SessionOptions{})
			dialled <- err
		}()
		time.Sleep(time.Minute)
		if s.dials.Load() < 5 {
			t.Errorf("%d attempts in a minute", s.dials.Load())
		}
		s.answer.Store(nil)
		p := s.arrives()
		if err := <-dialled; err != nil {
			t.Fatal(err)
		}
		session.Close()
		p.closed()
	})
}

// Each message has its own time to leave. That of the last pong is long over where a
// server pings seldom.
func TestLinkGivesEachMessageItsOwnTimeToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		made := make(chan *link, 1)
		go func() {
			l, err := s.client.connect(context.Background(), sessionDialect, &wire.Hello{WorkerID: "ada"})
			if err != nil {
				t.Error(err)
			}
			made <- l
		}()
		p := s.upgraded()
		p.welcome(next[*wire.Hello](p), 60)
		l := <-made
		if err := p.conn.WritePing(nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(writeWindow + time.Second)
		l.outgoing <- []byte(`[{"type":"drain"}]`)
		next[*wire.Drain](p)
		<-l.written
		l.close()
		p.closed()
	})
}
