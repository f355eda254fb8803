package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/paced"
	"codeq/wire"
)

const (
	// idleAtLeast is how long a connection must have been without a request before it is
	// closed for another one: a client that sends its next request at the moment of the
	// close does not know whether the server got it.
	idleAtLeast = time.Second
	// refusals is how many connections may get the answer of a refusal at the same time;
	// further ones are closed without an answer. Each takes a descriptor.
	refusals   = 16
	refusalFor = 500 * time.Millisecond
	// refusalsLogEvery is the time between two log lines about refusals.
	refusalsLogEvery = 10 * time.Second
)

// limitListener is the listener of the server. It bounds the open connections, sessions
// included, so that descriptors are left for the store. At the bound a new connection
// displaces the oldest one that has not sent a byte; if there is none, the one that has
// been without a request for longest and at least for idleAtLeast; if there is none
// either, the new one is refused. Any goroutine.
type limitListener struct {
	net.Listener
	limit int
	log   zerolog.Logger
	// secured: the connections speak TLS, so a refusal has no answer.
	secured bool
	refused atomic.Int64
	// displaced counts the connections that were closed for another one.
	displaced atomic.Int64
	// refusing has a token for each goroutine that writes a refusal; answered waits for
	// those goroutines.
	refusing chan struct{}
	answered sync.WaitGroup

	mu   sync.Mutex
	open int
	// silent are the connections that have not sent a byte, idle the other ones without a
	// request, both by the time since when. A request begins when its head is complete.
	silent, idle *list.List
}

// limitedConn is a connection that the listener has accepted. It embeds *net.TCPConn and
// not net.Conn, because gws and net/http use more methods than those of net.Conn.
type limitedConn struct {
	*net.TCPConn
	pace     *paced.Writer
	listener *limitListener
	closed   sync.Once
	// Under listener.mu. list is the list that has the connection as its element; nil while a
	// request is served and once it has become a session.
	list    *list.List
	element *list.Element
	since   time.Time
}

func newLimitListener(l net.Listener, limit int, log zerolog.Logger) *limitListener {
	return &limitListener{
		Listener: l, limit: limit, log: atMost(log, 1, refusalsLogEvery),
		refusing: make(chan struct{}, refusals), silent: list.New(), idle: list.New(),
	}
}

// Accept implements net.Listener. One goroutine at a time.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, temporary(err)
		}
		if c := l.admit(conn.(*net.TCPConn)); c != nil {
			return c, nil
		}
		l.refuse(conn)
	}
}

// temporary marks an error of accept after which the next call can succeed; net/http then
// calls again after a pause. accept(2) reports errors of one connection, of the network and
// of the system's memory. Only a closed listener fails for good.
func temporary(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL) {
		return err
	}
	return &temporaryError{err}
}

type temporaryError struct{ error }

// Unwrap is the error of accept.
func (e *temporaryError) Unwrap() error { return e.error }

// Timeout implements net.Error.
func (e *temporaryError) Timeout() bool { return false }

// Temporary implements net.Error.
func (e *temporaryError) Temporary() bool { return true }

// admit counts a connection, or returns nil if it must be refused.
func (l *limitListener) admit(conn *net.TCPConn) *limitedConn {
	if !l.makeRoom() {
		return nil
	}
	c := &limitedConn{TCPConn: conn, pace: paced.NewWriter(conn), listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	c.moveTo(l.silent)
	return c
}

// makeRoom displaces a connection at the bound, and reports whether one more may be open.
// Close returns when the descriptor is free.
func (l *limitListener) makeRoom() bool {
	l.mu.Lock()
	full := l.open >= l.limit
	displaced := l.displaceable()
	l.mu.Unlock()
	if !full || displaced == nil {
		return !full
	}
	l.displaced.Add(1)
	_ = displaced.Close() // no request is under way on it
	return true
}

// displaceable is the connection that a new one displaces, nil without one. l.mu is held.
func (l *limitListener) displaceable() *limitedConn {
	if first := l.silent.Front(); first != nil {
		return first.Value.(*limitedConn)
	}
	first := l.idle.Front()
	if first == nil || time.Since(first.Value.(*limitedConn).since) < idleAtLeast {
		return nil
	}
	return first.Value.(*limitedConn)
}

// put moves the connection to the end of a list: silent, idle, or nil while a request is
// served.
func (c *limitedConn) put(to *list.List) {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.moveTo(to)
}

// moveTo is put with listener.mu held. A connection that is in the list keeps its place.
func (c *limitedConn) moveTo(to *list.List) {
	if c.list == to {
		return
	}
	if c.list != nil {
		c.list.Remove(c.element)
	}
	if c.list = to; to != nil {
		c.element, c.since = to.PushBack(c), time.Now()
	}
}

// Write implements net.Conn. It goes on for as long as the client takes enough.
func (c *limitedConn) Write(p []byte) (int, error) { return c.pace.Write(p) }

// Pace is the writer of the connection; a session writes by it.
func (c *limitedConn) Pace() *paced.Writer { return c.pace }

// ReadFrom implements io.ReaderFrom by Write.
func (c *limitedConn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c.pace}, r)
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.TCPConn.Close()
	c.closed.Do(func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.moveTo(nil)
		c.listener.open--
	})
	return err
}

// refuse answers before it reads. The client may be sending its request, and the system
// drops the answer if the connection is closed over unread bytes; so it then reads until
// refusalFor is over.
func (l *limitListener) refuse(conn net.Conn) {
	l.log.Warn().Int("open", l.limit).Int64("refused", l.refused.Add(1)).
		Msg("connections are refused: as many are open as the limit of open files allows")
	if l.secured {
		_ = conn.Close() // nothing was sent on it
		return
	}
	select {
	case l.refusing <- struct{}{}:
	default:
		_ = conn.Close() // nothing was sent on it
		return
	}
	l.answered.Go(func() {
		defer func() { <-l.refusing }()
		writeRefusal(conn)
	})
}

func writeRefusal(conn net.Conn) {
	const retryAfterSeconds = 1
	body := wire.AppendError(nil, &wire.Error{
		Code:              wire.CodeOverloaded,
		Sentence:          "the server has as many connections open as its limit of open files allows; try again after a second",
		RetryAfterSeconds: retryAfterSeconds,
	})
	answer := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n" +
		"Retry-After: " + strconv.Itoa(retryAfterSeconds) + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	// Each step can fail because the client has left; then nobody misses the answer.
	_ = conn.SetDeadline(time.Now().Add(refusalFor))
	_, _ = io.WriteString(conn, answer)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

// count is how many connections are open now.
func (l *limitListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

type connKey struct{}

// withConn is the ConnContext hook: front finds the connection of a request by it.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c := limited(conn); c != nil {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// limited is the connection of the listener, below TLS if the server speaks it.
func limited(conn net.Conn) *limitedConn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c, _ := conn.(*limitedConn)
	return c
}

// putIdle is the ConnState hook of a limitedConn. net/http calls a connection active from
// the first byte of a request; here it is idle until front serves the request.
func putIdle(conn net.Conn, state http.ConnState) {
	if c := limited(conn); c != nil && (state == http.StateActive || state == http.StateIdle) {
		c.put(c.listener.idle)
	}
}
