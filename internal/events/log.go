package events

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// defaultMemoryBytes is Options.MemoryBytes if that is 0.
const defaultMemoryBytes = 48 << 20

// The parts of the memory: a third for the rings, a sixth for the tally, a half for the
// history.
const (
	ringPart    = 3
	tallyPart   = 6
	historyPart = 2
)

// Options are the options of a Log.
type Options struct {
	Shards int
	// MemoryBytes bounds what the log keeps; 0 is 48 MiB.
	MemoryBytes int64
}

// Log keeps the last events and the figures of all queues. Its methods may be called from
// any goroutine. Load, Observe and Tick are for its owners; Observe of one shard is never
// called twice at the same time.
type Log struct {
	// version stamps what changes; Figures raises it with all shards locked.
	version atomic.Uint64
	shards  []*shardLog
	slots   *slots
	history *history
	// forgetsAtMs is when Tick looks for what is quiet; only Tick uses it.
	forgetsAtMs int64
}

// shardLog is the part of one shard.
type shardLog struct {
	mu sync.Mutex
	// number is that of the last event.
	number uint64
	ring   ring
	tally  tally
}

// New makes a log without events. Load must come for each shard before Observe.
func New(o Options) *Log {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	l := &Log{slots: newSlots(o.Shards, o.MemoryBytes/tallyPart), history: newHistory(o.MemoryBytes / historyPart)}
	l.version.Store(1)
	for range o.Shards {
		l.shards = append(l.shards, &shardLog{
			ring: newRing(int(o.MemoryBytes / ringPart / int64(o.Shards))), tally: newTally(l.slots),
		})
	}
	return l
}

// Load begins a shard with what recovery found: the number of its last event and the
// counters of its queues after that.
func (l *Log) Load(shard int, number uint64, queues []store.QueueState) {
	s := l.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number = number
	for i := range queues {
		q := &queues[i]
		p := s.tally.partOf(l.slots.of(q.Key, 0), l.version.Load())
		c := &q.Counters
		for place, tasks := range [places]int64{
			pending: c.ReadyTotal(), delayed: c.Delayed, inProgress: c.InProgress, dead: c.Dead, done: c.Done, limited: c.Limited,
		} {
			p.tasks[place] += tasks
		}
	}
}

// Observe takes the next events of a shard, which are durable.
func (l *Log) Observe(shard int, events []shard.Event) {
	s := l.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	version := l.version.Load()
	for i := range events {
		e := &events[i]
		if e.Number != s.number+1 {
			panic(fmt.Sprintf("events: shard %d: event %d comes after %d", shard, e.Number, s.number))
		}
		s.number = e.Number
		from, to := placeOf(e.From), placeOf(e.To)
		slot := s.tally.count(e, from, to, version)
		s.ring.add(e, slot, from, to)
	}
}

// Tick ends a second of the history, and forgets what was quiet for an hour. The owner calls
// it once a second, never twice at the same time.
func (l *Log) Tick(nowMs int64) {
	l.history.tick(l, nowMs)
	if nowMs < l.forgetsAtMs {
		return
	}
	l.forgetsAtMs = nowMs + forgetEveryMs
	l.history.forget(l.forget(nowMs))
}

// forgetEveryMs is the time between two looks for what is quiet.
const forgetEveryMs = 60_000

// forget drops the counts of quiet queues, and the slot of one that has no task and no event
// in the rings. It returns the slots of the quiet queues.
func (l *Log) forget(nowMs int64) (forgotten []uint32) {
	l.lock()
	defer l.unlock()
	for slot := uint32(1); slot < l.slots.count(); slot++ {
		quiet, ends := l.quiet(slot, nowMs)
		if !quiet {
			continue
		}
		forgotten = append(forgotten, slot)
		for _, s := range l.shards {
			s.tally.forget(slot, ends, l.version.Load())
		}
		if ends {
			l.slots.drop(slot, nowMs)
		}
	}
	return forgotten
}

