package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

const (
	// maxServerMessageBytes is the largest message that this client accepts; hello states
	// it. A task may carry an error text and a history besides its payload, so it is well
	// above the minimum of the protocol.
	maxServerMessageBytes = 4 << 20
	// writeWindow is the time in which the server must read a part of a message. A server
	// that throttles a client does not read for a while, so it is longer than the
	// time after which servers cut a client.
	writeWindow = 30 * time.Second
	// closeTimeout is how long the polite end of a connection may take.
	closeTimeout = time.Second
	// helloTimeout is how long a server may take to send its welcome.
	helloTimeout = 10 * time.Second

	closeNormal   = 1000
	closeProtocol = 4400
	closeIdle     = 4408
	closeCreds    = 4401
	closeReplaced = 4409
)

// dialect is what is spoken over a link.
type dialect struct {
	path, subprotocol string
	append            func(dst []byte, f wire.ClientFrame) []byte
	parse             func(message []byte) ([]wire.ServerFrame, error)
}

var (
	sessionDialect = &dialect{sessionPath, wire.Subprotocol, wire.AppendClientFrame, wire.ParseServerMessage}
	watchDialect   = &dialect{eventsPath, wire.WatchSubprotocol, wire.AppendWatchRequest, wire.ParseWatchMessage}
)

// link is one live socket of a session or a watch after its welcome. Its owner, a loop, takes
// frames from incoming, hands messages to outgoing one at a time and waits for
// written after each; gone is closed when the socket has ended.
//
// incoming has no buffer: the reader answers a ping only when the owner has
// taken every frame before it. So a pong, which confirms deliveries, never
// speaks for a task that nobody here has seen, and a stuck owner is noticed.
type link struct {
	// static
	*dialect
	conn     *gws.Conn
	welcome  *wire.Welcome      // of a session
	present  *wire.WatchWelcome // of a watch
	first    []wire.ServerFrame // what came in one message with the welcome
	incoming chan []wire.ServerFrame
	outgoing chan []byte
	written  chan struct{}
	closing  chan struct{} // closed by the owner, in close
	gone     chan struct{} // closed by the reader, after it set err
	wrote    chan struct{} // closed when the writer has ended
	leader   string        // the address of the leader of a cluster in the answer; empty for none

	// owned by the reader
	idleFor time.Duration // longest silence of the server

	// owned by the reader until gone is closed
	err error
}

func newLink(d *dialect) *link {
	return &link{
		dialect:  d,
		idleFor:  silenceAllowed(wire.PingSeconds),
		incoming: make(chan []wire.ServerFrame),
		outgoing: make(chan []byte),
		written:  make(chan struct{}),
		closing:  make(chan struct{}),
		gone:     make(chan struct{}),
		wrote:    make(chan struct{}),
	}
}

// silenceAllowed is two and a half ping intervals; that of the protocol if the server
// states none.
func silenceAllowed(pingSeconds int) time.Duration {
	if pingSeconds <= 0 {
		pingSeconds = wire.PingSeconds
	}
	return time.Duration(pingSeconds) * time.Second * 5 / 2
}

func (l *link) start(conn *gws.Conn) {
	l.conn = conn
	go l.read()
	go l.write()
}

// read runs the reader. gws panics on a frame with a negative length and does
// not call OnClose after that, hence the recover; the connection is closed in
// any case, so that the writer ends too.
func (l *link) read() {
	defer close(l.gone)
	defer l.cut()
	defer func() {
		if p := recover(); p != nil {
			l.fail(fmt.Errorf("read session: %v", p))
		}
	}()
	l.conn.ReadLoop()
}

// write runs the writer: one message at a time.
func (l *link) write() {
	defer close(l.wrote)
	for {
		select {
		case message := <-l.outgoing:
			if err := l.conn.WriteMessage(gws.OpcodeText, message); err != nil {
				l.cut() // the reader notices, and says why
				return
			}
			select {
			case l.written <- struct{}{}:
			case <-l.closing:
				return
			}
		case <-l.gone:
			return
		case <-l.closing:
			return
		}
	}
}

// cut closes the connection without a closing frame, which unblocks a stuck write.
func (l *link) cut() {
	_ = l.conn.NetConn().Close() // closed twice is no harm, and nothing else can fail
}

// expectSign restarts the wait for the next sign of life. Reader only: of two goroutines
// that set one deadline, the last one wins.
func (l *link) expectSign() {
	// Setting a deadline fails only on a closed connection, where the next read fails,
	// too. To report it here would hide the code of a closing frame that has come already.
	_ = l.conn.NetConn().SetReadDeadline(time.Now().Add(l.idleFor))
}

