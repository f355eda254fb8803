package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/internal/artifact"
	"codeq/internal/auth"
	"codeq/internal/callback"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is the API over a real engine and a store in memory.
type bench struct {
	t        testing.TB
	store    *store.Store
	engine   *shardactor.Engine
	api      *api
	log      *bytes.Buffer
	ready    atomic.Bool
	draining chan struct{}
	stopped  bool
	closed   bool
	// synced lets effects out; a test may do so later.
	synced   func(shard int, upTo uint64)
	sessions teapot
}

// teapot answers every session in its own way, and knows those it is given.
type teapot struct {
	// who is who the last session was for, refusal what it is refused by.
	who     *auth.Principal
	refusal *wire.Error
	open    map[string][]wire.SessionFigures
}

func (p *teapot) Upgrade(w http.ResponseWriter, _ *http.Request, who *auth.Principal) *wire.Error {
	if p.refusal == nil {
		p.who = who
		w.WriteHeader(http.StatusTeapot)
	}
	return p.refusal
}

// Open implements Sessions.
func (p *teapot) Open(string) int { return 0 }

func (p *teapot) Count() (n int) {
	for _, list := range p.open {
		n += len(list)
	}
	return n
}

// List implements Sessions over lists in the order of their ids.
func (p *teapot) List(tenant string, after wire.SessionID, limit int) ([]wire.SessionFigures, bool) {
	var page []wire.SessionFigures
	for _, f := range p.open[tenant] {
		if f.ID.String() > after.String() {
			page = append(page, f)
		}
	}
	return page[:min(len(page), limit)], len(page) > limit
}

func (p *teapot) Drain(tenant string, id wire.SessionID) (wire.SessionFigures, bool) {
	for _, f := range p.open[tenant] {
		if f.ID == id {
			return f, true
		}
	}
	return wire.SessionFigures{}, false
}

func (p *teapot) Disconnect(tenant string, id wire.SessionID) (wire.SessionFigures, bool) {
	return p.Drain(tenant, id)
}

// setup says what differs from an ordinary bench.
type setup struct {
	auth    auth.Authenticator
	fs      vfs.FS
	mailbox mailbox.Limits
	// idle leaves the engine unstarted, unsynced lets it run and sync only
	// when it stops.
	idle     bool
	unsynced bool
	// requireToken refuses calls about a delivery without its token.
	requireToken bool
	// observe is told of every round of a shard.
	observe func(*shardactor.Observed)
}

// testHosts are the names under which tests ask: httptest's, and their own.
var testHosts = []string{"example.com", "x"}

