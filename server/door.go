package server

import (
	"container/list"
	"context"
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
	// spareFor is how long a connection that has sent something is left alone when
	// another wants its place: a client that is about to send its next request on
	// it would not know whether that was done.
	spareFor = time.Second
	// refusals is how many connections may be told at once that they are refused;
	// further ones are closed without a word. Each takes a descriptor.
	refusals   = 16
	refusalFor = 500 * time.Millisecond
	// saidEvery is the time between two log lines about refusals.
	saidEvery = 10 * time.Second
)

// door is the listener of the server. It has at most so many connections open,
// sessions included, so that descriptors are left for the store. One more gets the
// place of the oldest connection that has not sent a byte; if there is none, of
// the one that has been without a request for longest and at least for spareFor;
// and is refused otherwise. Any goroutine.
type door struct {
	net.Listener
	most    int
	log     zerolog.Logger
	refused atomic.Int64
	// displaced counts those that were closed for another.
	displaced atomic.Int64
	// telling has a token for each connection that is told that it is refused,
	// told waits for them.
	telling chan struct{}
	told    sync.WaitGroup
	saidAt  time.Time // of Accept's goroutine

	mu   sync.Mutex
	open int
	// silent are connections that have not sent a byte, idle the others without a
	// request (the head of one is not), each by the time since when.
	silent, idle *list.List
}

// guest is a connection that the door let in. It embeds the type, not the
// interface, for those who ask the connection for more than net.Conn has.
type guest struct {
	*net.TCPConn
	pace *paced.Writer
	door *door
	left sync.Once
	// Under the lock of the door; in is the list in which the connection has its
	// place, nil while a request is served and when it has become a session.
	in    *list.List
	place *list.Element
	since time.Time
}

func newDoor(l net.Listener, most int, log zerolog.Logger) *door {
	return &door{Listener: l, most: most, log: log, telling: make(chan struct{}, refusals), silent: list.New(), idle: list.New()}
}

// Accept implements net.Listener. One goroutine at a time.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, passing(err)
		}
		if g := d.enter(conn.(*net.TCPConn)); g != nil {
			return g, nil
		}
		d.refuse(conn)
	}
}

// passing marks an error of accept after which the next call may succeed, which
// net/http then makes after a pause. The system reports errors of one connection,
// of the network and of its own memory this way (accept(2)); only a listener that
// is closed stays so.
func passing(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL) {
		return err
	}
	return &passingError{err}
}

type passingError struct{ error }

// Unwrap is the error of accept.
func (e *passingError) Unwrap() error { return e.error }

// Timeout implements net.Error.
func (e *passingError) Timeout() bool { return false }

// Temporary implements net.Error.
func (e *passingError) Temporary() bool { return true }

// enter lets a connection in, or returns nil.
func (d *door) enter(conn *net.TCPConn) *guest {
	if !d.hasPlace() {
		return nil
	}
	g := &guest{TCPConn: conn, pace: paced.NewWriter(conn), door: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	g.moveTo(d.silent)
	return g
}

// hasPlace makes one if it can. Close returns when the descriptor is free.
func (d *door) hasPlace() bool {
	d.mu.Lock()
	full := d.open >= d.most
	least := d.leastNeeded()
	d.mu.Unlock()
	if !full || least == nil {
		return !full
	}
	d.displaced.Add(1)
	_ = least.Close() // nothing is under way on it
	return true
}

// leastNeeded is the connection that another may get the place of, nil without
// one. The lock is held.
func (d *door) leastNeeded() *guest {
	if first := d.silent.Front(); first != nil {
		return first.Value.(*guest)
	}
	first := d.idle.Front()
	if first == nil || time.Since(first.Value.(*guest).since) < spareFor {
		return nil
	}
	return first.Value.(*guest)
}

// rest notes that no request is served on the connection, which has sent
// something.
func (g *guest) rest() {
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	g.moveTo(g.door.idle)
}

// work notes that a request is served on the connection.
func (g *guest) work() {
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	g.moveTo(nil)
}

// moveTo puts the connection at the end of a list, unless it is in that already;
// nil is none. The lock is held.
func (g *guest) moveTo(to *list.List) {
	if g.in == to {
		return
	}
	if g.in != nil {
		g.in.Remove(g.place)
	}
	if g.in = to; to != nil {
		g.place, g.since = to.PushBack(g), time.Now()
	}
}

// Write implements net.Conn: an answer may take as long as its client takes
// enough of it.
func (g *guest) Write(p []byte) (int, error) { return g.pace.Write(p) }

// Pace is what writes to the connection, for who takes it over.
func (g *guest) Pace() *paced.Writer { return g.pace }

// ReadFrom implements io.ReaderFrom, by Write.
func (g *guest) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{g.pace}, r)
}

// Close implements net.Conn.
func (g *guest) Close() error {
	err := g.TCPConn.Close()
	g.left.Do(func() {
		g.door.mu.Lock()
		defer g.door.mu.Unlock()
		g.moveTo(nil)
		g.door.open--
	})
	return err
}

// refuse answers before anything was read. The client may be in the middle of its
// request, and closing over unread bytes would make the system drop the answer, so
// the rest is read for a moment.
func (d *door) refuse(conn net.Conn) {
	refused := d.refused.Add(1)
	if now := time.Now(); now.Sub(d.saidAt) >= saidEvery {
		d.saidAt = now
		d.log.Warn().Int("open", d.most).Int64("refused", refused).
			Msg("connections are refused: as many are open as the limit of open files allows")
	}
	select {
	case d.telling <- struct{}{}:
	default:
		_ = conn.Close() // nothing was said on it
		return
	}
	d.told.Go(func() {
		defer func() { <-d.telling }()
		tellRefusal(conn)
	})
}

func tellRefusal(conn net.Conn) {
	const retryAfterSeconds = 1
	body := wire.AppendError(nil, &wire.Error{
		Code:              wire.CodeOverloaded,
		Sentence:          "the server has as many connections open as its limit of open files allows; try again after a second",
		RetryAfterSeconds: retryAfterSeconds,
	})
	answer := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n" +
		"Retry-After: " + strconv.Itoa(retryAfterSeconds) + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	// The client may be gone already, at each step; then nobody misses the answer.
	_ = conn.SetDeadline(time.Now().Add(refusalFor))
	_, _ = io.WriteString(conn, answer)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	_ = conn.Close()
}

// count is how many connections are open now.
func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

type guestKey struct{}

// recognise is the ConnContext hook: it lets the front find the connection of a
// request.
func recognise(ctx context.Context, conn net.Conn) context.Context {
	if g, ok := conn.(*guest); ok {
		return context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}

// noteState is the ConnState hook for a guest. A connection is active from the
// first byte of a request, long before the request is served.
func noteState(conn net.Conn, state http.ConnState) {
	if g, ok := conn.(*guest); ok && (state == http.StateActive || state == http.StateIdle) {
		g.rest()
	}
}
