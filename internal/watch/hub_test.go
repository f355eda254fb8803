package watch

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/record"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hubBench is a hub behind a server of its own.
type hubBench struct {
	*testing.T
	hub    *Hub
	server *httptest.Server

	mu  sync.Mutex
	log *fakeLog
	// ready is the figure of the only queue.
	ready atomic.Int64
}

// guarded is a fakeLog behind a lock.
type guarded struct{ *hubBench }

func (g guarded) Positions() []uint64 { g.mu.Lock(); defer g.mu.Unlock(); return g.log.Positions() }
func (g guarded) Oldest() []uint64    { g.mu.Lock(); defer g.mu.Unlock(); return g.log.Oldest() }
func (g guarded) Read(shard int, after uint64, into []events.Record) (int, uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Read(shard, after, into)
}

func (b *hubBench) event() {
	b.mu.Lock()
	b.log.add(0, events.Record{AtMs: 1, Slot: 0, Task: wire.TaskID{15: 2}, Cause: record.CauseEnqueue})
	b.mu.Unlock()
	b.ready.Add(1)
}

func newHubBench(t *testing.T, maxSockets int) *hubBench {
	b := &hubBench{T: t, log: newFakeLog(2, 1000)}
	facts := b.log.facts()
	facts.Events = guarded{b}
	b.hub = NewHub(Options{
		Facts: facts, Auth: auth.None(), Log: zerolog.Nop(), MaxSockets: maxSockets,
		NowMs: func() int64 { return time.Now().UnixMilli() },
		Refresh: func(board *Board, _ int64) {
			board.At = facts.Events.Positions()
			f := wire.Figures{wire.FigureReady: b.ready.Load()}
			board.Set(wire.SlotName{Tenant: wire.DefaultTenant, Command: "mail"}, &f, 0)
		},
		ReadTasks: func(context.Context, *auth.Principal, []wire.TaskID) ([]*wire.Task, *wire.Error) { return nil, nil },
		ReadPage: func(context.Context, *auth.Principal, *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error) {
			page := &wire.WatchSnapshot{}
			for n := range b.ready.Load() {
				page.Tasks = append(page.Tasks, &wire.Task{ID: wire.TaskID{1, 15: byte(n)}, Command: "mail", Location: wire.LocationPending})
			}
			return page, nil
		},
	})
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var refusal *wire.Error
		if r.Header.Get("Upgrade") != "" {
			refusal = b.hub.Upgrade(w, r, nil)
		} else {
			who, _ := auth.None().Authenticate(r.Context(), "")
			refusal = b.hub.Stream(w, r, who, &wire.WatchSubscribe{ID: "s", Kind: wire.WatchEvents, MaxPerSecond: 200})
		}
		if refusal != nil {
			w.WriteHeader(refusal.Code.HTTPStatus())
		}
	}))
	t.Cleanup(func() {
		b.hub.Shutdown()
		b.server.Close()
	})
	return b
}

// watcher is a client over a WebSocket.
type watcher struct {
	gws.BuiltinEventHandler
	b      *hubBench
	conn   *gws.Conn
	raw    net.Conn
	frames chan wire.ServerFrame
	closed chan error
}

func (c *watcher) OnMessage(_ *gws.Conn, m *gws.Message) {
	list, err := wire.ParseWatchMessage(m.Bytes())
	if err != nil {
		c.b.Error(err)
	}
	for _, f := range list {
		select {
		case c.frames <- f:
		default:
		}
	}
}

func (c *watcher) OnClose(_ *gws.Conn, err error) { c.closed <- err }

