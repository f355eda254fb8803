package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// A connection that has just been used keeps its place for a moment, and one that
// has been idle for longest is closed for another.
func TestN14TheOldestIdleConnectionMakesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(nil, 2, zerolog.Nop())
		first, second := d.enter(&net.TCPConn{}), d.enter(&net.TCPConn{})
		first.rest()
		time.Sleep(time.Millisecond)
		second.rest()
		if d.enter(&net.TCPConn{}) != nil {
			t.Error("a connection lost its place that was used a moment ago")
		}
		time.Sleep(spareFor)
		if d.enter(&net.TCPConn{}) == nil {
			t.Error("no place was made")
		}
		if first.in != nil || second.in != d.idle || d.count() != 2 {
			t.Errorf("the first is in %v, the second in %v, and %d are open", first.in, second.in, d.count())
		}
	})
}

// A client that is refused and neither reads nor leaves is let go of soon: it holds
// a descriptor, and a server that stops waits for it.
func TestN14ARefusedClientThatStaysIsLetGo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		tellRefusal(conn)
	}()
	select {
	case <-told:
	case <-time.After(patience):
		t.Error("the client is still waited for")
		_ = conn.Close() // so that the goroutine ends
		<-told
	}
}
