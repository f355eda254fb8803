package callback

import (
	"context"
	"net"
	"testing"
)

// pointer sends every question about a name to one address.
type pointer struct{ to string }

func (p *pointer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "udp", p.to)
}

// pointNamesHere makes every name one of this machine, until the test is over.
func pointNamesHere(t *testing.T) {
	t.Helper()
	resolver, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: (&pointer{to: resolver.LocalAddr().String()}).dial}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answerNames(resolver)
	}()
	t.Cleanup(func() {
		net.DefaultResolver = before
		if err := resolver.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
}

// answerNames answers each question for an IPv4 address with 127.0.0.1, and all others with
// nothing, until the connection is closed.
func answerNames(from net.PacketConn) {
	question := make([]byte, 512)
	for {
		n, who, err := from.ReadFrom(question)
		if err != nil {
			return
		}
		end := 12
		for end < n && question[end] != 0 {
			end += int(question[end]) + 1
		}
		end += 5
		answer := append([]byte{}, question[:end]...)
		copy(answer[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
		if question[end-3] == 1 { // a question for an IPv4 address
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1)
		}
		if _, err := from.WriteTo(answer, who); err != nil {
			return
		}
	}
}
