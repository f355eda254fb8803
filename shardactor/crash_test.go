package shardactor

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"

	"codeq/internal/audit"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// A random workload runs over a file system that can crash. At seeded file
// operations, in the middle of commits, flushes and barriers, the disk is
// cloned as a power cut would leave it, keeping none, half or all of what was
// not synced. Every clone must open, pass store.Check, know every task and
// outcome that was acknowledged before, and drain to the end.
func TestCrashLosesNothingAcknowledged(t *testing.T) {
	runs, clonesPerRun := 26, 20
	switch {
	case testing.Short():
		runs, clonesPerRun = 1, 4 // its world has one goroutine, and the long form runs without the detector
	case raceDetector:
		runs = 5
	}
	var taken atomic.Int64
	for seed := range runs {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			t.Parallel()
			d := newCrashDriver(t, uint64(seed), clonesPerRun)
			d.work(400)
			d.close()
			for _, c := range d.clones {
				d.verify(c)
			}
			taken.Add(int64(len(d.clones)))
		})
	}
	t.Cleanup(func() {
		if want := int64(runs * clonesPerRun); taken.Load() < want && !t.Failed() {
			t.Errorf("%d clones were taken, want %d", taken.Load(), want)
		}
	})
}

const crashShards = 2

// crashWorld is a whole engine without a goroutine: stores, loops, and a list
// of everything that was let out.
type crashWorld struct {
	t      *testing.T
	store  *store.Store
	engine *Engine
	nowMs  atomic.Int64
}

func newCrashWorld(t *testing.T, nowMs int64) *crashWorld {
	w := &crashWorld{t: t}
	w.nowMs.Store(nowMs)
	return w
}

func (w *crashWorld) open(fs vfs.FS, seed uint64) {
	t := w.t
	t.Helper()
	gates := new(Gates)
	chance := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	fatal := func(err error) { panic(fmt.Sprintf("fatal: %v", err)) }
	s, err := store.Open(store.Options{
		FS: fs, Dir: "data", Shards: crashShards, MemTableBytes: 256 << 10, Log: zerolog.Nop(),
		Random: chance, Fatal: fatal, Synced: gates.Synced,
	})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	w.store = s
	e, err := NewEngine(EngineOptions{
		Store: s, Gates: gates, Random: chance, Log: zerolog.Nop(), Fatal: fatal,
		StartClock: func(latestMs int64) func() int64 {
			w.nowMs.Store(max(w.nowMs.Load(), latestMs))
			return w.nowMs.Load
		},
	})
	if err != nil {
		t.Fatalf("load engine: %v", err)
	}
	w.engine = e
}

// step runs the mailbox of one shard by hand, with messages behind it, and
// says how long its actor would sleep.
func (w *crashWorld) step(shardNo int, messages ...shard.Message) time.Duration {
	l := w.engine.loops[shardNo]
	return l.handle(append(l.box.Drain(nil), messages...))
}

func (w *crashWorld) barrier() {
	if err := w.store.Barrier(); err != nil {
		w.t.Fatalf("barrier: %v", err)
	}
}

func (w *crashWorld) close() {
	if err := w.store.Close(); err != nil {
		w.t.Errorf("close store: %v", err)
	}
}

// crashClone is a disk after a power cut, and how much had been let out when
// it happened.
type crashClone struct {
	fs       *vfs.MemFS
	released int
	percent  int
	nowMs    int64
}

// cloneableMem goes around a trap of MemFS: its ReuseForWrite takes one lock for
// reading twice and hangs for ever when a clone is asked for in between.
type cloneableMem struct{ *vfs.MemFS }

func (m cloneableMem) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := m.Rename(from, to); err != nil {
		return nil, err
	}
	return m.OpenReadWrite(to, category)
}

// crashDriver plays producers and workers against a crashWorld.
type crashDriver struct {
	*crashWorld
	seed   uint64
	chance *rand.Rand
	disk   *vfs.MemFS
	// ops counts file operations; clones are taken at those in cutAt.
	ops      atomic.Int64
	cutAt    map[int64]int
	clonesMu sync.Mutex
	clones   []crashClone

	log       []shard.Effect
	released  atomic.Int64
	payloads  map[wire.TaskID][]byte
	results   map[wire.TaskID][]byte
	inHand    []*shard.Granted
	consumer  *Consumer
	consumers int
	drawn     int
}

