package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"codeq/session"
	"codeq/wire"

	"codeq/internal/httpapi"
)

func TestShutdownAnswersEverybodyAndEnds(t *testing.T) {
	x := openSite(t, t.TempDir())
	task := x.post(okTask)
	k := x.dial()
	waited := make(chan answer)
	begun := make(chan struct{})
	api := httpapi.New(x.server.apiOptions())
	x.server.front.set(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		api.ServeHTTP(w, r)
	}))
	go func() {
		waited <- x.ask("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "")
	}()
	<-begun
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(x.close)
	}
	if a := <-waited; a.code() != wire.CodeDraining {
		t.Errorf("the waiter was told %d %s", a.status, a.body)
	}
	hear[*wire.Draining](k)
	if code := k.closeCode(); code != session.CloseRestart {
		t.Errorf("the session was closed with %d", code)
	}
	callers.Wait()
	if _, err := net.Dial("tcp", x.server.Addr()); err == nil {
		t.Error("the port is still open")
	}
}

func TestShutdownCutsWhatOutstaysTheGrace(t *testing.T) {
	x := openSite(t, t.TempDir())
	conn, err := net.Dial("tcp", x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST /v1/codeq/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	// The 100 says that the handler reads the body, which never comes.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x.http.CloseIdleConnections()
	if err := x.server.Shutdown(ctx); err == nil {
		t.Error("a request was cut and nobody told")
	}
	if err := x.server.Serve(); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	x.server.stop.err = nil // what the clean-up would report again
}

// A request that outstays the grace is cut, and its goroutine may still read the store:
// that is closed when the last one has ended.
func TestShutdownClosesTheStoreBehindTheLastRequest(t *testing.T) {
	x := openSite(t, t.TempDir())
	begun, shut := make(chan struct{}), make(chan struct{})
	early := make(chan bool, 1)
	x.server.front.set(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done() // the connection is cut
		select {
		case <-shut:
			early <- true
		case <-time.After(2 * time.Second): // a shutdown that does not wait takes less, on a busy machine too
			early <- false
		}
	}))
	go func() {
		response, err := x.http.Get("http://" + x.server.Addr() + "/")
		if err == nil {
			err = response.Body.Close()
		}
		if err == nil {
			t.Error("a request that was cut has an answer")
		}
	}()
	<-begun
	now, cancel := context.WithCancel(context.Background())
	cancel()
	err := x.server.Shutdown(now)
	close(shut)
	if <-early || err == nil {
		t.Errorf("the shutdown did not wait for a request, and says %v", err)
	}
	x.server.stop.err = nil // what the clean-up would report again
}

// httpBubble runs newHTTPServer on a connection in memory.
func httpBubble(t *testing.T, h http.Handler, test func(server *http.Server, open *conns, conn net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		open := newConns()
		server := newHTTPServer(h, open, zerolog.Nop())
		near, far := net.Pipe()
		l := &oneConn{conn: far, closed: make(chan struct{})}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		synctest.Wait()
		test(server, open, near)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
		open.wait()
		if err := near.Close(); err != nil {
			t.Error(err)
		}
	})
}

// oneConn is a listener that has one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestSlowHeadIsCut(t *testing.T) {
	httpBubble(t, http.NotFoundHandler(), func(_ *http.Server, _ *conns, conn net.Conn) {
		startedAt := time.Now()
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost:")); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(conn).ReadString(0); err == nil || time.Since(startedAt) != readHeaderFor {
			t.Errorf("cut after %v with %v", time.Since(startedAt), err)
		}
	})
}

func TestIdleConnectionIsClosed(t *testing.T) {
	httpBubble(t, http.NotFoundHandler(), func(_ *http.Server, _ *conns, conn net.Conn) {
		startedAt := time.Now()
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(conn).ReadString(0); err == nil || time.Since(startedAt) != idleFor {
			t.Errorf("closed after %v with %v", time.Since(startedAt), err)
		}
	})
}

func TestUnusedConnectionDoesNotHoldAShutdownUp(t *testing.T) {
	httpBubble(t, http.NotFoundHandler(), func(server *http.Server, open *conns, conn net.Conn) {
		startedAt := time.Now()
		open.closeUnused()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(startedAt); took >= time.Second {
			t.Errorf("the shutdown took %v", took)
		}
	})
}

// A connection that was on its way into the server when that began to stop is closed
// as well.
func TestConnectionThatComesDuringAShutdownIsClosed(t *testing.T) {
	open := newConns()
	open.closeUnused()
	near, far := net.Pipe()
	defer near.Close()
	open.setState(far, http.StateNew)
	if err := far.SetDeadline(time.Time{}); err != io.ErrClosedPipe {
		t.Errorf("it is not closed: %v", err)
		_ = far.Close()
	}
	open.setState(far, http.StateClosed)
	open.wait()
}

func TestConnectionsAreWaitedForUntilTheirRequestsEnd(t *testing.T) {
	var leave chan struct{} // of the bubble
	inside := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave })
	httpBubble(t, inside, func(server *http.Server, open *conns, conn net.Conn) {
		leave = make(chan struct{})
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		open.closeUnused() // it is used
		synctest.Wait()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		gone := make(chan struct{})
		go func() {
			open.wait()
			close(gone)
		}()
		synctest.Wait()
		select {
		case <-gone:
			t.Error("a request was not waited for")
		default:
		}
		leave <- struct{}{}
		<-gone
	})
}
