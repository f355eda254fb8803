package sim

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/rs/zerolog"

	"codeq/internal/audit"
	"codeq/internal/limit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	dataDir = "data"
	// memTableBytes is what Pebble begins with whatever it is told; a flush at
	// flushBytes comes long before it is full, so Pebble never decides itself
	// when a log ends and what becomes durable with it.
	memTableBytes = 256 << 10
	flushBytes    = 64 << 10
	// tablesMost is far below where Pebble stops writes and waits for a
	// compaction, which only a step makes.
	tablesMost = 8
	// diskBytes makes the reserve a quarter of it: 1 MiB.
	diskBytes = 4 << 20
	// sleepMostMs is the longest that the actor of a shard sleeps.
	sleepMostMs = 10_000
)

// errInjected is the fault of the disk.
var errInjected = errors.New("injected fault")

// death is the panic by which the process ends: it has no other way out.
type death struct{ cause error }

// machine is a process with its disk, as long as the process lives.
type machine struct {
	disk *vfs.MemFS
	// failSyncs makes syncs of the log fail, failTables that many writes of
	// tables.
	failSyncs  atomic.Bool
	failTables atomic.Int32
	// nextLog says that Pebble has begun another log since tables were written: a
	// batch larger than half of its memory ends the one before, and what that
	// holds is durable.
	nextLog atomic.Bool
	dead    atomic.Bool
	// tables is how many there are, flushedAt what was free when they were written last.
	tables    int
	flushedAt int64
}

// server is one life of the process, in a cluster one time as the leader.
type server struct {
	*machine
	store  *store.Store
	engine *shardactor.Engine
	gates  *shardactor.Gates
	// silent is set while a sync is one that nobody hears of any more.
	silent bool
	life   int
	random io.Reader
	// lease is the time as the leader of a cluster, nil for a server alone.
	lease *lease

	behind []behind
	// waiting is the new work in each mailbox, in the order in which it came, passed in how
	// many runs in a row a shard has taken none of a tenant that waits.
	waiting  [][]newWork
	passed   [][]int
	wakeAtMs []int64
	// unsynced says that something was applied since the last sync.
	unsynced bool
	applied  []uint64
	durable  []uint64
	// untold is what the last syncs made durable and nobody was told yet.
	untold []syncedShard
	// made are the effects that rounds made and nobody got yet, by their number.
	made     map[shard.Effect]madeEffect
	lastMade uint64
	events   *watcher
	// notes are reports of each shard that nobody heard of yet.
	notes [][]madeNote
	// flights are the runs of shards that wait for the cluster, running is the shard that runs.
	flights []*flight
	running int
}

// syncedShard is news of a sync that the effect gates have not heard.
type syncedShard struct {
	shard int
	upTo  uint64
}

// madeEffect says which round made an effect.
type madeEffect struct {
	shard  int
	batch  uint64
	number uint64
}

func (w *world) newDisk() *vfs.MemFS {
	disk := vfs.NewCrashableMem()
	if w.shape.big {
		// A disk that does not tell its size is never full.
		return disk
	}
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: diskBytes, TotalBytes: diskBytes})
	return disk
}

// faultyFS is the disk as the process sees it. A log is never written over an
// old one: those files would be out of reach of faults, and which logs there
// are to reuse depends on Pebble's own goroutines.
type faultyFS struct{ *errorfs.FS }

// ReuseForWrite implements vfs.FS.
func (f faultyFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(oldName); err != nil {
		return nil, err
	}
	return f.Create(newName, category)
}

// boot opens the store and loads the engine, as a process does when it starts.
func (w *world) boot(disk *vfs.MemFS) {
	m := &machine{disk: disk}
	if w.server != nil {
		m.tables = w.server.tables
	}
	s := w.newServer(m)
	o := w.storeOptions(s.machine)
	o.Random, o.LevelChanged, o.Synced = s.random, s.gates.SpaceChanged, s.synced
	opened, err := store.Open(o)
	if err != nil {
		violate("the store opens after every crash", "%v", err)
	}
	w.serve(s, opened)
}

func (w *world) newServer(m *machine) *server {
	s := &server{machine: m, life: w.lives, made: make(map[shard.Effect]madeEffect), events: newWatcher(w), notes: make([][]madeNote, w.shape.shards), flights: make([]*flight, w.shape.shards)}
	w.lives++
	s.gates = new(shardactor.Gates)
	s.random = w.chance.bytesFor(s.life)
	return s
}

// files is the disk as the process sees it.
func (m *machine) files() vfs.FS {
	return faultyFS{errorfs.Wrap(m.disk, errorfs.InjectorFunc(m.fault))}
}

func (w *world) storeOptions(m *machine) store.Options {
	return store.Options{
		FS: m.files(), Dir: dataDir, Shards: w.shape.shards,
		MemTableBytes: memTableBytes, CacheBytes: 1 << 20, Log: zerolog.Nop(),
		Fatal: m.fatal, DisableAutomaticCompactions: !w.shape.big,
	}
}

