package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/paced"
	"codeq/wire"
)

// wireTest runs a test against the API behind net/http over an in-memory
// connection, in a bubble whose time passes only while everybody waits.
func wireTest(t *testing.T, test func(t *testing.T, b *bench, c *byHand)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c := &byHand{t: t}
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: b.api, DisableGeneralOptionsHandler: true}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		near, far := net.Pipe()
		c.conn, c.in = near, bufio.NewReader(near)
		l.conns <- slowConn{&timedConn{Conn: far, readBy: &c.readBy}, paced.NewWriter(far)}
		test(t, b, c)
		if err := near.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
		// net/http lingers half a second on a connection it closes early.
		<-time.After(time.Second)
	})
}

// slowConn is a connection as the server has them.
type slowConn struct {
	net.Conn
	pace *paced.Writer
}

// Write implements net.Conn.
func (c slowConn) Write(p []byte) (int, error) { return c.pace.Write(p) }

// pipeListener hands out what is sent to conns.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// byHand is a client that writes its requests by hand.
type byHand struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	// readBy is the deadline by which the server wants to hear more, zero for none.
	readBy atomic.Pointer[time.Time]
}

// timedConn is the server's end.
type timedConn struct {
	net.Conn
	readBy *atomic.Pointer[time.Time]
}

func (c *timedConn) SetReadDeadline(at time.Time) error {
	c.readBy.Store(&at)
	return c.Conn.SetReadDeadline(at)
}

func (p *byHand) say(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *byHand) hear(method string) got {
	p.t.Helper()
	response, err := http.ReadResponse(p.in, &http.Request{Method: method})
	if err != nil {
		p.t.Fatal(err)
	}
	g := read(p.t, response)
	g.closing = response.Close
	return g
}

func postHead(contentLength int, more string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n", tasksPath, contentLength, more)
}

func TestExpectContinueIsAnsweredBeforeTheBody(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say(postHead(len(okBody), "Expect: 100-continue\r\n"))
		if g := c.hear("POST"); g.status != http.StatusContinue {
			t.Fatalf("answered %d", g.status)
		}
		c.say(okBody)
		if g := c.hear("POST"); g.status != http.StatusAccepted {
			t.Fatalf("answered %d %s", g.status, g.body)
		}
	})
}

func TestTooLargeBodyIsRefusedBeforeItIsSent(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say(postHead(wire.MaxHTTPBodyBytes+1, "Expect: 100-continue\r\n"))
		g := c.hear("POST")
		g.mustRefuse(t, wire.CodeTooLarge)
		if !strings.Contains(g.body, "8388608") || !g.closing {
			t.Errorf("answered %s, closing %v", g.body, g.closing)
		}
	})
}

func TestTooLargeBodyOfUnknownLengthIsRefused(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say("POST " + tasksPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		sent := make(chan error, 1)
		go func() {
			// The server may stop reading anywhere behind the limit.
			_, err := fmt.Fprintf(c.conn, "%x\r\n%s", wire.MaxHTTPBodyBytes+1, strings.Repeat(" ", wire.MaxHTTPBodyBytes+1))
			sent <- err
		}()
		c.hear("POST").mustRefuse(t, wire.CodeTooLarge)
		if err := c.conn.Close(); err != nil {
			t.Error(err)
		}
		<-sent
	})
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		startedAt := time.Now()
		c.say(postHead(100, "") + `{"command"`)
		c.hear("POST").mustRefuse(t, wire.CodeInvalidBody)
		if waited := time.Since(startedAt); waited != bodyReadFor {
			t.Errorf("given up after %v", waited)
		}
	})
}

func TestCutBodyMakesNoTask(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say(postHead(100, "") + okBody)
		if err := c.conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if g := b.do("GET", "/v1/codeq/admin/queues", ""); g.body != `{"queues":[]}` {
			t.Errorf("queues: %s", g.body)
		}
	})
}

func TestAnswerNobodyReadsIsGivenUp(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		<-time.After(paced.Window + 2*time.Second)
		if n, err := c.conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after the deadline the connection gives %d bytes, %v", n, err)
		}
	})
}