// fail records why the link ended; the first reason counts. Reader only.
func (l *link) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// close ends the link with a closing frame if that can be sent soon, and
// returns when its goroutines have ended. Only the owner calls it, once.
func (l *link) close() {
	close(l.closing)
	select {
	case <-l.gone:
	case <-l.wrote:
		defer time.AfterFunc(closeTimeout, l.cut).Stop()
		_ = l.conn.WriteClose(closeNormal, nil) // a courtesy; the end follows anyway
	case <-time.After(closeTimeout):
	}
	l.cut()
	<-l.gone
	<-l.wrote
}

// OnOpen is called by gws in the reader.
func (l *link) OnOpen(*gws.Conn) { l.expectSign() }

// OnClose is called by gws in the reader.
func (l *link) OnClose(_ *gws.Conn, err error) { l.fail(closeReason(err)) }

// OnPing is called by gws in the reader. It echoes the payload. An owner that closes the
// link takes no more frames; an echo would confirm tasks that it never sees, and the
// server would keep them for this worker in place of another.
func (l *link) OnPing(_ *gws.Conn, payload []byte) {
	select {
	case <-l.closing:
		return
	default:
	}
	l.expectSign()
	if err := l.conn.WritePong(payload); err != nil {
		l.fail(fmt.Errorf("answer ping: %w", err))
	}
	// The pong may have waited for a message that left slowly.
	l.expectSign()
}

// OnPong is called by gws in the reader. This client sends no pings.
func (l *link) OnPong(*gws.Conn, []byte) { l.expectSign() }

// OnMessage is called by gws in the reader.
func (l *link) OnMessage(conn *gws.Conn, message *gws.Message) {
	frames, err := l.parse(message)
	if err != nil {
		l.fail(err)
		_ = conn.WriteClose(closeProtocol, nil) // the connection is given up either way
		return
	}
	l.learnSilence(frames)
	l.expectSign()
	select {
	case l.incoming <- frames:
	case <-l.closing:
	}
	// While the owner was busy the server may well have spoken.
	l.expectSign()
}

// learnSilence reads from the welcome how long the server may be silent.
func (l *link) learnSilence(frames []wire.ServerFrame) {
	if len(frames) == 0 {
		return
	}
	if welcome, ok := frames[0].(*wire.Welcome); ok {
		l.idleFor = silenceAllowed(welcome.PingSeconds)
	}
}

// parse copies the message, because gws reuses its buffer and payloads are slices of it.
func (l *link) parse(message *gws.Message) ([]wire.ServerFrame, error) {
	defer func() {
		_ = message.Close() // gives a buffer back; never fails
	}()
	if message.Opcode != gws.OpcodeText {
		return nil, errors.New("read session: the server sent a binary message")
	}
	frames, err := l.dialect.parse(append([]byte(nil), message.Bytes()...))
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return frames, nil
}

// errReplaced ends a link whose session another connection has resumed. This client dials
// only after it has given the old link up, so the other one is not its own.
var errReplaced = errors.New("session ended: another connection has taken it over")

// closeReason is a sentence about the end of a connection.
func closeReason(err error) error {
	var closed *gws.CloseError
	if !errors.As(err, &closed) {
		return fmt.Errorf("session ended: %w", err)
	}
	switch closed.Code {
	case closeCreds:
		return wire.Refuse(wire.CodeUnauthenticated, "the server closed the session: credential missing, wrong or expired")
	case closeReplaced:
		return errReplaced
	case closeIdle:
		return errors.New("session ended: the server heard nothing from this client for too long")
	}
	reason := strings.TrimSuffix(string(closed.Reason), "; connect again") // which is done here, not by who reads this
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Errorf("the server ended the session (close code %d)%s", closed.Code, reason)
}

// greet says hello and waits for the welcome.
func (l *link) greet(ctx context.Context, hello *wire.Hello) error {
	timer := time.NewTimer(helloTimeout)
	defer timer.Stop()
	outgoing, incoming := l.outgoing, (chan []wire.ServerFrame)(nil)
	message := l.append(nil, hello)
	for {
		select {
		case outgoing <- message:
			outgoing = nil
		case <-l.written:
			incoming = l.incoming
		case frames := <-incoming:
			return l.welcomed(frames)
		case <-l.gone:
			return l.err
		case <-timer.C:
			return errors.New("session ended: no welcome came")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *link) welcomed(frames []wire.ServerFrame) error {
	if len(frames) == 0 {
		return errors.New("session ended: an empty message came instead of a welcome")
	}
	switch frame := frames[0].(type) {
	case *wire.Welcome:
		l.welcome, l.first = frame, frames[1:]
		l.adopt()
		return nil
	case *wire.WatchWelcome:
		l.present, l.first = frame, frames[1:]
		return nil
	case *wire.ErrorFrame:
		return frame.Err
	case *wire.WatchError:
		return frame.Err
	}
	return fmt.Errorf("session ended: %T came instead of a welcome", frames[0])
}