// synced is told by the store how far a shard is durable.
func (s *server) synced(shardNo int, upTo uint64) {
	if !s.silent {
		s.untold = append(s.untold, syncedShard{shardNo, upTo})
	}
}

// serve loads the engine over a store that is open.
func (w *world) serve(s *server, opened *store.Store) {
	s.store = opened
	s.nextLog.Store(false)
	w.server = s
	w.tableWritten()
	w.checkStore()
	var observer shardactor.Observer = s.events
	var follow func(record.QueueKey, *record.Settings)
	if w.shape.hooks {
		observer = w.newHooks(observer)
		follow = w.hooks.follow
	}
	var traceParent func(id wire.TaskID, parent string, delivery int) string
	if w.shape.traced {
		traceParent = handedOn
	}
	var err error
	s.engine, err = shardactor.NewEngine(shardactor.EngineOptions{
		Store: opened, Gates: s.gates, Random: s.random, Log: zerolog.Nop(), Fatal: s.fatal,
		Mailbox: w.shape.mailbox, Index: w.shape.index, Limits: w.shape.limits, Retention: w.shape.retention, Made: w.made, Observe: w.observe, Events: observer, Notes: w.noted, Settings: follow, TraceParent: traceParent,
		Heard: func(effects []shard.Effect) { w.delivered(effects, make([]uint64, w.shape.shards)) },
		StartClock: func(latestMs int64) func() int64 {
			w.startClock(latestMs)
			return func() int64 { return w.nowMs }
		},
	})
	if err != nil {
		violate("the engine loads after every crash", "%v", err)
	}
	shards := w.shape.shards
	s.wakeAtMs = make([]int64, shards)
	s.behind, s.waiting, s.passed = make([]behind, shards), make([][]newWork, shards), make([][]int, shards)
	for shard := range s.passed {
		s.passed[shard] = make([]int, len(tenants))
	}
	s.applied, s.durable = make([]uint64, shards), make([]uint64, shards)
	s.flushedAt = opened.Guard().FreeBytes()
	s.events.begin()
	w.beginDoors()
	w.beginNotices()
	w.audience.began()
}

// startClock begins the time of a life: the wall's, which may have been set back,
// but not before what is stored.
func (w *world) startClock(latestMs int64) {
	l, most := w.server.lease, w.nowMs
	if l != nil {
		most = max(most, l.cluster.sentMs)
	}
	if latestMs > most {
		violate("time does not run ahead", "stored %d, now %d", latestMs, most)
	}
	if l != nil && latestMs < l.cluster.latestMs {
		violate("time does not run back", "a leader said %d, the next one is told of %d", l.cluster.latestMs, latestMs)
	}
	if latestMs < w.model.durableMs {
		violate("time does not run back", "it was %d when the newest durable batch was made, the start is told of %d", w.model.durableMs, latestMs)
	}
	if l == nil {
		w.nowMs = max(w.nowMs-w.backMs, latestMs)
		return
	}
	l.cluster.startClock(l.node, latestMs)
}

// fault is asked at every operation on a file.
func (m *machine) fault(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if m.failSyncs.Load() && strings.HasSuffix(op.Path, ".log") {
			return errInjected
		}
	case errorfs.OpCreate:
		if strings.HasSuffix(op.Path, ".log") {
			m.nextLog.Store(true)
		}
	case errorfs.OpFileWrite:
		if strings.HasSuffix(op.Path, ".sst") && m.failTables.Load() > 0 && m.failTables.Add(-1) >= 0 {
			return errInjected
		}
	}
	return nil
}

// fatal ends the process. Whoever else of Pebble or the store still runs is
// stopped where it stands.
func (m *machine) fatal(err error) {
	if m.dead.Swap(true) {
		runtime.Goexit()
	}
	panic(&death{err})
}

// made is told of every round, before its batch is applied.
func (w *world) made(o *shardactor.Observed) {
	w.rounds++
	s := w.server
	w.tell(o)
	if s.lease != nil {
		s.lease.isMade(o)
	}
	s.drained(o.Shard, o.Messages)
	s.drained(o.Shard, o.Behind)
	w.doors.noteFreed(o, w.nameOf)
	w.model.isMade(o)
}

// observe is told what became of every round, before its effects leave.
func (w *world) observe(o *shardactor.Observed) {
	s := w.server
	if s.lease != nil && !s.lease.saysWhat(o) {
		return
	}
	if o.Batch > s.applied[o.Shard] {
		s.unsynced = s.lease == nil
		w.model.stampMs = max(w.model.stampMs, o.NowMs)
	}
	s.applied[o.Shard] = o.Batch
	for _, a := range o.Outcome.Effects {
		if _, is := a.Sink.(*limit.Tenant); is {
			continue // see noteFreed
		}
		s.lastMade++
		s.made[a.Effect] = madeEffect{o.Shard, o.Batch, s.lastMade}
	}
	s.events.made(o.Shard, o.Batch, o.Outcome.Events)
	for _, n := range o.Outcome.Notes {
		s.notes[o.Shard] = append(s.notes[o.Shard], madeNote{n, o.Batch})
	}
	w.model.isApplied(o.Shard)
	if s.lease != nil {
		w.model.durable()
	}
}

