package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// A connection that has just been used keeps its place for a moment, and one that
// has been idle for longest is closed for another.
func TestN14TheOldestIdleConnectionMakesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLimitListener(nil, 2, zerolog.Nop())
		first, second := d.admit(&net.TCPConn{}), d.admit(&net.TCPConn{})
		first.put(d.idle)
		time.Sleep(time.Millisecond)
		second.put(d.idle)
		if d.admit(&net.TCPConn{}) != nil {
			t.Error("a connection lost its place that was used a moment ago")
		}
		time.Sleep(idleAtLeast)
		if d.admit(&net.TCPConn{}) == nil {
			t.Error("no place was made")
		}
		if first.list != nil || second.list != d.idle || d.count() != 2 {
			t.Errorf("the first is in %v, the second in %v, and %d are open", first.list, second.list, d.count())
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
		writeRefusal(conn)
	}()
	select {
	case <-told:
	case <-time.After(patience):
		t.Error("the client is still waited for")
		_ = conn.Close() // so that the goroutine ends
		<-told
	}
}

// Every refused client is told, however many were refused before it: the answer to one
// ends when that client has left.
func TestN14EveryoneWhoIsRefusedInTurnIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := newLimitListener(nil, 0, zerolog.Nop())
	const clients = 2*refusals + 8
	for n := range clients {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		d.refuse(conn)
		if err := client.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(client); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 503 ") {
			t.Errorf("client %d hears %q, %v", n+1, said, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		d.answered.Wait()
	}
	if refused := d.refused.Load(); refused != clients {
		t.Errorf("%d are counted, want %d", refused, clients)
	}
}

// One connection more than may get the answer of a refusal is closed without one and
// counted, and the log has one line for all refusals until refusalsLogEvery is over.
func TestN14WhoIsOneTooManyToBeToldIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &strings.Builder{}
		d := newLimitListener(nil, 0, zerolog.New(log))
		for range refusals {
			d.refusing <- struct{}{}
		}
		refuse := func() {
			near, far := net.Pipe()
			d.refuse(far)
			if n, err := near.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("heard %d bytes, %v", n, err)
			}
		}
		refuse()
		time.Sleep(refusalsLogEvery - time.Nanosecond)
		refuse()
		if lines := strings.Count(log.String(), "\n"); lines != 1 || d.refused.Load() != 2 {
			t.Errorf("%d lines of %d refusals, want 1 of 2", lines, d.refused.Load())
		}
		time.Sleep(time.Nanosecond)
		refuse()
		if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), `"refused":3`) {
			t.Errorf("later the log has %s", log)
		}
	})
}
