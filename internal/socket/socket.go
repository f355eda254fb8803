package socket

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"codeq/internal/paced"
)

// lingerFor is how long a socket reads after its close frame. If a socket is closed with unread
// bytes, the system drops what the client has not read, the close frame included.
const lingerFor = time.Second

// mostHeldBytes bounds the frames that a socket keeps between Hold and Release.
const mostHeldBytes = 16 << 10

// closeFrame is the first byte of a frame that closes.
const closeFrame = 0x88

// CloseProtocol is the close code for a client that broke a rule of the protocol.
const CloseProtocol = 4400

// Socket is the connection below gws, over TLS or not. It writes for as long as the client takes enough, puts the
// close codes of the protocol into the close frames of gws, and closes only its own side
// first, so that the reader reads until lingerFor is over. Any goroutine; Cut ends every call
// that waits.
type Socket struct {
	net.Conn
	// Pace writes to below, the connection without TLS; frames go to out.
	Pace  *paced.Writer
	below net.Conn
	out   io.Writer
	// ReadBytes is how much the client has sent.
	ReadBytes atomic.Int64
	// Parting is set once our side is closed.
	Parting atomic.Bool
	// leader is where clients reach the leader of a cluster, for the answer to the upgrade.
	leader []string

	// mu is held by whoever writes. held are frames that wait for Release.
	mu    sync.Mutex
	holds bool
	held  []byte
}

// New is the socket over a connection.
func New(conn net.Conn) *Socket {
	s := &Socket{Conn: conn, below: conn}
	if secured, ok := conn.(*tls.Conn); ok {
		s.below, s.out = secured.NetConn(), conn
	}
	if c, ok := s.below.(interface{ Pace() *paced.Writer }); ok {
		s.Pace = c.Pace()
	} else {
		s.Pace = paced.NewWriter(s.below)
	}
	if s.out == nil {
		s.out = s.Pace
	}
	return s
}

// Read implements net.Conn.
func (s *Socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.ReadBytes.Add(int64(n))
	return n, err
}

// readsFor makes a buffered reader of the connection read from the socket after the bytes that
// it has already.
func (s *Socket) readsFor(r *bufio.Reader) {
	held, _ := r.Peek(r.Buffered()) // these bytes are there, so it cannot fail
	if len(held) == 0 {
		r.Reset(s)
		return
	}
	r.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(held)), s))
}

// Write writes one WebSocket frame, or keeps it for Release; gws calls it with whole frames.
func (s *Socket) Write(frame []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame = withCloseCode(frame)
	if s.holds && len(s.held)+len(frame) <= mostHeldBytes && frame[0] != closeFrame {
		s.held = append(s.held, frame...)
		return len(frame), nil
	}
	if err := s.release(); err != nil {
		return 0, err
	}
	return s.write(frame)
}

// Hold keeps frames until Release, at most mostHeldBytes of them: a message and the ping after it
// then cost each side one system call instead of two. A close frame is not kept.
func (s *Socket) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = true
}

// Release writes the frames that were kept, and keeps no others.
func (s *Socket) Release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = false
	return s.release()
}

func (s *Socket) release() error {
	if len(s.held) == 0 {
		return nil
	}
	_, err := s.write(s.held)
	s.held = s.held[:0]
	return err
}

func (s *Socket) write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	if err != nil {
		// After a part of a frame nothing can be sent. gws would otherwise try to write a close
		// frame, for as long again.
		s.Cut()
	}
	return n, err
}

// withCloseCode replaces, in a close frame of gws, the code for a client that broke a rule. Every
// other frame stays as it is.
func withCloseCode(frame []byte) []byte {
	const (
		// The header of a close frame of a server has two bytes, and no mask.
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

// Close closes our side. The reader reads until the client closes as well or lingerFor is over,
// and then closes the connection.
func (s *Socket) Close() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok || s.Parting.Swap(true) {
		return s.Conn.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return s.Conn.Close()
	}
	return s.Conn.SetReadDeadline(time.Now().Add(lingerFor))
}

// Drain reads after our side is closed, so that the client gets the close frame.
func (s *Socket) Drain() {
	if !s.Parting.Load() {
		return
	}
	// The deadline of Close bounds this, also for a client that sends all the time.
	scratch := make([]byte, 16<<10)
	for {
		if _, err := s.Conn.Read(scratch); err != nil {
			return
		}
	}
}

// Cut closes the connection at once, without the last words of TLS, which a client that does not
// read would hold up.
func (s *Socket) Cut() {
	_ = s.below.Close() // nobody uses it any more, so an error means nothing
}
