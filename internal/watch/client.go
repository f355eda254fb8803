package watch

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/internal/socket"
	"codeq/wire"
)

// Close codes, which are those of sessions.
const (
	closeCredential = 4401
	closeIdle       = 4408
	closeRestart    = 1012
)

// outgoing is what a writer writes next, in this order.
type outgoing struct {
	pong    []byte
	ping    bool
	message []byte
	closing *closing
}

// closing is how the server ends a socket.
type closing struct {
	code   uint16
	reason string
}

// client is one socket or stream. A socket has a reader, which gws drives, and a writer.
type client struct {
	hub *Hub
	// cut ends every call that waits for the client.
	cut      func()
	isStream bool
	ctx      context.Context
	// out has room for one; the hub sends only when the writer has written the last one.
	out chan outgoing
	// ended is closed when the hub has dropped the client.
	ended chan struct{}
	// heard: the client has sent something since the last ping.
	heard atomic.Bool

	// Owned by the goroutine of the hub. sub is nil until a hello, who until a good one, which must
	// come by helloBy.
	sub      *Subscriber
	who      *auth.Principal
	helloBy  int64
	busy     bool
	pong     []byte
	ping     bool
	closing  *closing
	closes   bool
	left     bool
	pingAtMs int64
	missed   int
	mayRead  chan struct{}
	// reads: a page of the client is being read.
	reads bool
}

func newClient(h *Hub, ctx context.Context, cut func()) *client {
	return &client{hub: h, ctx: ctx, cut: cut, out: make(chan outgoing, 1), ended: make(chan struct{})}
}

// written tells the hub that the client takes more.
func (c *client) written() {
	c.hub.do(func() {
		c.busy = false
		c.hub.feed(c)
	})
}

// call runs f on the goroutine of the hub and feeds the client. It returns when the client may be
// read again.
func (c *client) call(f func()) {
	done := make(chan struct{})
	c.hub.do(func() {
		if !c.closes {
			f()
			c.hub.feed(c)
		}
		if !c.closes && c.sub != nil && c.sub.Answers() >= maxAnswers {
			c.mayRead = done
			return
		}
		close(done)
	})
	select {
	case <-done:
	case <-c.ended:
	}
}

// shows reads what a subscription shows first, before the hub takes it, and the positions before
// that, so that no event is between.
func (c *client) shows(who *auth.Principal, f wire.ClientFrame) *Shows {
	w, ok := f.(*wire.WatchSubscribe)
	if !ok || w.Kind != wire.WatchTask && w.Kind != wire.WatchPage {
		return nil
	}
	o, shows := &c.hub.o, &Shows{At: c.hub.o.Events.Positions()}
	if w.Kind == wire.WatchPage {
		shows.Page, shows.Err = o.ReadPage(c.ctx, who, w)
		return shows
	}
	tasks, refusal := o.ReadTasks(c.ctx, who, []wire.TaskID{w.TaskID})
	switch {
	case refusal != nil:
		shows.Err = refusal
	case len(tasks) == 0:
		shows.Err = wire.Refuse(wire.CodeTaskNotFound, fmt.Sprint("there is no task ", w.TaskID))
	default:
		shows.Task, shows.Err = tasks[0], who.CheckSight(tasks[0].Command)
	}
	return shows
}

// webSocket is a client over a WebSocket.
type webSocket struct {
	gws.BuiltinEventHandler
	*client
	socket *socket.Socket
	conn   *gws.Conn
	// header is the principal of the upgrade, nil without a credential in it.
	header *auth.Principal
	// tenant is what the upgrade names, "" for none: credentials of hellos act for it.
	tenant string
	cancel context.CancelFunc
	// Owned by the reader. said is the principal of the last good hello, nil before it.
	inHandler bool
	said      *auth.Principal
}