func newCrashDriver(t *testing.T, seed uint64, clones int) *crashDriver {
	d := &crashDriver{
		crashWorld: newCrashWorld(t, testEpochMs),
		seed:       seed, chance: rand.New(rand.NewPCG(seed, 7)), disk: vfs.NewCrashableMem(),
		cutAt: make(map[int64]int), payloads: make(map[wire.TaskID][]byte), results: make(map[wire.TaskID][]byte),
	}
	percents := []int{0, 50, 100}
	for len(d.cutAt) < clones {
		d.cutAt[60+d.chance.Int64N(900)] = percents[len(d.cutAt)%3]
	}
	fs := errorfs.Wrap(cloneableMem{d.disk}, errorfs.InjectorFunc(func(errorfs.Op) error {
		d.cut()
		return nil
	}))
	d.open(fs, seed)
	return d
}

// cut clones the disk at the chosen operations. It runs on whatever goroutine
// does the operation; what was let out is read before the clone is taken, so
// it can only be less than what the clone holds.
func (d *crashDriver) cut() {
	percent, chosen := d.cutAt[d.ops.Add(1)]
	if !chosen {
		return
	}
	c := crashClone{released: int(d.released.Load()), percent: percent, nowMs: d.nowMs.Load()}
	c.fs = d.disk.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(d.seed, uint64(c.released))),
	})
	d.clonesMu.Lock()
	defer d.clonesMu.Unlock()
	d.clones = append(d.clones, c)
}

// Deliver is the sink of every producer and worker of the driver.
func (d *crashDriver) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		d.log = append(d.log, e)
		d.released.Store(int64(len(d.log)))
		if g, ok := e.(*shard.Granted); ok {
			d.inHand = append(d.inHand, g)
			d.consumer.Taken(len(g.Task.Payload), shard.MaxUntakenBytes)
		}
	}
}

func (d *crashDriver) work(steps int) {
	d.sit()
	for d.ops.Load() < 1000 || steps > 0 {
		steps--
		var messages [crashShards][]shard.Message
		for range 1 + d.chance.IntN(12) {
			shardNo, m := d.message()
			messages[shardNo] = append(messages[shardNo], m)
		}
		for shardNo, batch := range messages {
			d.step(shardNo, batch...)
		}
		if d.chance.IntN(3) > 0 {
			d.barrier()
		}
		d.nowMs.Add(int64(d.chance.IntN(700)))
		if d.chance.IntN(60) == 0 {
			d.consumer.Close(0)
			d.sit()
		}
	}
	d.barrier()
}

// sit opens a new session; the tasks of the old one are left to the grace.
func (d *crashDriver) sit() {
	d.consumers++
	d.inHand = nil
	d.consumer = d.engine.NewConsumer(ConsumerOptions{
		ID: wire.SessionID{1: byte(d.consumers), 2: byte(d.consumers >> 8)}, Tenant: "default", Subject: "anonymous", Sink: d,
	})
	d.consumer.SetWindow(20)
	for shardNo := range crashShards {
		d.step(shardNo, &shard.Subscribe{
			Asker: shard.Asker{Sink: d}, Consumer: d.consumer.Consumer, Commands: []string{"a", "b"}, LeaseForMs: 2000,
		})
	}
}

