package chaos

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends lines back; it ends with the test.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // nobody else closes it
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn) // until one side ends
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// say sends a line through a connection and returns what comes back within a second.
func say(t *testing.T, conn net.Conn, line string) (string, error) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

func TestProxyCarriesDropsAndCuts(t *testing.T) {
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the proxy may have ended it
		return conn
	}
	conn := dial()
	if got, err := say(t, conn, "a"); err != nil || got != "a\n" {
		t.Errorf("a good network answers %q, %v", got, err)
	}
	p.Silence(Down)
	var late net.Error
	if _, err := say(t, conn, "b"); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a silent network answers %v", err)
	}
	p.Cut()
	if _, err := say(t, conn, "c"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
		t.Errorf("a cut connection answers %v", err)
	}
	p.Heal()
	if got, err := say(t, dial(), "d"); err != nil || got != "d\n" || p.Taken() != 2 {
		t.Errorf("a new connection answers %q, %v, and is number %d", got, err, p.Taken())
	}
}