// Upgrade makes the connection of a request a socket that watches, which outlives the request. The
// caller has checked the headers of the upgrade and the credential; with a nil principal the hello
// has the credential. After a refusal the caller answers the request.
func (h *Hub) Upgrade(w http.ResponseWriter, req *http.Request, principal *auth.Principal) *wire.Error {
	if refusal := h.reserve(); refusal != nil {
		return refusal
	}
	conn, buffered, err := socket.Take(w)
	if err != nil {
		h.release()
		h.o.Log.Debug().Err(err).Msg("events: the connection cannot be taken over")
		return wire.Refuse(wire.CodeInternal, "the connection cannot be upgraded")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &webSocket{client: newClient(h, ctx, conn.Cut), socket: conn, header: principal, tenant: req.Header.Get(auth.HeaderTenant), cancel: cancel}
	s.conn, err = conn.Upgrade(buffered, req, s, socket.Protocol{
		Name: wire.WatchSubprotocol, MaxRead: wire.MaxWatchMessageBytes, MaxWrite: maxWriteBytes,
	})
	if err != nil {
		cancel()
		conn.Cut()
		h.release()
		h.o.Log.Debug().Err(err).Msg("events: upgrade failed")
		return nil // nobody reads an answer on this connection
	}
	h.admit(s.client)
	go s.write()
	go s.read()
	return nil
}

// maxWriteBytes is more than the largest frame, a task with the largest payload.
const maxWriteBytes = 4 << 20

// end ends the socket from any goroutine.
func (s *webSocket) end(code uint16, reason string) {
	s.hub.do(func() { s.hub.end(s.client, code, reason) })
}

// read is the goroutine of the reader.
func (s *webSocket) read() {
	defer s.hub.release()
	s.socket.ReadLoop(s.conn, &s.inHandler, func(p any) {
		s.hub.o.Log.Warn().Stringer("remote", s.socket.RemoteAddr()).Str("panic", fmt.Sprint(p)).
			Msg("events: a frame that the WebSocket library cannot read; the socket is closed")
	})
	s.cancel()
	s.hub.do(func() { s.hub.leave(s.client) })
	s.socket.Drain()
	s.socket.Cut()
	<-s.ended
}

// write is the goroutine of the writer. It ends when the hub has dropped the client.
func (s *webSocket) write() {
	for o := range s.out {
		var err error
		if o.pong != nil {
			err = s.conn.WritePong(o.pong)
		}
		if err == nil && o.ping {
			err = s.conn.WritePing(nil)
		}
		if err == nil && o.message != nil {
			err = s.conn.WriteMessage(gws.OpcodeText, o.message)
		}
		if err == nil && o.closing != nil {
			// The reader ends when the client closes, or after a second.
			_ = s.conn.WriteClose(o.closing.code, []byte(o.closing.reason)) // it closes the socket in any case
			continue
		}
		if err != nil {
			s.hub.o.Log.Debug().Err(fmt.Errorf("write events: %w", err)).Msg("events: given up")
			s.cut()
			s.hub.do(func() { s.hub.leave(s.client) })
			continue
		}
		s.written()
	}
}

// OnPing implements gws.Event. The writer echoes the payload.
func (s *webSocket) OnPing(_ *gws.Conn, payload []byte) {
	s.heard.Store(true)
	payload = append([]byte{}, payload...)
	s.call(func() { s.pong = payload })
}

// OnPong implements gws.Event.
func (s *webSocket) OnPong(*gws.Conn, []byte) { s.heard.Store(true) }

// OnMessage implements gws.Event. It returns when the next message may be read.
func (s *webSocket) OnMessage(_ *gws.Conn, message *gws.Message) {
	s.inHandler = true
	defer func() { s.inHandler = false }()
	s.heard.Store(true)
	// gws uses the buffer again, and parsed frames keep parts of the message.
	data := bytes.Clone(message.Bytes())
	opcode := message.Opcode
	_ = message.Close() // only returns the buffer
	if opcode != gws.OpcodeText {
		s.end(socket.CloseProtocol, "messages of this protocol are text, got a binary one")
		return
	}
	list, violation := wire.ParseWatchRequest(data)
	if violation != nil {
		s.end(socket.CloseProtocol, wire.Head(violation.Sentence, maxReasonBytes))
		return
	}
	for _, f := range list {
		if hello, ok := f.(*wire.Hello); ok {
			s.hello(hello)
			continue
		}
		if s.said == nil {
			s.end(socket.CloseProtocol, "the first frame must be a hello")
			return
		}
		shows := s.shows(s.said, f)
		s.call(func() { s.sub.Take(s.hub.o.NowMs(), f, shows) })
	}
}

// maxReasonBytes is what the reason of a close frame may have.
const maxReasonBytes = 123

// hello checks a credential, and makes the socket a subscriber or renews its rights.
func (s *webSocket) hello(f *wire.Hello) {
	who, refusal := s.header, (*wire.Error)(nil)
	if f.Token != "" || who == nil {
		if who, refusal = s.hub.o.Auth.Authenticate(s.ctx, f.Token); refusal == nil {
			who, refusal = who.For(s.tenant)
		}
	}
	s.call(func() {
		switch {
		case refusal != nil:
		case s.sub == nil:
			if refusal = s.hub.join(s.client, who, asArray); refusal == nil {
				s.sub.ok(f.Ref)
			}
		default:
			if refusal = s.sub.Renew(who); refusal == nil {
				s.who = who
				s.sub.ok(f.Ref)
			}
		}
	})
	if refusal == nil {
		s.said = who
		return
	}
	code := uint16(closeRestart) // such as auth_unavailable
	if auth.AboutWho(refusal) {
		code = closeCredential
		if s.hub.o.Refused != nil {
			s.hub.o.Refused(auth.Attempt{Remote: s.socket.RemoteAddr().String(), What: "hello", Who: who, Refusal: refusal})
		}
	}
	s.hub.do(func() {
		if s.sub == nil {
			s.sub = &Subscriber{board: s.hub.board, markAtMs: math.MaxInt64} // it gets this one answer
		}
		s.sub.Say(&wire.WatchError{ErrorFrame: wire.ErrorFrame{Ref: f.Ref, Err: refusal}})
		s.hub.end(s.client, code, wire.Head(refusal.Sentence, maxReasonBytes))
	})
}