func (d *crashDriver) message() (int, shard.Message) {
	if len(d.inHand) == 0 || d.chance.IntN(5) < 2 {
		return d.newTask()
	}
	i := d.chance.IntN(len(d.inHand))
	g := d.inHand[i]
	ref := wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}
	owner, asker := shard.Owner{Tenant: "default", Subject: "anonymous"}, shard.Asker{Sink: d}
	shardNo := d.engine.ShardOf(g.Task.ID)
	verb := d.chance.IntN(12)
	if verb < 10 {
		d.inHand = append(d.inHand[:i], d.inHand[i+1:]...)
		d.consumer.Return(1)
	}
	switch {
	case verb < 6:
		result := fmt.Appendf(nil, `{"of":%s}`, g.Task.Payload)
		d.results[g.Task.ID] = result
		return shardNo, &shard.Result{Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref},
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: result}}
	case verb == 6:
		return shardNo, &shard.End{How: shard.Nack, Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{DelaySeconds: -1, Reason: "no"}}
	case verb == 7:
		return shardNo, &shard.End{How: shard.Nack, Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{}}
	case verb == 8:
		return shardNo, &shard.End{How: shard.Abandon, Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}}
	case verb == 9:
		return shardNo, &shard.End{How: shard.Release, Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}}
	case verb == 10:
		return shardNo, &shard.Heartbeat{Asker: asker, Owner: owner, Consumer: d.consumer.Consumer}
	default:
		return shardNo, &shard.Received{Consumer: d.consumer.Consumer, Tasks: []wire.TaskRef{ref}}
	}
}

func (d *crashDriver) newTask() (int, shard.Message) {
	d.drawn++
	key := ""
	if d.chance.IntN(4) == 0 {
		key = fmt.Sprintf("key/%d", d.chance.IntN(50))
	}
	command := []string{"a", "b"}[d.chance.IntN(2)]
	id, shardNo := d.engine.Route("default", command, key)
	payload := fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, d.drawn, strings.Repeat("x", d.chance.IntN(2000)))
	if key != "" {
		payload = fmt.Appendf(nil, `{"key":"%s"}`, key)
	}
	m := &shard.Enqueue{Asker: shard.Asker{Sink: d}, ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
		Command: command, Payload: payload, Priority: d.chance.IntN(3), MaxAttempts: 1 + d.chance.IntN(4),
		IdempotencyKey: key, DelaySeconds: int64(max(0, d.chance.IntN(6)-3)),
	}}
	switch d.drawn % 6 {
	case 1:
		m.TTLSeconds = int64(4 + d.drawn%20)
	case 2:
		m.TimeoutSeconds = int64(1 + d.drawn%3)
	}
	m.Fingerprint = shard.FingerprintOf(&m.EnqueueRequest)
	d.payloads[id] = payload
	return shardNo, m
}

// verify opens a clone and holds it against what had been let out before.
func (d *crashDriver) verify(c crashClone) {
	t := d.t
	w := newCrashWorld(t, c.nowMs)
	w.open(c.fs, d.seed+1000)
	defer w.close()
	findings, err := audit.Check(w.store)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, f := range findings {
		t.Errorf("clone with %d %% of unsynced data: %+v", c.percent, f)
	}
	known := make(map[wire.TaskID]bool)
	for _, e := range d.log[:c.released] {
		d.verifyEffect(w, e, known)
	}
	d.drain(w, known)
}

// verifyEffect checks that the clone remembers one effect that was let out.
func (d *crashDriver) verifyEffect(w *crashWorld, e shard.Effect, known map[wire.TaskID]bool) {
	t := d.t
	switch e := e.(type) {
	case *shard.Enqueued:
		known[e.TaskID] = true
		task, err := w.store.ReadTask("default", e.TaskID)
		if err != nil || task == nil {
			t.Fatalf("acknowledged task %v is lost: %v", e.TaskID, err)
		}
		if want := d.payloads[e.TaskID]; !bytes.Equal(task.Payload, want) {
			t.Fatalf("task %v has payload %s, want %s", e.TaskID, task.Payload, want)
		}
	case *shard.Granted:
		task, err := w.store.ReadTask("default", e.Task.ID)
		if err != nil || task == nil || task.Deliveries < e.Task.Deliveries {
			t.Fatalf("delivery %d of task %v is forgotten: %+v %v", e.Task.Deliveries, e.Task.ID, task, err)
		}
	case *shard.Completed:
		d.verifyEnded(w, e.Record.TaskID, wire.StatusCompleted)
	case *shard.Requeued:
		if e.Status == wire.NackDeadLettered {
			d.verifyEnded(w, e.TaskID, wire.StatusFailed)
		}
		if e.Status == wire.NackExpired {
			d.verifyEnded(w, e.TaskID, wire.StatusCancelled)
		}
	}
}

