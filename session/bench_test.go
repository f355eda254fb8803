package session

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/lxzan/gws"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a registry over a real engine of four shards and a store in memory.
type bench struct {
	t        *testing.T
	store    *store.Store
	engine   *shardactor.Engine
	registry *Registry
	log      *strings.Builder
}

// setup says what differs from an ordinary bench.
type setup struct {
	auth auth.Authenticator
	// outboxBytes is the budget of all sessions.
	outboxBytes int64
	// engine wraps the real one.
	engine func(*shardactor.Engine) Engine
}

func newBench(t *testing.T, o setup) *bench {
	t.Helper()
	gates := new(shardactor.Gates)
	s, err := store.Open(store.Options{
		FS: vfs.NewMem(), Dir: "data", MemTableBytes: 1 << 20, CacheBytes: 1 << 20,
		Log: zerolog.Nop(), Synced: gates.Synced,
	})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	nowMs := func() int64 { return time.Now().UnixMilli() }
	e, err := shardactor.NewEngine(shardactor.EngineOptions{
		Store: s, Gates: gates, Random: rand.Reader, Log: zerolog.Nop(),
		StartClock: func(int64) func() int64 { return nowMs },
		Fatal:      func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatalf("start engine: %v", err)
	}
	s.StartSyncer()
	e.Start()
	b := &bench{t: t, store: s, engine: e, log: new(strings.Builder)}
	options := Options{
		Engine: e, Auth: o.auth, NowMs: nowMs, Version: "1.2.3", Durability: "fsync",
		Secret: []byte("of this bench"), OutboxBytes: o.outboxBytes,
		Log: zerolog.New(zerolog.SyncWriter(b.log)),
	}
	if o.auth == nil {
		options.Auth = auth.None()
	}
	if o.engine != nil {
		options.Engine = o.engine(e)
	}
	b.registry = NewRegistry(options)
	t.Cleanup(b.close)
	return b
}

func (b *bench) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.registry.Shutdown(ctx); err != nil {
		b.t.Logf("shutdown: %v", err)
	}
	if err := b.engine.Stop(); err != nil {
		b.t.Error(err)
	}
	b.store.StopSyncer()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
}

// hijackable answers an upgrade on one end of a pipe.
type hijackable struct {
	conn   net.Conn
	buffer *bufio.ReadWriter
	header http.Header
}

func (h *hijackable) Header() http.Header         { return h.header }
func (h *hijackable) WriteHeader(int)             {}
func (h *hijackable) Write(b []byte) (int, error) { return h.conn.Write(b) }
func (h *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, h.buffer, nil
}

// client is a worker or producer at the other end of a pipe. It reads all the
// time, unless deaf, and answers pings, unless mute.
type client struct {
	t      *testing.T
	conn   *gws.Conn
	frames chan wire.ServerFrame
	pongs  chan string
	closed chan error
	mute   bool
}

func (c *client) OnOpen(*gws.Conn)               {}
func (c *client) OnClose(_ *gws.Conn, err error) { c.closed <- err }
func (c *client) OnPong(_ *gws.Conn, p []byte)   { c.pongs <- string(p) }
func (c *client) OnPing(_ *gws.Conn, p []byte) {
	if !c.mute {
		_ = c.conn.WritePong(p) // a closed socket shows in OnClose
	}
}

func (c *client) OnMessage(_ *gws.Conn, m *gws.Message) {
	frames, err := wire.ParseServerMessage(append([]byte(nil), m.Bytes()...))
	if err != nil {
		c.t.Errorf("server sent %q: %v", m.Bytes(), err)
	}
	for _, f := range frames {
		c.frames <- f
	}
}

// connect opens a socket over a pipe; only inside a bubble. mute clients answer
// no ping, deaf ones read nothing.
func (b *bench) connect(mute, deaf bool) *client {
	b.t.Helper()
	near, far := net.Pipe()
	go func() {
		buffer := bufio.NewReadWriter(bufio.NewReader(far), bufio.NewWriter(far))
		req, err := http.ReadRequest(buffer.Reader)
		if err != nil {
			b.t.Errorf("read upgrade: %v", err)
			return
		}
		b.ServeHTTP(&hijackable{conn: far, buffer: buffer, header: make(http.Header)}, req)
	}()
	c := &client{
		t: b.t, mute: mute, closed: make(chan error, 1),
		frames: make(chan wire.ServerFrame, 100_000), pongs: make(chan string, 100),
	}
	var err error
	c.conn, _, err = gws.NewClientFromConn(c, &gws.ClientOption{
		Addr:          "ws://codeq/v1/codeq/session",
		RequestHeader: http.Header{"Sec-Websocket-Protocol": {wire.Subprotocol}},
	}, near)
	if err != nil {
		b.t.Fatalf("upgrade: %v", err)
	}
	if !deaf {
		go c.conn.ReadLoop()
	}
	b.t.Cleanup(func() {
		_ = near.Close() // ends what the test left open
	})
	return c
}

// open connects and says hello.
func (b *bench) open(hello string) (*client, *wire.Welcome) {
	b.t.Helper()
	c := b.connect(false, false)
	c.say(hello)
	return c, next[*wire.Welcome](c)
}

func (c *client) say(message string) {
	c.t.Helper()
	if err := c.conn.WriteString(message); err != nil {
		c.t.Fatalf("write %.100s: %v", message, err)
	}
}

func (c *client) send(f wire.ClientFrame) {
	c.t.Helper()
	c.say(string(wire.AppendClientFrame(nil, f)))
}

// next is the next frame, which must be an F.
func next[F wire.ServerFrame](c *client) F {
	c.t.Helper()
	select {
	case f := <-c.frames:
		got, ok := f.(F)
		if !ok {
			c.t.Fatalf("got %s, want %T", wire.AppendServerFrame(nil, f), got)
		}
		return got
	case <-time.After(time.Minute):
		c.t.Fatal("no frame within a minute")
	}
	panic("unreachable")
}

// silent fails if a frame has come.
func (c *client) silent() {
	c.t.Helper()
	synctest.Wait()
	select {
	case f := <-c.frames:
		c.t.Fatalf("got %s, want nothing", wire.AppendServerFrame(nil, f))
	default:
	}
}

// closeCode waits for the end of the socket and is the code it was closed with.
func (c *client) closeCode() uint16 {
	c.t.Helper()
	var closing *gws.CloseError
	if err := <-c.closed; !errors.As(err, &closing) {
		c.t.Fatalf("the socket ended without a close frame: %v", err)
	}
	return closing.Code
}

// swallowing is an engine whose shards take everything and answer nothing.
type swallowing struct {
	*shardactor.Engine
	taken chan shard.Message
}

func (s *swallowing) Post(_ int, batch []shard.Message, _ int, _ mailbox.Class) mailbox.Verdict {
	for _, m := range batch {
		s.taken <- m
	}
	return mailbox.Accepted
}