func TestDeadlineOfABodyDoesNotEndAWait(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		task := b.post(okBody)
		startedAt := time.Now()
		c.say("GET " + tasksPath + "/" + task.ID.String() + "/result?waitSeconds=60 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		c.hear("GET").mustRefuse(t, wire.CodeResultNotFound)
		if waited := time.Since(startedAt); waited != 60*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestWaitEndsWhenTheConnectionDoes(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		task := b.post(okBody)
		startedAt := time.Now()
		c.say("GET " + tasksPath + "/" + task.ID.String() + "/result?waitSeconds=60 HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		if strings.Contains(b.log.String(), "/result") {
			t.Fatalf("the wait is over already: %s", b.log)
		}
		if err := c.conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !strings.Contains(b.log.String(), "/result") || time.Since(startedAt) != 0 {
			t.Errorf("the wait goes on without its client: %s", b.log)
		}
	})
}

func TestConnectionSurvivesPanicHeadAndRefusal(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		boom := b.api.newRoute("/boom")
		b.api.mux.HandleFunc("/boom", func(w http.ResponseWriter, r *http.Request) {
			b.api.serve(w, r, boom, func(*call) answer { panic("the reason") })
		})
		c.say("GET /boom HTTP/1.1\r\nHost: x\r\n\r\n")
		c.hear("GET").mustRefuse(t, wire.CodeInternal)
		c.say("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if g := c.hear("HEAD"); g.status != http.StatusOK || g.body != "" || g.header.Get("Content-Length") != "15" {
			t.Errorf("HEAD: %d %q %v", g.status, g.body, g.header)
		}
		c.say("HEAD " + tasksPath + "/" + unknownID + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if g := c.hear("HEAD"); g.status != http.StatusNotFound || g.body != "" {
			t.Errorf("HEAD: %d %q", g.status, g.body)
		}
		c.say("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
		c.hear("OPTIONS").mustRefuse(t, wire.CodeNotFound)
		c.say(postHead(3, "") + "{}}")
		c.hear("POST").mustRefuse(t, wire.CodeInvalidBody)
		c.say(postHead(len(okBody), "") + okBody)
		if g := c.hear("POST"); g.status != http.StatusAccepted {
			t.Errorf("POST: %d %s", g.status, g.body)
		}
	})
}

// The time for a body ends with the body. A claim may wait for as long, and would
// lose its client at the end of it.
func TestTheTimeForABodyEndsWithIt(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		const body = `{"commands":["none"],"waitSeconds":30}`
		c.say(fmt.Sprintf("POST %s/claim HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tasksPath, len(body)))
		synctest.Wait()
		if at := c.readBy.Load(); at == nil || time.Until(*at) != bodyReadFor {
			t.Errorf("the body is waited for until %v", at)
		}
		c.say(body)
		synctest.Wait()
		if at := c.readBy.Load(); !at.IsZero() {
			t.Errorf("the claim waits, and its client is given up in %v", time.Until(*at))
		}
		if g := c.hear("POST"); g.status != http.StatusNoContent {
			t.Errorf("answered %d %s", g.status, g.body)
		}
	})
}

// A body has bodyReadFor to begin, and each paced.LeastBytes more give it paced.Window
// from then on, but never less than it had.
func TestTheTimeForABodyGrowsWithIt(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		const most = 5 * paced.LeastBytes
		body := fmt.Sprintf(`{"command":"c","payload":%q}`, strings.Repeat("x", most))
		c.say(postHead(len(body), ""))
		for n, step := range []struct {
			after time.Duration
			bytes int
			left  time.Duration
		}{
			{0, paced.LeastBytes, bodyReadFor},
			{15 * time.Second, paced.LeastBytes - 1, bodyReadFor - 15*time.Second},
			{6 * time.Second, 1, paced.Window},
			{paced.Window - 1, paced.LeastBytes - 1, 1},
			{0, 1, paced.Window},
			{time.Second, 2 * paced.LeastBytes, paced.Window},
		} {
			<-time.After(step.after)
			c.say(body[:step.bytes])
			body = body[step.bytes:]
			synctest.Wait()
			if left := time.Until(*c.readBy.Load()); left != step.left {
				t.Fatalf("step %d: the body has %v left, want %v", n, left, step.left)
			}
		}
		<-time.After(paced.Window - 1)
		c.say(body)
		if g := c.hear("POST"); g.status != http.StatusAccepted {
			t.Errorf("answered %d %s", g.status, g.body)
		}
	})
}