// tell puts a round into the trace.
func (w *world) tell(o *shardactor.Observed) {
	w.trace.word(uint64(o.Shard)<<32 | uint64(len(o.Messages)))
	w.trace.word(uint64(o.Outcome.NextAtMs))
	for i := range o.Outcome.Events {
		e := &o.Outcome.Events[i]
		w.trace.word(e.Number)
		w.trace.text(e.TaskID[:])
		w.trace.text([]byte(e.Cause.String()))
		w.trace.text([]byte(e.To))
	}
	for _, a := range o.Outcome.Effects {
		w.trace.word(uint64(refOf(a.Effect)))
		if g, ok := a.Effect.(*shard.Granted); ok {
			w.trace.text(g.Token[:])
		}
	}
	if !w.trace.recording {
		return
	}
	w.trace.say("  round of shard %d: %d messages at %s, space %v", o.Shard, len(o.Messages), w.clock(), o.Space)
	for _, message := range o.Messages {
		w.trace.say("    <- %s", w.messageText(message))
	}
	for _, e := range o.Outcome.Events {
		w.trace.say("    event %d: %s %s -> %s (%s), delivery %d", e.Number, w.name(e.TaskID), e.From, e.To, e.Cause, e.Delivery)
	}
	for _, a := range o.Outcome.Effects {
		w.trace.say("    -> %s", w.effectText(a.Effect))
	}
}

// delivered judges that effects may leave: they are durable, come once, and in
// the order in which the shard made them. last is the newest number that the
// sink has seen of each shard.
func (w *world) delivered(effects []shard.Effect, last []uint64) {
	s := w.server
	for _, e := range effects {
		m, ok := s.made[e]
		if !ok {
			violate("an effect is delivered once", "%s", describe(e))
		}
		delete(s.made, e)
		if m.batch > s.durable[m.shard] {
			violate("no effect before its batch is durable", "shard %d: batch %d, durable %d: %s",
				m.shard, m.batch, s.durable[m.shard], describe(e))
		}
		if m.number < last[m.shard] {
			violate("effects keep their order", "shard %d: %d after %d: %s", m.shard, m.number, last[m.shard], describe(e))
		}
		if made := s.events.shards[m.shard].made; len(made) > 0 && made[0].batch <= m.batch {
			violate("events are observed before the effects of their round", "shard %d: event %d of batch %d, effect of batch %d: %s",
				m.shard, made[0].Number, made[0].batch, m.batch, describe(e))
		}
		last[m.shard] = m.number
		w.trace.word(m.number)
	}
}

// mustRun says that the actor of a shard would be awake.
func (w *world) mustRun(shard int) bool {
	return w.server.flights[shard] != nil || w.server.wakeAtMs[shard] <= w.nowMs || w.server.engine.MailboxFigures(shard).Depth > 0
}

// run lets a shard work through its mailbox.
func (w *world) run(shard int) {
	s := w.server
	f := s.flights[shard]
	if f == nil {
		began, before := w.nowMs, s.engine.MailboxFigures(shard).New
		w.runs(shard, func() { f = w.goOn(shard) })
		w.noteBehind(shard, before, began)
	} else {
		w.goOn(shard)
	}
	if s.flights[shard] != nil {
		return
	}
	sleep := f.sleep
	if w.nowMs > f.beganMs && sleep == time.Millisecond {
		sleep = 0 // the least, though it was due while the batch was on its way
	}
	s.wakeAtMs[shard] = w.nowMs + min(sleep.Milliseconds(), sleepMostMs)
	free := s.store.Guard().FreeBytes()
	if s.flushedAt-free >= flushBytes || s.nextLog.Load() {
		w.flush()
	}
}

// tick lets the disk guard look at the disk.
func (w *world) tick() {
	s := w.server
	written := s.flushedAt - s.store.Guard().FreeBytes()
	s.store.Guard().Tick(time.UnixMilli(w.nowMs))
	s.flushedAt = s.store.Guard().FreeBytes() + written
	w.cluster.countsDisks()
}

// checkStore reads the whole database against itself.
func (w *world) checkStore() {
	findings, err := audit.Check(w.server.store)
	if err != nil {
		violate("the database agrees with itself", "%v", err)
	}
	if len(findings) > 0 {
		lines := make([]string, 0, len(findings))
		for _, f := range findings[:min(len(findings), 5)] {
			lines = append(lines, f.String())
		}
		violate("the database agrees with itself", "%d findings: %s", len(findings), strings.Join(lines, "; "))
	}
}

// control is a mailbox that is never too small for what the world posts at once.
var roomy = mailbox.Limits{Messages: 4096, Bytes: 8 << 20}

func (w *world) clock() string {
	ms := w.nowMs - epochMs
	return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000)
}

// name is a short name for a task in a story.
func (w *world) name(id wire.TaskID) string {
	n, ok := w.names[id]
	if !ok {
		n = len(w.names) + 1
		w.names[id] = n
	}
	return fmt.Sprintf("#%d", n)
}
