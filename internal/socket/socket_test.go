package socket

import (
	"bytes"
	"net"
	"testing"
)

// packets is a connection that remembers what each Write got.
type packets struct {
	net.Conn
	got [][]byte
	err error
}

func (p *packets) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	p.got = append(p.got, bytes.Clone(b))
	return len(b), nil
}

func (p *packets) Close() error { p.err = net.ErrClosed; return nil }

func frame(first byte, n int) []byte { return append([]byte{first}, make([]byte, n)...) }

func TestFramesBetweenHoldAndReleaseLeaveInOneWrite(t *testing.T) {
	const text, ping = 0x81, 0x89
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   []int
	}{
		{"a message and its ping", [][]byte{frame(text, 300), frame(ping, 3)}, []int{305}},
		{"nothing", nil, nil},
		{"more than is kept", [][]byte{frame(text, 10), frame(text, mostHeldBytes), frame(ping, 1)}, []int{11, mostHeldBytes + 1, 2}},
		{"a close frame", [][]byte{frame(text, 10), frame(closeFrame, 5), frame(text, 2)}, []int{11, 6, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := &packets{}
			s := &Socket{Conn: wire, below: wire, out: wire}
			s.Hold()
			for _, f := range c.frames {
				if n, err := s.Write(f); n != len(f) || err != nil {
					t.Fatalf("wrote %d of %d, %v", n, len(f), err)
				}
			}
			if err := s.Release(); err != nil {
				t.Fatal(err)
			}
			if len(wire.got) != len(c.want) {
				t.Fatalf("%d writes, want %v", len(wire.got), c.want)
			}
			for i, b := range wire.got {
				if len(b) != c.want[i] {
					t.Errorf("write %d has %d bytes, want %d", i, len(b), c.want[i])
				}
			}
			if _, err := s.Write(frame(text, 1)); err != nil || len(wire.got) != len(c.want)+1 {
				t.Errorf("a frame after Release was kept, or %v", err)
			}
		})
	}
}

func TestAFailedReleaseClosesTheConnection(t *testing.T) {
	wire := &packets{}
	s := &Socket{Conn: wire, below: wire, out: wire}
	s.Hold()
	if _, err := s.Write(frame(0x81, 10)); err != nil {
		t.Fatal(err)
	}
	wire.err = net.ErrClosed
	if s.Release() == nil {
		t.Error("the failure was not told")
	}
	if _, err := s.Write(frame(0x81, 1)); err == nil {
		t.Error("a frame was written after half of another")
	}
}
