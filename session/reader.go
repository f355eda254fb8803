package session

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/lxzan/gws"

	"codeq/wire"
)

// read is the goroutine of the reader: it runs gws until the socket ends, and then ends the
// session.
func (s *session) read() {
	defer s.registry.remove(s)
	s.readLoop()
	s.happened(&SocketEnded{Code: s.endedWith})
	s.socket.Drain()
	s.socket.Cut()
	s.writer.Stop()
}

// readLoop runs gws. A panic of our handlers is a broken invariant and ends the process.
func (s *session) readLoop() {
	s.socket.ReadLoop(s.conn, &s.inHandler, func(p any) {
		s.registry.o.Log.Warn().Stringer("remote", s.socket.RemoteAddr()).Str("panic", fmt.Sprint(p)).
			Msg("session: a frame that the WebSocket library cannot read; the socket is closed")
	})
}

// OnOpen implements gws.Event.
func (s *session) OnOpen(*gws.Conn) {}

// OnClose implements gws.Event. ReadLoop returns next, and the session ends then.
func (s *session) OnClose(_ *gws.Conn, err error) {
	if said := new(gws.CloseError); errors.As(err, &said) {
		s.endedWith = said.Code
	}
}

// OnPing implements gws.Event. The writer echoes the payload.
func (s *session) OnPing(_ *gws.Conn, payload []byte) {
	s.handle(func() { s.happened(&Ping{Payload: payload}) })
}

// OnPong implements gws.Event.
func (s *session) OnPong(_ *gws.Conn, payload []byte) {
	s.handle(func() { s.happened(&Pong{Payload: payload}) })
}

// OnMessage implements gws.Event. It returns when the conversation takes the next message, and
// so stops reading from a client that asks faster than it takes answers.
func (s *session) OnMessage(_ *gws.Conn, message *gws.Message) {
	s.handle(func() {
		// gws uses the buffer again, and parsed frames keep parts of the message.
		data := bytes.Clone(message.Bytes())
		opcode := message.Opcode
		_ = message.Close() // only returns the buffer
		if opcode != gws.OpcodeText {
			s.happened(&violation{Err: wire.Refuse(wire.CodeInvalidBody,
				"messages of this protocol are text, got a binary one")})
			return
		}
		s.receive(data)
	})
}

func (s *session) handle(f func()) {
	s.inHandler = true
	f()
	s.inHandler = false
}

// receive steps the conversation by a message, and then by what it needs, until it takes the
// next message.
func (s *session) receive(data []byte) {
	s.mu.Lock()
	s.step(&ClientMessage{Data: data})
	for {
		s.wakeWriter()
		switch s.talk.Needs() {
		case NeedNothing:
			s.mu.Unlock()
			return
		case NeedPrincipal:
			s.authenticate()
		case NeedAnswers:
			for !s.talk.Over() && !s.talk.MayContinue() {
				s.mayRead.Wait()
			}
			s.step(&Continue{})
		}
	}
}
