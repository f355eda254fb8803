package callback

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// site is an engine and a worker, driven by hand at times of the test. What the worker sends
// waits in sent until the test answers it.
type site struct {
	t      *testing.T
	fs     *vfs.MemFS
	nowMs  int64
	store  *store.Store
	engine *shardactor.Engine
	worker *Worker
	sent   []*sent
	// moves are the events of callbacks.
	moves []shard.Event
	// grants counts the deliveries of tasks with a target.
	grants int
	// alarms are what After was told to do, by its time.
	alarms []alarm
	// disabled are the endpoints that the worker has disabled.
	disabled []string
}

type alarm struct {
	atMs int64
	do   func()
}

type sent struct {
	*Call
	done func(Answer)
}

func openSite(t *testing.T) *site {
	t.Helper()
	x := &site{t: t, fs: vfs.NewMem(), nowMs: 1_796_000_000_000}
	x.open()
	return x
}

// open begins a process over what is on disk.
func (x *site) open() {
	x.t.Helper()
	gates, random := new(shardactor.Gates), rand.NewChaCha8([32]byte{1})
	fatal := func(err error) { panic(err) }
	var err error
	x.store, err = store.Open(store.Options{
		FS: x.fs, Dir: "data", Shards: 2, Log: zerolog.Nop(), Random: random, Synced: gates.Synced, Fatal: fatal,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.sent, x.alarms = nil, nil
	x.worker = New(Options{
		Next: x, Send: func(c *Call, done func(Answer)) { x.sent = append(x.sent, &sent{c, done}) },
		NowMs: func() int64 { return x.nowMs }, Random: func() float64 { return 0.5 },
		After:    func(ms int64, do func()) { x.alarms = append(x.alarms, alarm{x.nowMs + ms, do}) },
		Disabled: func(tenant, name, _ string) { x.disabled = append(x.disabled, tenant+" "+name) },
	})
	x.engine, err = shardactor.NewEngine(shardactor.EngineOptions{
		Store: x.store, Gates: gates, Random: random, Log: zerolog.Nop(), Fatal: fatal, Events: x.worker, Settings: x.worker.Follow,
		StartClock: func(int64) func() int64 { return func() int64 { return x.nowMs } },
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.worker.Start(x.engine)
	x.settle()
	opened := x.store
	x.t.Cleanup(func() {
		if opened == x.store {
			x.close()
		}
	})
}

func (x *site) close() {
	x.t.Helper()
	if err := x.store.Close(); err != nil {
		x.t.Error(err)
	}
	x.store = nil
}

// Load implements shardactor.Observer.
func (x *site) Load(int, uint64, []store.QueueState) {}

// Observe implements shardactor.Observer.
func (x *site) Observe(_ int, events []shard.Event) {
	for _, e := range events {
		if e.Command == "push" && e.Cause == record.CauseGrant {
			x.grants++
		}
		if e.Command == wire.CallbackQueue {
			x.moves = append(x.moves, e)
		}
	}
}

func (x *site) settle() {
	x.t.Helper()
	for range 8 {
		for shardNo := range x.engine.Shards() {
			x.engine.Run(shardNo)
		}
		if err := x.store.Barrier(); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *site) advance(ms int64) {
	x.nowMs += ms
	alarms := x.alarms
	x.alarms = nil
	for _, a := range alarms {
		if a.atMs <= x.nowMs {
			a.do()
		} else {
			x.alarms = append(x.alarms, a)
		}
	}
	x.settle()
}

// end makes a task with a webhook and ends it.
func (x *site) end(tenant, url string) {
	x.t.Helper()
	id, shardNo := x.engine.Route(tenant, "c", "")
	x.tell(shardNo,
		&shard.Enqueue{ID: id, Tenant: tenant, EnqueueRequest: wire.EnqueueRequest{Command: "c", Payload: []byte("1"), Webhook: url}},
		&shard.Manage{Do: shard.Cancel, Tenant: tenant, TaskID: id})
}

func (x *site) tell(shardNo int, messages ...shard.Message) {
	x.t.Helper()
	if v := x.engine.Post(shardNo, messages, 1, mailbox.ClassKeep); v != mailbox.Accepted {
		x.t.Fatalf("posted: %v", v)
	}
	x.settle()
}

// take takes what has been sent since the last take, all to one URL.
func (x *site) take(url string) (taken []*sent) {
	x.sent = slices.DeleteFunc(x.sent, func(s *sent) bool {
		if s.URL == url {
			taken = append(taken, s)
		}
		return s.URL == url
	})
	return taken
}

// answer answers calls with a status, 0 for none.
func (x *site) answer(calls []*sent, status int) {
	for _, s := range calls {
		s.done(Answer{Status: status, Problem: "no answer"})
	}
	x.settle()
}

// figures are those of the callbacks of a tenant.
func (x *site) figures(tenant string) *wire.QueueFigures {
	x.t.Helper()
	f, err := x.store.ReadQueue(record.QueueKey{Command: wire.CallbackQueue, Tenant: tenant})
	if err != nil {
		x.t.Fatal(err)
	}
	return f
}

// count is how often callbacks moved for a cause.
func (x *site) count(cause record.Cause) (n int) {
	for i := range x.moves {
		if x.moves[i].Cause == cause {
			n++
		}
	}
	return n
}
