package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"codeq/record"
	"codeq/wire"
)

func TestABarrierIsWhatMakesABatchDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	id := wire.TaskID{1}
	s.Span(0).Batch().PutTask(&record.Task{ID: id, Command: "c"})
	apply(t, s.Span(0))
	before := fs.CrashClone(vfs.CrashCloneCfg{})
	if s.Submitted(0) != 1 || s.Synced(0) != 0 {
		t.Errorf("submitted %d, synced %d", s.Submitted(0), s.Synced(0))
	}
	barrier(t, s)
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if s.Synced(0) != 1 || s.Synced(1) != 0 {
		t.Errorf("synced %d and %d", s.Synced(0), s.Synced(1))
	}
	for clone, want := range map[*vfs.MemFS]bool{before: false, after: true} {
		r, err := openIn(t, clone).Span(0).Task(id)
		if err != nil || (r != nil) != want {
			t.Errorf("the task is there: %v, want %v, %v", r != nil, want, err)
		}
	}
}

// A shard that syncs by itself tells as much as a barrier, and what others applied before.
func TestApplyAndSyncMakesABatchDurable(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	put := func(shard int, apply func() (uint64, error)) {
		t.Helper()
		s.Span(shard).Batch().PutTask(&record.Task{ID: wire.TaskID{1, byte(shard)}, Command: "c"})
		if n, err := apply(); err != nil || n != s.Submitted(shard) {
			t.Fatalf("batch %d of %d, %v", n, s.Submitted(shard), err)
		}
	}
	put(0, s.Span(0).ApplyAndSync)
	if s.Synced(0) != 0 {
		t.Errorf("synced %d without a syncer, want 0: whoever has none says when the log is synced", s.Synced(0))
	}
	s.pipe.shardsSync.Store(true)
	put(1, s.Span(1).ApplyAndSync)
	if s.Synced(0) != 1 || s.Synced(1) != 1 {
		t.Errorf("synced %d and %d, want 1 and 1", s.Synced(0), s.Synced(1))
	}
	clone := openIn(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	for shard := range 2 {
		if r, err := clone.Span(shard).Task(wire.TaskID{1, byte(shard)}); r == nil || err != nil {
			t.Errorf("shard %d has lost its task: %v", shard, err)
		}
	}
	s.pipe.barrier.Lock() // another goroutine syncs
	put(1, s.Span(1).ApplyAndSync)
	s.pipe.barrier.Unlock()
	if len(s.pipe.wake) != 1 || s.Synced(1) != 1 {
		t.Errorf("%d wake the syncer, synced %d; want 1 and 1: the batch is left to it", len(s.pipe.wake), s.Synced(1))
	}
}

// A batch lives and dies whole, whatever part of the unsynced log survives.
func TestABatchIsNeverTorn(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	random := rand.New(rand.NewPCG(1, 1))
	for i := byte(1); i <= 20; i++ {
		s.Span(0).Batch().PutPayload(wire.TaskID{i}, make([]byte, 3000))
		s.Span(0).Batch().PutTask(&record.Task{ID: wire.TaskID{i}, Command: "c", PayloadBytes: 3000})
		apply(t, s.Span(0))
		if i == 10 {
			barrier(t, s)
		}
	}
	for range 20 {
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random})
		c := openIn(t, clone)
		for i := byte(1); i <= 20; i++ {
			r, err := c.Span(0).Task(wire.TaskID{i})
			p, err2 := c.Span(0).view.payload(wire.TaskID{i})
			if err != nil || err2 != nil || (r == nil) != (p == nil) || i <= 10 && r == nil {
				t.Errorf("batch %d: record %v, %d bytes of payload, %v, %v", i, r != nil, len(p), err, err2)
			}
		}
	}
}