func (d *crashDriver) verifyEnded(w *crashWorld, id wire.TaskID, status wire.Status) {
	task, record, err := w.store.ReadResult("default", id)
	if err != nil || task == nil || record == nil || task.Status != status || record.Status != status {
		d.t.Fatalf("task %v ended as %s and is now %+v, %+v, %v", id, status, task, record, err)
	}
	if status == wire.StatusCompleted && !bytes.Equal(record.Result, d.results[id]) {
		d.t.Fatalf("task %v has result %s, want %s", id, record.Result, d.results[id])
	}
}

// drain runs the recovered engine to the end: every task, acknowledged or not,
// must reach a terminal state once, none twice.
func (d *crashDriver) drain(w *crashWorld, known map[wire.TaskID]bool) {
	worker := &drainWorker{world: w, completed: make(map[wire.TaskID]int)}
	worker.consumer = w.engine.NewConsumer(ConsumerOptions{
		ID: wire.SessionID{9}, Tenant: "default", Subject: "anonymous", Sink: worker,
	})
	worker.consumer.SetWindow(1000)
	for shardNo := range crashShards {
		w.step(shardNo, &shard.Subscribe{Consumer: worker.consumer.Consumer, Commands: []string{wire.AllCommands}, LeaseForMs: 60_000})
	}
	for round := 0; ; round++ {
		w.barrier()
		sleepFor := time.Hour
		for shardNo := range crashShards {
			sleepFor = min(sleepFor, w.step(shardNo, worker.answers(shardNo)...))
		}
		w.barrier()
		if w.idle() {
			break
		}
		if len(worker.granted) == 0 {
			// Time goes to the next deadline, as it would for sleeping actors: a
			// jump beyond it would look like a stall.
			w.nowMs.Add(sleepFor.Milliseconds())
		}
		if round > 1_000 {
			d.t.Fatalf("the recovered engine does not drain: %d tasks completed", len(worker.completed))
		}
	}
	for id, n := range worker.completed {
		if n != 1 {
			d.t.Fatalf("task %v was completed %d times after the crash", id, n)
		}
	}
	for id := range known {
		task, err := w.store.ReadTask("default", id)
		if err != nil || task == nil || !task.Status.Terminal() {
			d.t.Fatalf("task %v did not end: %+v %v", id, task, err)
		}
	}
	if findings, err := audit.Check(w.store); err != nil || len(findings) != 0 {
		d.t.Fatalf("check after draining: %v %v", findings, err)
	}
}

// idle reports that every queue counts nothing but ended tasks.
func (w *crashWorld) idle() bool {
	queues, err := w.store.ReadQueues("default")
	if err != nil {
		w.t.Fatalf("read queues: %v", err)
	}
	for _, q := range queues {
		if q.Ready+q.Delayed+q.InProgress > 0 {
			return false
		}
	}
	return true
}

// drainWorker completes whatever it is given.
type drainWorker struct {
	world     *crashWorld
	consumer  *Consumer
	granted   []*shard.Granted
	completed map[wire.TaskID]int
}

func (w *drainWorker) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			w.granted = append(w.granted, e)
			w.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
		case *shard.Completed:
			w.completed[e.Record.TaskID]++
		}
	}
}

func (w *drainWorker) answers(shardNo int) []shard.Message {
	var messages []shard.Message
	left := w.granted[:0]
	for _, g := range w.granted {
		if w.world.engine.ShardOf(g.Task.ID) != shardNo {
			left = append(left, g)
			continue
		}
		w.consumer.Return(1)
		messages = append(messages, &shard.Result{
			Holder: shard.Holder{
				Asker: shard.Asker{Sink: w}, Owner: shard.Owner{Tenant: "default", Subject: "anonymous"},
				TaskRef: wire.TaskRef{TaskID: g.Task.ID, Token: g.Token},
			},
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
		})
	}
	w.granted = left
	return messages
}
