package session

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"

	"codeq/internal/paced"
)

// lingerFor is how long a socket that said goodbye still reads, so that the
// goodbye is not lost: closing over unread bytes makes the kernel drop what
// the peer has not read yet.
const lingerFor = time.Second

// socket is the connection below gws. It writes for as long as the client takes
// anything, puts the close codes of the protocol into close frames that gws makes on its own,
// and turns a close into a half-close, behind which the reader still reads for
// a moment. Any goroutine; cut ends whatever is stuck in it.
type socket struct {
	net.Conn
	pace *paced.Writer
	// readBytes is how much the client has sent.
	readBytes atomic.Int64
	// parting is set once our side has said all it will.
	parting atomic.Bool
}

func newSocket(conn net.Conn) *socket {
	if c, ok := conn.(interface{ Pace() *paced.Writer }); ok {
		return &socket{Conn: conn, pace: c.Pace()}
	}
	return &socket{Conn: conn, pace: paced.NewWriter(conn)}
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.readBytes.Add(int64(n))
	return n, err
}

// readsFor has a buffered reader of the connection read through the socket, behind
// what it holds already.
func (s *socket) readsFor(r *bufio.Reader) {
	held, _ := r.Peek(r.Buffered()) // so much is there
	if len(held) == 0 {
		r.Reset(s)
		return
	}
	r.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(held)), s))
}

// Write passes one whole WebSocket frame on, which is how gws writes.
func (s *socket) Write(frame []byte) (int, error) {
	n, err := s.pace.Write(withCloseCode(frame))
	if err != nil {
		// A frame that is cut short is the end of the stream. Otherwise gws would
		// try a close frame behind it, for as long again.
		s.cut()
	}
	return n, err
}

// withCloseCode replaces, in a close frame, the code by which gws says that
// the client broke a rule. Anything else is returned as it is.
func withCloseCode(frame []byte) []byte {
	const (
		closeFrame = 0x88
		// A server's frame has two bytes of header and no mask; a close frame is
		// too short for more.
		codeAt = 2

		wsProtocolError = 1002
		wsInvalidData   = 1007
		wsTooLarge      = 1009
	)
	if len(frame) < codeAt+2 || frame[0] != closeFrame {
		return frame
	}
	switch binary.BigEndian.Uint16(frame[codeAt:]) {
	case wsProtocolError, wsInvalidData, wsTooLarge:
		frame = append([]byte(nil), frame...)
		binary.BigEndian.PutUint16(frame[codeAt:], CloseProtocol)
	}
	return frame
}

// Close ends our side. The reader gets what the client still sends, until the
// client closes too or lingerFor is over; then it cuts.
func (s *socket) Close() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok || s.parting.Swap(true) {
		return s.Conn.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return s.Conn.Close()
	}
	return s.Conn.SetReadDeadline(time.Now().Add(lingerFor))
}

// drain reads on after a half-close, so that the client gets our last words.
func (s *socket) drain() {
	if !s.parting.Load() {
		return
	}
	// A client that floods us is not waited for any longer than one that is
	// silent: the deadline stands.
	scratch := make([]byte, 16<<10)
	for {
		if _, err := s.Conn.Read(scratch); err != nil {
			return
		}
	}
}

// cut closes the connection at once, whatever is under way on it.
func (s *socket) cut() {
	_ = s.Conn.Close() // it is being given up; there is nothing to do about an error
}