// dial connects, and reads unless the client is deaf.
func (b *hubBench) dial(deaf bool) *watcher {
	b.Helper()
	raw, err := net.Dial("tcp", b.server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	c := &watcher{b: b, raw: raw, frames: make(chan wire.ServerFrame, 100), closed: make(chan error, 1)}
	c.conn, _, err = gws.NewClientFromConn(c, &gws.ClientOption{Addr: "ws://" + raw.RemoteAddr().String()}, raw)
	if err != nil {
		b.Fatal(err)
	}
	if !deaf {
		go c.conn.ReadLoop()
	}
	return c
}

func (c *watcher) say(text string) {
	c.b.Helper()
	if err := c.conn.WriteString(text); err != nil {
		c.b.Fatal(err)
	}
}

// awaitFrame is the next frame of a type; others are passed over.
func awaitFrame[F wire.ServerFrame](c *watcher) F {
	c.b.Helper()
	for {
		select {
		case f := <-c.frames:
			if f, ok := f.(F); ok {
				return f
			}
		case err := <-c.closed:
			c.closed <- err
			if len(c.frames) == 0 { // what came before the close is still there
				c.b.Fatalf("closed: %v", err)
			}
		case <-time.After(30 * time.Second):
			c.b.Fatalf("no %T", *new(F))
		}
	}
}

func TestAHubTellsWhatHappensAndEndsWithItsServer(t *testing.T) {
	t.Parallel()
	b := newHubBench(t, 0)
	c := b.dial(false)
	c.say(`[{"type":"hello","ref":1},{"type":"subscribe","id":"q","kind":"queues","everyMs":250},{"type":"subscribe","id":"e","kind":"events"}]`)
	if w := awaitFrame[*wire.WatchWelcome](c); w.CreationID != "c0ffee" || w.TenantID != wire.DefaultTenant || !w.Admin {
		t.Errorf("welcome is %+v", w)
	}
	awaitFrame[*wire.OK](c)
	awaitFrame[*wire.WatchSnapshot](c)
	b.event()
	if e := awaitFrame[*wire.WatchEvent](c); e.Number != 1 || e.Command != "mail" {
		t.Errorf("the event is %+v", e)
	}
	b.event()
	if row := awaitFrame[*wire.WatchTick](c).Queues[0]; row.Figures[wire.FigureReady] == 0 {
		t.Errorf("the row is %+v", row)
	}
	b.hub.Shutdown()
	if d := awaitFrame[*wire.Draining](c); d.Reason != "shutdown" {
		t.Errorf("%+v", d)
	}
	if err := <-c.closed; err == nil || !strings.Contains(err.Error(), "1012") {
		t.Errorf("closed by %v", err)
	}
}

func TestASocketThatBreaksARuleIsClosedAndSaysWhy(t *testing.T) {
	t.Parallel()
	b := newHubBench(t, 2)
	for text, code := range map[string]string{
		`{"type":"subscribe","id":"q","kind":"queues"}`: "4400",
		`{"type":"hello"`: "4400",
	} {
		c := b.dial(false)
		c.say(text)
		if err := <-c.closed; err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: closed by %v", text, err)
		}
		awaitCount(b, 0)
	}
	b.dial(false)
	b.dial(false)
	raw, err := net.Dial("tcp", b.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	_, answer, err := gws.NewClientFromConn(gws.BuiltinEventHandler{}, &gws.ClientOption{Addr: "ws://a"}, raw)
	if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the third of two sockets: %v, %v", answer, err)
	}
}

// awaitCount waits until so many clients are open.
func awaitCount(b *hubBench, n int) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); b.hub.Count() != n; {
		if time.Now().After(end) {
			b.Fatalf("%d clients are open, want %d", b.hub.Count(), n)
		}
		time.Sleep(time.Millisecond) // the end of a socket has no signal
	}
}

// TestADeafClientCostsNobodyAnything: a client that reads nothing keeps one message, others get
// theirs, and clients that come and go leave no goroutine.
func TestADeafClientCostsNobodyAnything(t *testing.T) {
	b := newHubBench(t, 0)
	before := runtime.NumGoroutine()
	deaf := b.dial(true)
	deaf.say(`{"type":"hello"}`)
	flood := `[` + strings.Repeat(`{"type":"subscribe","ref":1,"id":"q","kind":"queues"},`, 500) + `{"type":"unsubscribe","id":"x"}]`
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for deaf.conn.WriteString(flood) == nil {
		}
	}()
	for range 100 {
		c := b.dial(false)
		c.say(`[{"type":"hello"},{"type":"subscribe","id":"q","kind":"queues"}]`)
		awaitFrame[*wire.WatchSnapshot](c)
		_ = c.raw.Close() // as a client that dies
	}
	_ = deaf.raw.Close()
	<-gone
	awaitCount(b, 0)
	b.server.Client().CloseIdleConnections()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+5; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond) // the end of a goroutine has no signal
	}
}

func TestAStreamTellsEventsAndEndsWithItsServer(t *testing.T) {
	t.Parallel()
	b := newHubBench(t, 0)
	answer, err := http.Get(b.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("no line with %s: %v", want, lines.Err())
	}
	await(`"type":"snapshot"`)
	b.event()
	await("id: c0ffee/1,0")
	await(fmt.Sprintf(`"n":%d`, 1))
	b.hub.Shutdown()
	await(`"type":"draining"`)
}