func newBench(t testing.TB, o setup) *bench {
	t.Helper()
	b := &bench{t: t, log: &bytes.Buffer{}, draining: make(chan struct{}), stopped: o.idle}
	b.ready.Store(true)
	if o.auth == nil {
		o.auth = auth.None()
	}
	if o.fs == nil {
		o.fs = vfs.NewMem()
	}
	log := zerolog.New(zerolog.SyncWriter(b.log)).Level(zerolog.DebugLevel)
	gates := &shardactor.Gates{}
	b.synced = gates.Synced
	var err error
	b.store, err = store.Open(store.Options{
		FS: o.fs, Dir: "data", MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Log: zerolog.Nop(), LevelChanged: gates.SpaceChanged,
		Synced: func(shard int, upTo uint64) { b.synced(shard, upTo) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.engine, err = shardactor.NewEngine(shardactor.EngineOptions{
		Store: b.store, Gates: gates, Random: newChance(), Log: zerolog.Nop(), Mailbox: o.mailbox, Observe: o.observe,
		StartClock: func(int64) func() int64 { return func() int64 { return time.Now().UnixMilli() } },
		Fatal:      func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !o.idle && !o.unsynced {
		b.store.StartSyncer()
	}
	if !o.idle {
		b.engine.Start()
	}
	guard, err := NewGuard(&GuardOptions{PublicHosts: testHosts})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := artifact.OpenDir(o.fs, "artifacts", 0)
	if err != nil {
		t.Fatal(err)
	}
	files := artifact.New(artifact.Options{Driver: dir, Known: b.store.ReadFiles, MaxBytes: 1 << 20, Log: zerolog.Nop()})
	b.api = New(Options{
		Guard:  guard,
		Engine: b.engine, Store: b.store, Auth: o.auth, NowMs: b.engine.NowMs, Log: log,
		Sessions: &b.sessions,
		Version:  "1.2.3", Durability: "fsync", Ready: b.ready.Load, Ends: Ends{Draining: b.draining},
		RequireLeaseToken: o.requireToken, Hooks: Hooks{Callbacks: callback.New(callback.Options{}), Files: files},
	}).(*api)
	t.Cleanup(b.close)
	return b
}

func (b *bench) stopEngine() {
	if b.stopped {
		return
	}
	b.stopped = true
	if err := b.engine.Stop(); err != nil {
		b.t.Error(err)
	}
}

// close stops everything; a second call finds it done.
func (b *bench) close() {
	if b.closed {
		return
	}
	b.closed = true
	b.stopEngine()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
}

// got is an answer with its body read.
type got struct {
	status int
	header http.Header
	body   string
	// closing: the server said that it closes the connection.
	closing bool
}

// do sends one request through the API without a network.
func (b *bench) do(method, target, body string, header ...string) got {
	b.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	return b.send(r, header...)
}

func (b *bench) send(r *http.Request, header ...string) got {
	b.t.Helper()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	return read(b.t, w.Result())
}

func read(t testing.TB, response *http.Response) got {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return got{status: response.StatusCode, header: response.Header, body: string(body)}
}

// post makes a task and gives it back.
// spread lets the tasks of a queue lie on all shards.
func (b *bench) spread(command string) {
	b.t.Helper()
	if g := b.do("PUT", "/v1/codeq/admin/queues/"+command, `{"spread":true}`); g.status != http.StatusOK {
		b.t.Fatalf("spread %s: %d %s", command, g.status, g.body)
	}
}

func (b *bench) post(body string, header ...string) *wire.Task {
	b.t.Helper()
	g := b.do("POST", "/v1/codeq/tasks", body, header...)
	if g.status != http.StatusAccepted {
		b.t.Fatalf("post %s: %d %s", body, g.status, g.body)
	}
	task, err := wire.ParseTask([]byte(g.body))
	if err != nil {
		b.t.Fatalf("post answered %s: %v", g.body, err)
	}
	return task
}

// mustRefuse checks that an answer is the refusal the protocol describes.
func (g got) mustRefuse(t *testing.T, code wire.Code) {
	t.Helper()
	var e struct {
		Error     string
		Code      wire.Code
		Retryable *bool
	}
	if err := json.Unmarshal([]byte(g.body), &e); err != nil {
		t.Fatalf("the refusal is no JSON object: %d %q", g.status, g.body)
	}
	if e.Code != code || g.status != code.HTTPStatus() {
		t.Errorf("refused %d %s, want %d %s (%s)", g.status, e.Code, code.HTTPStatus(), code, e.Error)
	}
	if e.Retryable == nil || *e.Retryable != code.Retryable() || e.Error == "" {
		t.Errorf("refusal without sentence or with wrong advice: %s", g.body)
	}
	if advised := g.header.Get("Retry-After") != ""; advised != adviseRetry(g.status) {
		t.Errorf("status %d with Retry-After %q", g.status, g.header.Get("Retry-After"))
	}
	g.mustBeJSON(t)
}

func (g got) mustBeJSON(t *testing.T) {
	t.Helper()
	if g.header.Get("Content-Type") != "application/json" || g.header.Get("X-Request-Id") == "" {
		t.Errorf("answer without its headers: %v", g.header)
	}
}

// worker is a consumer whose effects can be waited for.
type worker struct {
	b        *bench
	consumer *shardactor.Consumer
	effects  chan shard.Effect
}

// Deliver implements shard.Sink.
func (w *worker) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		w.effects <- e
	}
}

const benchWorkerID = "worker-of-the-bench"

// newWorker subscribes to one command on every shard.
func (b *bench) newWorker(command string) *worker {
	b.t.Helper()
	w := &worker{b: b, effects: make(chan shard.Effect, 1000)}
	w.consumer = b.engine.NewConsumer(shardactor.ConsumerOptions{
		ID: wire.SessionID{1}, Tenant: wire.DefaultTenant, Subject: wire.AnonymousSubject, WorkerID: benchWorkerID, Sink: w,
	})
	w.consumer.SetWindow(10)
	for shardNo := range b.engine.Shards() {
		w.say(shardNo, &shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{command}, LeaseForMs: 30_000})
	}
	b.t.Cleanup(func() { w.consumer.Close(0) })
	return w
}

func (w *worker) say(shardNo int, m shard.Message) {
	w.b.t.Helper()
	if v := w.b.engine.Post(shardNo, []shard.Message{m}, 1, mailbox.ClassKeep); v != mailbox.Accepted {
		w.b.t.Fatalf("post: %v", v)
	}
}

// take waits for a task.
func (w *worker) take() *shard.Granted {
	w.b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		select {
		case e := <-w.effects:
			if g, ok := e.(*shard.Granted); ok {
				return g
			}
		case <-ctx.Done():
			w.b.t.Fatal("no task was granted")
		}
	}
}

// finish hands in a result for what was taken.
func (w *worker) finish(g *shard.Granted, result string) {
	w.b.t.Helper()
	w.say(w.b.engine.ShardOf(g.Task.ID), &shard.Result{
		Holder: shard.Holder{
			Owner:   shard.Owner{Tenant: wire.DefaultTenant, Subject: wire.AnonymousSubject},
			TaskRef: wire.TaskRef{TaskID: g.Task.ID, Token: g.Token},
		},
		ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(result)},
	})
}

func adviseRetry(status int) bool {
	return status == http.StatusTooManyRequests ||
		status == http.StatusServiceUnavailable ||
		status == http.StatusInsufficientStorage
}
