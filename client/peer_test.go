package client

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lxzan/gws"
	"go.uber.org/goleak"

	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is the server of a test: it takes the client's connections, and each
// becomes a peer that the test speaks through. Made inside a bubble, all its
// time is the bubble's.
type stage struct {
	t      *testing.T
	client *Client
	peers  chan *peer
	// unreachable makes the next dials fail.
	unreachable atomic.Bool
	// answer, when set, is written instead of an upgrade.
	answer atomic.Pointer[string]
	dials  atomic.Int64
	gate   atomic.Pointer[chan struct{}]
	// generous, when set, keeps back the read deadlines that are set after the
	// welcome and lie more than ten seconds ahead, until it is closed.
	generous  chan struct{}
	deadlines atomic.Int64
}

func newStage(t *testing.T, options ...Option) *stage {
	t.Helper()
	s := &stage{t: t, peers: make(chan *peer, 16)}
	c, err := New("http://queue.test:8080", append(options, WithDial(s.dial))...)
	if err != nil {
		t.Fatal(err)
	}
	s.client = c
	return s
}

func (s *stage) dial(context.Context, string, string) (net.Conn, error) {
	s.dials.Add(1)
	if s.unreachable.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(errTest, syscall.ECONNREFUSED)}
	}
	near, far := net.Pipe()
	go s.serve(far)
	return &gated{Conn: near, stage: s, closed: make(chan struct{})}, nil
}

// answers makes the server say that instead of upgrading.
func (s *stage) answers(text string) { s.answer.Store(&text) }

func (s *stage) serve(conn net.Conn) {
	reader := bufio.NewReader(conn)
	request, err := http.ReadRequest(reader)
	if err != nil {
		s.t.Errorf("read upgrade: %v", err)
		return
	}
	if answer := s.answer.Load(); answer != nil {
		if _, err := conn.Write([]byte(*answer)); err != nil {
			s.t.Errorf("answer upgrade: %v", err)
		}
		_ = conn.Close()
		return
	}
	p := &peer{t: s.t, request: request, frames: make(chan wire.ClientFrame, 10_000), gone: make(chan struct{})}
	subprotocol := wire.Subprotocol
	if p.parse = wire.ParseClientMessage; request.URL.Path == eventsPath {
		p.parse, subprotocol = wire.ParseWatchRequest, wire.WatchSubprotocol
	}
	p.conn, err = gws.NewUpgrader(p, &gws.ServerOption{SubProtocols: []string{subprotocol}}).
		UpgradeFromConn(conn, reader, request)
	if err != nil {
		s.t.Errorf("upgrade: %v", err)
		return
	}
	s.peers <- p
	p.conn.ReadLoop()
	close(p.gone)
}

// peer is the server's end of one session or watch.
type peer struct {
	gws.BuiltinEventHandler
	t       *testing.T
	request *http.Request
	conn    *gws.Conn
	parse   func(message []byte) ([]wire.ClientFrame, *wire.Error)
	frames  chan wire.ClientFrame
	pongs   [][]byte
	gone    chan struct{}
	seq     uint64
}

func (p *peer) OnMessage(_ *gws.Conn, message *gws.Message) {
	frames, violation := p.parse(append([]byte(nil), message.Bytes()...))
	if violation != nil {
		p.t.Errorf("client broke the protocol: %v", violation)
	}
	for _, f := range frames {
		p.frames <- f
	}
	_ = message.Close()
}

func (p *peer) OnPong(_ *gws.Conn, payload []byte) { p.pongs = append(p.pongs, payload) }

// arrives waits for the client's next connection and greets it.
func (s *stage) arrives() *peer {
	s.t.Helper()
	p := s.upgraded()
	p.welcome(next[*wire.Hello](p), wire.PingSeconds)
	return p
}

func (p *peer) welcome(hello *wire.Hello, pingSeconds int) {
	p.send(&wire.Welcome{SessionID: wire.SessionID{1}, WorkerID: hello.WorkerID, TenantID: "default",
		PingSeconds: pingSeconds, MaxUnanswered: 8192, MaxMessageBytes: 2 << 20})
}

// upgraded waits for the client's next connection.
func (s *stage) upgraded() *peer {
	s.t.Helper()
	select {
	case p := <-s.peers:
		return p
	case <-time.After(time.Hour):
		s.t.Fatal("the client did not connect within an hour")
		return nil
	}
}