// quiet reports whether no shard had an event of a queue for an hour, and whether nothing is
// left of it. Counts of one shard alone must not go: their sum would go down.
func (l *Log) quiet(slot uint32, nowMs int64) (quiet, ends bool) {
	ends = true
	for _, s := range l.shards {
		p := s.tally.at(slot)
		if p == nil {
			continue
		}
		if quiet = int64(p.atS)*1000+quietForMs <= nowMs; !quiet {
			return false, false
		}
		ends = ends && p.tasks == [places]int64{} && s.ring.oldestMs() >= int64(p.atS+1)*1000
	}
	return quiet, ends
}

// lock takes the locks of all shards, in order.
func (l *Log) lock() {
	for _, s := range l.shards {
		s.mu.Lock()
	}
}

func (l *Log) unlock() {
	for _, s := range l.shards {
		s.mu.Unlock()
	}
}

// Positions are the numbers of the last events of all shards.
func (l *Log) Positions() []uint64 {
	at := make([]uint64, len(l.shards))
	for i, s := range l.shards {
		s.mu.Lock()
		at[i] = s.number
		s.mu.Unlock()
	}
	return at
}

// Oldest are the numbers of the oldest events that Read has, or of the next one of a shard
// that has none.
func (l *Log) Oldest() []uint64 {
	at := make([]uint64, len(l.shards))
	for i, s := range l.shards {
		s.mu.Lock()
		at[i] = s.number + 1 - uint64(s.ring.len())
		s.mu.Unlock()
	}
	return at
}

// Record is one event.
type Record struct {
	Number   uint64
	AtMs     int64
	Slot     uint32
	Task     wire.TaskID
	From, To wire.Location
	Status   wire.Status
	Cause    record.Cause
	// Worker is empty for an event without a worker, and if the ring has too many workers.
	Worker   string
	Delivery int
	Attempts int
	SpentMs  int64
}

// maxRead bounds what one Read copies, and so how long it keeps the lock of a shard.
const maxRead = 1000

// Read copies the events of a shard after a number, in order, at most 1,000. missed is how
// many between after and the first of them the log has no more.
func (l *Log) Read(shard int, after uint64, into []Record) (n int, missed uint64) {
	s := l.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= s.number {
		return 0, 0
	}
	if has := uint64(s.ring.len()); s.number-after > has {
		missed = s.number - after - has
	}
	first := after + missed + 1
	n = min(len(into), maxRead, int(s.number+1-first))
	for i := range n {
		number := first + uint64(i)
		into[i] = s.ring.read(int(s.number - number))
		into[i].Number = number
	}
	return n, missed
}

// Figures calls each with every queue that has changed since a version, or with all for
// version 0, in the order of the slots. It returns the version for the next call, and the
// numbers of the last events in the figures. A name without a command says that the queue
// is gone; its slot stays unused for an hour. each must not keep the figures.
func (l *Log) Figures(since uint64, each func(wire.SlotName, *Figures)) (version uint64, at []uint64) {
	var rows []slotFigures
	l.lock()
	version = l.version.Load()
	for _, s := range l.shards {
		at = append(at, s.number)
	}
	for _, slot := range l.changed(since) {
		f := slotFigures{name: l.slots.name(slot)}
		for _, s := range l.shards {
			s.tally.addTo(slot, &f.figures)
		}
		rows = append(rows, f)
	}
	l.version.Store(version + 1)
	l.unlock()
	for i := range rows {
		each(rows[i].name, &rows[i].figures)
	}
	return version, at
}

type slotFigures struct {
	name    wire.SlotName
	figures Figures
}

// changed are the slots that have changed since a version, in order. All shards are locked.
func (l *Log) changed(since uint64) (found []uint32) {
	for _, s := range l.shards {
		for slot, version := range s.tally.changed {
			if version > since {
				found = append(found, uint32(slot))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
