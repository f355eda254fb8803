package shardactor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"

	"codeq/index"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// testEngine is a started engine over a disk in memory; stop ends all of it.
type testEngine struct {
	*Engine
	store *store.Store
	stop  func()
}

// testEpochMs is where the time of a test begins: 2026-01-01 UTC.
const testEpochMs = 1_767_225_600_000

func startTestEngine(t *testing.T, shards int, fs vfs.FS, fatal func(error)) *testEngine {
	t.Helper()
	e := newTestEngine(t, shards, fs, fatal)
	e.store.StartSyncer()
	e.Start()
	e.stop = func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		e.store.StopSyncer()
		if err := e.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return e
}

// newTestEngine has not started it.
func newTestEngine(t *testing.T, shards int, fs vfs.FS, fatal func(error)) *testEngine {
	t.Helper()
	gates := new(Gates)
	chance := rand.NewChaCha8([32]byte{7})
	s, err := store.Open(store.Options{
		FS: fs, Dir: "data", Shards: shards, Log: zerolog.Nop(), Random: chance,
		Synced: gates.Synced, LevelChanged: gates.SpaceChanged, Fatal: fatal,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(EngineOptions{
		Store: s, Gates: gates, Random: chance, Log: zerolog.Nop(), Fatal: fatal,
		StartClock: func(int64) func() int64 { return func() int64 { return time.Now().UnixMilli() } },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &testEngine{Engine: e, store: s}
}

func noFatal(err error) { panic(fmt.Sprintf("fatal: %v", err)) }

func (e *testEngine) enqueue(t *testing.T, sink shard.Sink, n int, r wire.EnqueueRequest) {
	t.Helper()
	for i := range n {
		id, shardNo := e.Route("default", r.Command, r.IdempotencyKey)
		m := &shard.Enqueue{Asker: shard.Asker{Sink: sink, Ref: shard.Ref(i)}, ID: id, Tenant: "default", EnqueueRequest: r}
		if v := e.Post(shardNo, []shard.Message{m}, len(r.Payload), mailbox.ClassNew); v != mailbox.Accepted {
			t.Fatalf("enqueue: %v", v)
		}
	}
}

// eagerWorker completes what it is given and checks its window.
type eagerWorker struct {
	t        *testing.T
	engine   *testEngine
	consumer *Consumer
	window   int

	mu        sync.Mutex
	inHand    int
	most      int
	delivered map[wire.TaskID]int
	completed map[wire.TaskID]int
	shards    map[int]int
}

func newEagerWorker(t *testing.T, e *testEngine, window int) *eagerWorker {
	w := &eagerWorker{
		t: t, engine: e, window: window,
		delivered: make(map[wire.TaskID]int), completed: make(map[wire.TaskID]int), shards: make(map[int]int),
	}
	w.consumer = e.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "anonymous", Sink: w})
	w.consumer.SetWindow(window)
	for shardNo := range e.Shards() {
		e.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{"a"}, LeaseForMs: 60_000}}, 0, mailbox.ClassKeep)
	}
	return w
}

func (w *eagerWorker) Deliver(effects []shard.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			w.inHand++
			w.most = max(w.most, w.inHand)
			w.delivered[e.Task.ID]++
			shardNo := w.engine.ShardOf(e.Task.ID)
			w.shards[shardNo]++
			w.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
			w.engine.Post(shardNo, []shard.Message{&shard.Result{
				Holder: shard.Holder{
					Asker: shard.Asker{Sink: w}, Owner: shard.Owner{Tenant: "default", Subject: "anonymous"},
					TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token},
				},
				ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
				HasCredit:     true,
			}}, 2, mailbox.ClassKeep)
		case *shard.Completed:
			w.inHand--
			w.completed[e.Record.TaskID]++
			if !e.CreditReused {
				w.consumer.Return(1)
			}
		case *shard.Refused:
			w.t.Errorf("refused: %v", e.Err)
		}
	}
}

func (w *eagerWorker) check(tasks int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.completed) != tasks {
		w.t.Errorf("%d tasks completed, want %d", len(w.completed), tasks)
	}
	for id, n := range w.delivered {
		if n != 1 {
			w.t.Errorf("task %v was delivered %d times", id, n)
		}
	}
	if w.most > w.window {
		w.t.Errorf("%d tasks in hand, the window is %d", w.most, w.window)
	}
}

