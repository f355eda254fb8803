package bounds

import (
	"net"
	"slices"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// throttled is a worker that never stops reading and answering, a few bytes at a
// time. It has no pace of its own to keep: whether it is slow is for the server
// to find out.
type throttled struct {
	conn  net.Conn
	ended chan struct{}
}

// masked is a short frame of a client, with a mask of zeros.
func masked(opcode byte, payload string) []byte {
	return append([]byte{0x80 | opcode, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

// throttle opens a session that takes everything of a command.
func throttle(t *testing.T, addr string) *throttled {
	t.Helper()
	conn, err := idle(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // the server has ended it, if all is well
	})
	// What waits shall wait at the server, not in the buffers of this machine.
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(masked(1, `{"type":"subscribe","commands":["big"],"window":10000,"leaseSeconds":3600}`)); err != nil {
		t.Fatal(err)
	}
	c := &throttled{conn, make(chan struct{})}
	go c.read(t)
	return c
}

// read goes on until the server ends the session.
func (c *throttled) read(t *testing.T) {
	defer close(c.ended)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	some := make([]byte, 16)
	for {
		select {
		case <-t.Context().Done():
			return
		case <-tick.C:
		}
		// A pong that nobody asked for is a sign of life, and confirms nothing.
		if _, err := c.conn.Write(masked(10, "")); err != nil {
			return
		}
		if _, err := c.conn.Read(some); err != nil {
			return
		}
	}
}

// A worker that takes a few bytes a second and says all the time that it lives is
// given no more than one that takes nothing: it takes less than 4 KiB in 10
// seconds. It holds a bounded amount of memory until then, its tasks go to
// others, and nobody else notices.
func TestWorkersThatReadAFewBytesAtATimeAreCut(t *testing.T) {
	const slow, bytes, enough, more = 4, 512 << 10, 8, 4
	s := newScene(t, "--ping-seconds", "5")
	bystander, frames := s.held("kept", 1)
	before := s.server.ResidentBytes()
	var workers []*throttled
	for range slow {
		workers = append(workers, throttle(t, s.server.Addr))
	}
	tasks := 0
	for len(workers) > 0 {
		// More than they have room for, and the buffers of the system.
		if s.ready("big") < enough {
			s.post("big", more, bytes)
			tasks += more
		}
		if err := bystander.Complete(s.ctx, blackbox.RefOf(frames[0]), `{}`); err != nil {
			t.Fatalf("a session that had nothing to do with it: %v", err)
		}
		s.post("kept", 1, 2)
		frames[0] = s.take(bystander)
		workers = slices.DeleteFunc(workers, func(w *throttled) bool {
			select {
			case <-w.ended:
				return true
			default:
				return false
			}
		})
	}
	t.Logf("%d tasks were more than they and the system had room for", tasks)
	if grown := s.server.ResidentBytes() - before; grown > mayGrowBytes {
		t.Errorf("the server grew by %d MiB until they were cut", grown>>20)
	}
	reader := s.peer(s.server.Addr)
	if err := reader.Subscribe(s.ctx, "big", 50, 3600); err != nil {
		t.Fatal(err)
	}
	seen := make(map[wire.TaskID]bool)
	for range tasks {
		f := s.take(reader)
		seen[f.Task.ID] = true
		if err := reader.Complete(s.ctx, blackbox.RefOf(f), `{}`); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != tasks {
		t.Errorf("%d different tasks came, want %d", len(seen), tasks)
	}
}