// next is the next frame of the client, which must be an F.
func next[F wire.ClientFrame](p *peer) F {
	p.t.Helper()
	var none F
	select {
	case f := <-p.frames:
		typed, ok := f.(F)
		if !ok {
			p.t.Fatalf("got frame %T %+v, want %T", f, f, none)
		}
		return typed
	case <-p.gone:
		p.t.Fatalf("the connection ended, want frame %T", none)
	case <-time.After(time.Hour):
		p.t.Fatalf("no frame within an hour, want %T", none)
	}
	return none
}

// silent fails if the client said anything that was not looked at.
func (p *peer) silent() {
	p.t.Helper()
	select {
	case f := <-p.frames:
		p.t.Fatalf("got frame %T %+v, want silence", f, f)
	default:
	}
}

// send sends frames as one message.
func (p *peer) send(frames ...wire.ServerFrame) {
	p.t.Helper()
	message := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			message = append(message, ',')
		}
		message = wire.AppendWatchFrame(message, f) // knows those of sessions, too
	}
	if err := p.conn.WriteMessage(gws.OpcodeText, append(message, ']')); err != nil {
		p.t.Errorf("send %T: %v", frames[0], err)
	}
}

func (p *peer) ok(ref wire.Ref) { p.t.Helper(); p.send(&wire.OK{Ref: ref}) }

func (p *peer) refuse(ref wire.Ref, code wire.Code) {
	p.t.Helper()
	p.send(&wire.ErrorFrame{Ref: ref, Err: wire.Refuse(code, "because of the test")})
}

// cut ends the connection like a crash, and waits until the client knows.
func (p *peer) cut() {
	_ = p.conn.NetConn().Close()
	<-p.gone
	synctest.Wait()
}

// closed waits for the client to end the connection.
func (p *peer) closed() {
	p.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(time.Hour):
		p.t.Fatal("the client kept the connection for an hour")
	}
}

// subscribed answers the subscription of a worker.
func (p *peer) subscribed() *wire.Subscribe {
	p.t.Helper()
	f := next[*wire.Subscribe](p)
	p.ok(f.Ref)
	return f
}

// push sends tasks, each named by one byte.
func (p *peer) push(names ...byte) {
	p.t.Helper()
	var frames []wire.ServerFrame
	for _, name := range names {
		p.seq++
		frames = append(frames, &wire.TaskFrame{Seq: p.seq, Token: token(name), LeaseForMs: 30_000, Task: task(name)})
	}
	p.send(frames...)
}

func token(name byte) wire.Token { return wire.Token{name} }

func taskID(name byte) wire.TaskID { return wire.TaskID{15: name} }

func ref(name byte) wire.TaskRef { return wire.TaskRef{TaskID: taskID(name), Token: token(name)} }

func task(name byte) *wire.Task {
	return &wire.Task{
		ID: taskID(name), Command: "hash", Payload: []byte(`{"name":"` + string(name) + `"}`),
		Status: wire.StatusInProgress, Location: wire.LocationInProgress, MaxAttempts: 5, Deliveries: 1,
		TenantID: "default", CreatedAtMs: 1, UpdatedAtMs: 1,
	}
}

var errTest = errors.New("the test says so")

// holdWrites makes what the client writes from now on wait until release is
// called.
func (s *stage) holdWrites() (release func()) {
	gate := make(chan struct{})
	s.gate.Store(&gate)
	return func() {
		s.gate.CompareAndSwap(&gate, nil)
		close(gate)
	}
}

// gated is the client's end of a connection.
type gated struct {
	net.Conn
	stage  *stage
	once   sync.Once
	closed chan struct{}
}

func (g *gated) Write(b []byte) (int, error) {
	if gate := g.stage.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-g.closed:
		}
	}
	return g.Conn.Write(b)
}

// SetReadDeadline is how a client waits for a sign of life: once when the socket
// opens, once for the welcome, and after that for whatever comes.
func (g *gated) SetReadDeadline(at time.Time) error {
	if g.stage.deadlines.Add(1) > 2 && g.stage.generous != nil && time.Until(at) > 10*time.Second {
		<-g.stage.generous
	}
	err := g.Conn.SetReadDeadline(at)
	select {
	case <-g.closed:
		return err
	default:
		return nil // a pipe also refuses when the other end is closed; a socket does not
	}
}

func (g *gated) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Conn.Close()
}
