package peer

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	closeServiceRestart = 1012
	// farewellText is the reason in the close frame; clients connect again.
	farewellText = "the leader of the cluster was lost; connect again"
	// lingerFor is how long a client may take to read the close frame.
	lingerFor = time.Second
)

type readWriteCloser interface {
	io.ReadWriteCloser
}

// farewell is the leader's side of a passed socket. When it ends without a close frame, it says
// one with 1012 in place of the leader, if the last frame was whole. One goroutine reads.
type farewell struct {
	readWriteCloser
	frames frames
	last   []byte
	ending bool
}

// Read implements io.Reader.
func (f *farewell) Read(p []byte) (int, error) {
	if !f.ending {
		n, err := f.readWriteCloser.Read(p)
		f.frames.pass(p[:n])
		if err == nil || n > 0 {
			return n, nil
		}
		f.ending = true
		if f.frames.between() {
			f.last = binary.BigEndian.AppendUint16([]byte{0x88, byte(2 + len(farewellText))}, closeServiceRestart)
			f.last = append(f.last, farewellText...)
		}
	}
	if len(f.last) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.last)
	f.last = f.last[n:]
	return n, nil
}

// CloseWrite passes the end of the client's side on.
func (f *farewell) CloseWrite() error {
	if half, ok := f.readWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return f.Close()
}

// frames knows where the frames of a WebSocket end. The zero value is before the first one.
type frames struct {
	head   [10]byte
	have   int    // bytes of head
	left   uint64 // bytes of the payload that are to come
	inside bool   // the head is whole, the payload is not
	closed bool   // there was a close frame
}

// pass takes the next bytes that a server sends.
func (f *frames) pass(p []byte) {
	const opcode, closing = 0x0f, 0x08
	for len(p) > 0 {
		if f.inside {
			n := min(uint64(len(p)), f.left)
			p, f.left = p[n:], f.left-n
			f.inside = f.left > 0
			continue
		}
		f.head[f.have] = p[0]
		f.have, p = f.have+1, p[1:]
		if f.have < 2 || f.have < f.headBytes() {
			continue
		}
		f.closed = f.closed || f.head[0]&opcode == closing
		f.left = f.payloadBytes()
		f.have, f.inside = 0, f.left > 0
	}
}

// headBytes is the length of the head, of which two bytes are there.
func (f *frames) headBytes() int {
	switch f.head[1] & 0x7f {
	case 126:
		return 4
	case 127:
		return 10
	}
	return 2
}

// payloadBytes is the length of the payload. A server's frames have no mask; one that has is
// counted with it.
func (f *frames) payloadBytes() uint64 {
	const masked, maskBytes = 0x80, 4
	n := uint64(f.head[1] & 0x7f)
	switch n {
	case 126:
		n = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		n = min(binary.BigEndian.Uint64(f.head[2:]), 1<<62)
	}
	if f.head[1]&masked != 0 {
		n += maskBytes
	}
	return n
}

// between reports whether another frame may follow.
func (f *frames) between() bool { return !f.closed && !f.inside && f.have == 0 }

// upgradable is the connection of a client for the proxy, which would lose what came with the
// request for an upgrade, and leave a client that does not close its side open.
type upgradable struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (u upgradable) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// Hijack implements http.Hijacker.
func (u upgradable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &lingering{Conn: conn, in: rw.Reader}, rw, nil
}

// lingering is a connection whose buffer is read first, and that waits for the other side for
// lingerFor after this side is closed.
type lingering struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (l *lingering) Read(p []byte) (int, error) { return l.in.Read(p) }

// CloseWrite ends this side.
func (l *lingering) CloseWrite() error {
	half, ok := l.Conn.(interface{ CloseWrite() error })
	if !ok {
		return l.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	return l.SetReadDeadline(time.Now().Add(lingerFor))
}
