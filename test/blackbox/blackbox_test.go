package blackbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(Exit)) }

// patience is how long something may take that must happen.
const patience = 20 * time.Second

// soon is how long a test watches for what must not happen.
const soon = 150 * time.Millisecond

// echo is a server that says every line back, and tells how a connection ended.
type echo struct {
	addr  string
	lines chan string
	ended chan error
}

func newEcho(t *testing.T) *echo {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{addr: listener.Addr().String(), lines: make(chan string, 100), ended: make(chan error, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close() // the test is over
		<-done
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			e.ended <- err
			_ = conn.Close() // it has ended
			return
		}
		e.lines <- line
		_, _ = io.WriteString(conn, line) // the other side may be gone
	}
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	return conn
}

func say(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func hear(conn net.Conn, within time.Duration) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	buffer := make([]byte, 100)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}

func mustHear(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	if got, err := hear(conn, patience); got != want || err != nil {
		t.Fatalf("heard %q (%v), want %q", got, err, want)
	}
}

func mustHearNothing(t *testing.T, conn net.Conn) {
	t.Helper()
	var late net.Error
	if got, err := hear(conn, soon); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("heard %q (%v), want silence", got, err)
	}
}

func TestProxyIsSilentOneWay(t *testing.T) {
	e := newEcho(t)
	p := NewProxy(t, e.addr)
	conn := dial(t, p)
	say(t, conn, "a")
	mustHear(t, conn, "a\n")
	p.Silence(Down)
	say(t, conn, "b")
	mustHearNothing(t, conn)
	if <-e.lines != "a\n" || <-e.lines != "b\n" {
		t.Error("the way up is not open")
	}
	p.Silence(Up)
	say(t, conn, "c")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-e.lines:
		t.Errorf("%q came through", line)
	case err := <-e.ended:
		t.Errorf("the server learned of the end: %v", err)
	case <-time.After(soon):
	}
	p.Cut()
	select {
	case <-e.ended:
	case <-time.After(patience):
		t.Error("a cut does not reach the server")
	}
}

func TestProxyStopsInTheMiddle(t *testing.T) {
	p := NewProxy(t, newEcho(t).addr)
	conn := dial(t, p)
	say(t, conn, "first")
	mustHear(t, conn, "first\n")
	p.SilenceAfter(Down, 4)
	say(t, conn, "second")
	mustHear(t, conn, "seco")
	mustHearNothing(t, conn)
	if got := p.CarriedBytes(Down); got != 10 {
		t.Errorf("%d bytes went down", got)
	}
}

func TestProxyHoldsAndHeals(t *testing.T) {
	p := NewProxy(t, newEcho(t).addr)
	conn := dial(t, p)
	p.Hold(Up)
	say(t, conn, "late")
	mustHearNothing(t, conn)
	p.Heal()
	mustHear(t, conn, "late\n")
	p.Delay(soon, Down)
	began := time.Now()
	say(t, conn, "later")
	mustHear(t, conn, "later\n")
	if took := time.Since(began); took < soon {
		t.Errorf("the answer took only %v", took)
	}
}

func TestProxyCutsWhatIsIdle(t *testing.T) {
	p := NewProxy(t, newEcho(t).addr)
	p.CutIdle(2 * soon)
	conn := dial(t, p)
	for range 5 {
		say(t, conn, "x")
		mustHear(t, conn, "x\n")
		mustHearNothing(t, conn)
	}
	if _, err := hear(conn, patience); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection says %v", err)
	}
}

func TestProxyHealsNewConnectionsOnly(t *testing.T) {
	p := NewProxy(t, newEcho(t).addr)
	old := dial(t, p)
	say(t, old, "a")
	mustHear(t, old, "a\n")
	p.Silence(Up, Down)
	p.Heal()
	say(t, old, "b")
	mustHearNothing(t, old)
	p.Cut()
	fresh := dial(t, p)
	say(t, fresh, "c")
	mustHear(t, fresh, "c\n")
}

func TestProxyResetsAndRefuses(t *testing.T) {
	e := newEcho(t)
	p := NewProxy(t, e.addr)
	conn := dial(t, p)
	say(t, conn, "a")
	mustHear(t, conn, "a\n")
	p.Cut()
	if _, err := hear(conn, patience); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut connection says %v", err)
	}
	if err := <-e.ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server is told %v", err)
	}
	p.Refuse()
	refused, err := net.Dial("tcp", p.Addr) // the reset may come before this returns
	if err == nil {
		_, err = hear(refused, patience)
		_ = refused.Close() // nothing was said on it
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a refused connection says %v", err)
	}
	if p.Taken() != 2 {
		t.Errorf("%d connections were taken", p.Taken())
	}
}

func TestProxyLeavesTheServerHalfOpen(t *testing.T) {
	e := newEcho(t)
	p := NewProxy(t, e.addr)
	conn := dial(t, p)
	say(t, conn, "a")
	mustHear(t, conn, "a\n")
	p.HalfOpen()
	if _, err := hear(conn, patience); err == nil {
		t.Error("the client's side is still open")
	}
	select {
	case err := <-e.ended:
		t.Errorf("the server learned of the end: %v", err)
	case <-time.After(soon):
	}
}

func TestProgramServesAPeerAcrossAKill(t *testing.T) {
	s := Serve(t, "--shards", "1")
	api := NewAPI(s.Addr)
	defer api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	task, err := api.Post(ctx, `{"command":"c","payload":1}`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Dial(ctx, s.Addr, &wire.Hello{WorkerID: "w"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Subscribe(ctx, "c", 1, 60); err != nil {
		t.Fatal(err)
	}
	f := <-p.Tasks
	s.Kill()
	<-p.Gone()
	if err := p.Complete(ctx, RefOf(f), `{}`); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("a dead server answers %v", err)
	}
	s.Start()
	again, err := Dial(ctx, s.Addr, &wire.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Complete(ctx, RefOf(f), `{"n":1}`); err != nil {
		t.Errorf("the new server refuses the old delivery: %v", err)
	}
	if task, err = api.Read(ctx, task.ID); err != nil || task.Status != wire.StatusCompleted {
		t.Errorf("the task is %+v (%v)", task, err)
	}
	if s.ResidentBytes() < 1<<20 {
		t.Errorf("a server of %d bytes", s.ResidentBytes())
	}
	again.Close()
	s.Stop()
	s.Start()
}

// Between two lives of a server its port is nobody else's.
func TestAddressIsKeptWhileNobodyListens(t *testing.T) {
	address := Address(t)
	local, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	e := newEcho(t)
	for range 3 {
		conn, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", e.addr)
		if err == nil {
			_ = conn.Close() // it must not be there
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a connection from %s says %v", address, err)
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens on %s, and a connection to it is %v, %v", address, conn, err)
	}
}
