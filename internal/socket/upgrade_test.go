package socket

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/lxzan/gws"
)

// script is a connection whose client sends in, reads nothing, and closes its side behind it.
type script struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }
func (*script) SetDeadline(time.Time) error   { return nil }
func (*script) Close() error                  { return nil }

// FuzzReadLoop sends any bytes behind an upgrade. The reader ends without a panic, and the last
// thing that the client gets is one close frame, whatever it sent.
func FuzzReadLoop(f *testing.F) {
	for _, length := range []uint64{1 << 63, 1<<63 - 1, 1<<64 - 4, 1<<64 - 1, 1 << 32, 0} {
		for _, head := range [][]byte{{0x81, 0xFF}, {0x01, 0xFF}, {0x80, 0xFF}, {0x89, 0xFF}, {0x81, 0x7F}} {
			f.Add(append(binary.BigEndian.AppendUint64(head, length), 0, 0, 0, 0))
		}
	}
	f.Add([]byte{0x89, 0x80, 0, 0, 0, 0, 0x88, 0x80, 0, 0, 0, 0})
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, 'a', 0x80, 0x81, 0, 0, 0, 0, 'b'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		wire := &script{in: bytes.NewReader(sent)}
		s := &Socket{Conn: wire, below: wire, out: wire}
		request := &http.Request{Header: http.Header{headerKey: {"MDEyMzQ1Njc4OWFiY2RlZg=="}}}
		conn, err := s.Upgrade(bufio.NewReader(s), request, gws.BuiltinEventHandler{}, Protocol{Name: "codeq.test", MaxRead: 1 << 16, MaxWrite: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		wire.out.Reset() // the answer to the upgrade
		broken := 0
		s.ReadLoop(conn, new(false), func(any) { broken++ })
		var last byte
		for out := wire.out.Bytes(); len(out) > 0; out = out[2+out[1]:] {
			if last == closeFrame {
				t.Fatal("a frame behind the close frame")
			}
			if last = out[0]; broken > 0 && last == closeFrame && binary.BigEndian.Uint16(out[2:]) != CloseProtocol {
				t.Errorf("closed with %d", binary.BigEndian.Uint16(out[2:]))
			}
		}
		if last != closeFrame {
			t.Errorf("no close frame, but % x", wire.out.Bytes())
		}
	})
}