// A batch that is counted but not yet in the log must not be called durable.
func TestABarrierDoesNotCoverABatchUnderWay(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	sp.Batch().PutMarks(record.Marks{Seq: 1})
	apply(t, sp)
	sp.submitted.Add(1) // as Apply does before it commits
	barrier(t, s)
	if s.Synced(0) != 1 {
		t.Errorf("synced %d of the one applied batch", s.Synced(0))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.WaitDurable(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader was answered before the batch was durable: %v", err)
	}
	sp.applied.Add(1)
	barrier(t, s)
	if err := s.WaitDurable(ctx, 0); err != nil {
		t.Error(err)
	}
}

func TestWaitingEndsWithTheBarrierTheContextOrTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(optionsIn(vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		s.Span(0).Batch().PutMarks(record.Marks{Seq: 1})
		apply(t, s.Span(0))
		waits := func(ctx context.Context) (ended *atomic.Bool, err *error) {
			ended, err = new(atomic.Bool), new(error)
			go func() {
				*err = s.WaitDurable(ctx, 0)
				ended.Store(true)
			}()
			synctest.Wait()
			return ended, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		first, firstErr := waits(context.Background())
		second, secondErr := waits(ctx)
		if first.Load() || second.Load() {
			t.Fatal("a wait ended before the barrier")
		}
		cancel()
		synctest.Wait()
		if !second.Load() || !errors.Is(*secondErr, context.Canceled) || first.Load() {
			t.Errorf("after cancel: %v, %v; the other wait: %v", second.Load(), *secondErr, first.Load())
		}
		barrier(t, s)
		synctest.Wait()
		if !first.Load() || *firstErr != nil {
			t.Errorf("after the barrier: %v, %v", first.Load(), *firstErr)
		}
		s.Span(0).Batch().PutMarks(record.Marks{Seq: 2})
		apply(t, s.Span(0))
		third, thirdErr := waits(context.Background())
		closeStore(t, s)
		synctest.Wait()
		if !third.Load() || !errors.Is(*thirdErr, errClosed) {
			t.Errorf("after the close: %v, %v", third.Load(), *thirdErr)
		}
		closeStore(t, s) // twice is harmless
		if err := s.Barrier(); !errors.Is(err, errClosed) {
			t.Errorf("a barrier on a closed store: %v", err)
		}
	})
}

func TestSyncedIsToldInOrderAndOnlyOfShardsThatMoved(t *testing.T) {
	var told []string
	s := openIn(t, vfs.NewMem(), func(o *Options) {
		o.Synced = func(shard int, upTo uint64) {
			told = append(told, string(rune('a'+shard))+string(rune('0'+upTo)))
		}
	})
	mark := func(shard int) {
		s.Span(shard).Batch().PutMarks(record.Marks{Seq: 1})
		apply(t, s.Span(shard))
	}
	barrier(t, s)
	mark(1)
	mark(1)
	barrier(t, s)
	barrier(t, s)
	mark(0)
	mark(1)
	barrier(t, s)
	if got := strings.Join(told, " "); got != "b2 a1 b3" {
		t.Errorf("told %s", got)
	}
}

func TestManyShardsAndBarriersKeepTheOrder(t *testing.T) {
	var last [4]atomic.Uint64
	s := openIn(t, vfs.NewMem(), func(o *Options) {
		o.Shards = len(last)
		o.Synced = func(shard int, upTo uint64) {
			if was := last[shard].Swap(upTo); was >= upTo {
				t.Errorf("shard %d was told %d after %d", shard, upTo, was)
			}
		}
	})
	s.StartSyncer()
	s.StartSyncer() // twice is harmless
	var running sync.WaitGroup
	for shard := range last {
		running.Go(func() {
			for range 100 {
				s.Span(shard).Batch().PutMarks(record.Marks{Seq: 1})
				apply(t, s.Span(shard))
				if err := s.WaitDurable(context.Background(), shard); err != nil {
					t.Error(err)
				}
				if err := s.Barrier(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for shard := range last {
		if got := last[shard].Load(); got != 100 || s.Synced(shard) != 100 {
			t.Errorf("shard %d was told %d, synced is %d", shard, got, s.Synced(shard))
		}
	}
}

func TestTheSyncerStopsAndStartsAnyNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(optionsIn(vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		s.StopSyncer()
		for n := uint64(1); n <= 20; n++ {
			s.StartSyncer()
			s.Span(0).Batch().PutMarks(record.Marks{Seq: n})
			apply(t, s.Span(0))
			synctest.Wait()
			if s.Synced(0) != n {
				t.Fatalf("synced %d of %d", s.Synced(0), n)
			}
			s.StopSyncer()
			s.StopSyncer()
		}
		s.Span(0).Batch().PutMarks(record.Marks{})
		apply(t, s.Span(0))
		synctest.Wait()
		if s.Synced(0) != 20 {
			t.Error("a stopped syncer synced")
		}
		s.StartSyncer() // Close stops it
		closeStore(t, s)
	})
}

// doomed opens a store whose log can be made to fail. Fatal ends the
// goroutine that called it, as the end of the process would.
func doomed(t *testing.T, kinds ...errorfs.OpKind) (s *Store, fail *atomic.Bool, fatal *atomic.Pointer[error]) {
	t.Helper()
	fail, fatal = new(atomic.Bool), new(atomic.Pointer[error])
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		for _, kind := range kinds {
			if fail.Load() && op.Kind == kind && strings.HasSuffix(op.Path, ".log") {
				return errorfs.ErrInjected
			}
		}
		return nil
	}))
	s, err := Open(optionsIn(fs, func(o *Options) {
		o.Synced = func(shard int, upTo uint64) { t.Errorf("shard %d was told %d", shard, upTo) }
		o.Fatal = func(err error) {
			fatal.CompareAndSwap(nil, &err)
			runtime.Goexit()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return s, fail, fatal
}

// inGoroutine runs f where Fatal can end it and waits for that.
func inGoroutine(f func()) {
	var wait sync.WaitGroup
	wait.Go(f)
	wait.Wait()
}

func mustHaveFailed(t *testing.T, s *Store, fatal *atomic.Pointer[error], words string) {
	t.Helper()
	if err := fatal.Load(); err == nil || !strings.Contains((*err).Error(), words) {
		t.Fatalf("Fatal was told %v, want %q", err, words)
	}
	if s.Synced(0) != 0 {
		t.Errorf("synced %d was published", s.Synced(0))
	}
	if err := s.Barrier(); err == nil {
		t.Error("a barrier succeeded afterwards")
	}
	if _, err := s.Span(1).Apply(); err == nil {
		t.Error("an apply succeeded afterwards")
	}
	if err := s.WaitDurable(context.Background(), 0); err == nil && s.Submitted(0) > 0 {
		t.Error("a wait succeeded afterwards")
	}
	for _, w := range []*watchdog{s.pipe.watch, s.spans[0].watch, s.spans[1].watch} {
		for range watchSteps {
			if w.countStep() {
				t.Errorf("%s is still watched: Fatal would be told again", w.what)
			}
		}
	}
}

func TestAFailingSyncEndsTheProcessAndPublishesNothing(t *testing.T) {
	s, fail, fatal := doomed(t, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo)
	s.Span(0).Batch().PutMarks(record.Marks{Seq: 1})
	apply(t, s.Span(0))
	fail.Store(true)
	inGoroutine(func() { _ = s.Barrier() })
	fail.Store(false) // a device that recovers changes nothing
	mustHaveFailed(t, s, fatal, "fatal commit error")
}

func TestAFailingSyncOfAShardEndsTheProcessAndPublishesNothing(t *testing.T) {
	s, fail, fatal := doomed(t, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo)
	s.pipe.shardsSync.Store(true)
	s.Span(0).Batch().PutMarks(record.Marks{Seq: 1})
	fail.Store(true)
	inGoroutine(func() { _, _ = s.Span(0).ApplyAndSync() })
	fail.Store(false)
	mustHaveFailed(t, s, fatal, "fatal commit error")
}

func TestAFailingWriteOfTheLogEndsTheProcess(t *testing.T) {
	s, fail, fatal := doomed(t, errorfs.OpFileWrite)
	fail.Store(true)
	s.Span(0).Batch().PutMarks(record.Marks{Seq: 1})
	inGoroutine(func() {
		_, _ = s.Span(0).Apply()
		_ = s.Barrier()
	})
	mustHaveFailed(t, s, fatal, "fatal commit error")
}

func TestAnErrorWhileABatchWasBuiltEndsTheProcessAtApply(t *testing.T) {
	s, _, fatal := doomed(t)
	s.Span(0).Batch().err = errors.New("read history: broken disk")
	inGoroutine(func() { _, _ = s.Span(0).Apply() })
	mustHaveFailed(t, s, fatal, "broken disk")
}

// hangingFS holds every sync of a log until release is closed.
type hangingFS struct {
	vfs.FS
	hang    atomic.Bool
	release chan struct{}
}

func (h *hangingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &hangingFile{f, h}, nil
}

type hangingFile struct {
	vfs.File
	fs *hangingFS
}

func (f *hangingFile) wait() {
	if f.fs.hang.Load() {
		<-f.fs.release
	}
}

func (f *hangingFile) Sync() error {
	f.wait()
	return f.File.Sync()
}

func (f *hangingFile) SyncData() error {
	f.wait()
	return f.File.SyncData()
}

func TestASyncThatHangsForTenSecondsEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &hangingFS{FS: vfs.NewMem(), release: make(chan struct{})}
		var fatal atomic.Pointer[error]
		s, err := Open(optionsIn(fs, func(o *Options) {
			o.Synced = func(shard int, upTo uint64) { t.Errorf("shard %d was told %d", shard, upTo) }
			o.Fatal = func(err error) {
				fatal.Store(&err)
				runtime.Goexit()
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		s.Span(0).Batch().PutMarks(record.Marks{Seq: 1})
		apply(t, s.Span(0))
		fs.hang.Store(true)
		began := time.Now()
		var barrierErr error
		done := make(chan struct{})
		go func() {
			barrierErr = s.Barrier()
			close(done)
		}()
		for fatal.Load() == nil {
			<-time.After(100 * time.Millisecond)
			if time.Since(began) > time.Minute {
				t.Fatal("a hanging sync went unnoticed")
			}
		}
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("noticed after %v", took)
		}
		if !strings.Contains((*fatal.Load()).Error(), "stuck") {
			t.Errorf("Fatal was told %v", *fatal.Load())
		}
		close(fs.release)
		<-done
		if barrierErr == nil || s.Synced(0) != 0 {
			t.Errorf("the late sync was published: %v, %d", barrierErr, s.Synced(0))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// One late step is what a process sees that was stopped for an hour.
func TestOneLongPauseDoesNotCountAsStuck(t *testing.T) {
	w := newWatchdog("test", new(atomic.Bool), func(err error) { t.Error(err) })
	w.begin()
	for range watchSteps - 1 {
		if w.countStep() {
			t.Fatal("stuck too early")
		}
	}
	w.end()
	if w.countStep() {
		t.Error("stuck without an operation")
	}
	w.begin()
	if w.countStep() {
		t.Error("steps of the operation before are counted")
	}
	w.end()
}