func TestOneSessionWithWindowOneDrainsFourShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		e.spread(t)
		e.enqueue(t, nil, 400, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 3})
		w := newEagerWorker(t, e, 1)
		synctest.Wait()
		w.check(400)
		if len(w.shards) != 4 {
			t.Errorf("tasks came from shards %v, want all 4", w.shards)
		}
	})
}

// The index keeps a few keys and reads the rest behind its cursor, at the
// start of rounds only. However small the window of memory is, no key comes
// twice: a refill in mid-round once granted 149 of 6,000 tasks twice.
func TestRefillNeverGrantsTwice(t *testing.T) {
	saved := shard.DefaultIndex
	shard.DefaultIndex = index.Limits{Run: 8, Refill: 3}
	defer func() { shard.DefaultIndex = saved }()
	for _, window := range []int{1, 7, 64} {
		t.Run(fmt.Sprintf("window%d", window), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startTestEngine(t, 2, vfs.NewMem(), noFatal)
				defer e.stop()
				e.spread(t)
				w := newEagerWorker(t, e, window)
				for i := range 6 {
					e.enqueue(t, nil, 250, wire.EnqueueRequest{
						Command: "a", Payload: []byte("1"), Priority: i % 3, MaxAttempts: 1,
					})
				}
				synctest.Wait()
				w.check(1500)
			})
		})
	}
}

// collector keeps effects for a test to look at.
type collector struct {
	mu      sync.Mutex
	effects []shard.Effect
}

func (c *collector) Deliver(effects []shard.Effect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.effects = append(c.effects, effects...)
}

func TestDelayedTaskReachesAnIdleWorkerWithoutOtherTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		w := newEagerWorker(t, e, 1)
		e.enqueue(t, nil, 1, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 1, DelaySeconds: 600})
		time.Sleep(10*time.Minute - time.Millisecond) // synctest: fake time, the deadline is what is tested
		synctest.Wait()
		w.check(0)
		time.Sleep(time.Millisecond) // synctest
		synctest.Wait()
		w.check(1)
	})
}

func TestKeyedEnqueuesAtTheSameTimeMakeOneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		var c collector
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				e.enqueue(t, &c, 1, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 1, IdempotencyKey: "once"})
			})
		}
		wg.Wait()
		synctest.Wait()
		ids := make(map[wire.TaskID]bool)
		fresh := 0
		for _, effect := range c.effects {
			answer, ok := effect.(*shard.Enqueued)
			if !ok {
				t.Fatalf("answer %+v", effect)
			}
			ids[answer.TaskID] = true
			if !answer.Replayed {
				fresh++
			}
		}
		if len(c.effects) != 200 || len(ids) != 1 || fresh != 1 {
			t.Errorf("%d answers, %d ids, %d fresh; want 200, 1, 1", len(c.effects), len(ids), fresh)
		}
	})
}

// A sync that fails ends the process, and nothing that waited for it was said.
// Fatal panics here, in the place of an exit; the broken store is left as it is.
func TestFailedSyncLetsNothingOut(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if broken.Load() && isSync && strings.HasSuffix(op.Path, ".log") {
			return errors.New("the device is gone")
		}
		return nil
	}))
	w := newCrashWorld(t, testEpochMs)
	w.open(fs, 1)
	var c collector
	post := func() {
		id, shardNo := w.engine.Route("default", "a", "")
		w.step(shardNo, &shard.Enqueue{Asker: shard.Asker{Sink: &c}, ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
			Command: "a", Payload: []byte("1"), MaxAttempts: 1,
		}})
	}
	post()
	w.barrier()
	if len(c.effects) != 1 {
		t.Fatalf("%d answers before the fault, want 1", len(c.effects))
	}
	broken.Store(true)
	post()
	died := func() (cause any) {
		defer func() { cause = recover() }()
		w.barrier()
		return nil
	}()
	if died == nil || len(c.effects) != 1 {
		t.Errorf("fatal: %v, %d answers; want a cause and no second answer", died, len(c.effects))
	}
}
