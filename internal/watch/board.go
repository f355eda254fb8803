package watch

import (
	"codeq/internal/events"
	"codeq/internal/needs"
	"codeq/wire"
)

// Log is the ring of events. Any goroutine.
type Log interface {
	// Positions are the numbers of the last event of each shard, Oldest those of the oldest
	// one in the ring, or of the next one if it has none.
	Positions() []uint64
	Oldest() []uint64
	// Read copies events of a shard after a number, in order. missed is how many between
	// after and the first of them are not in the ring any more.
	Read(shard int, after uint64, into []events.Record) (n int, missed uint64)
}

// Facts do not change while a server runs.
type Facts struct {
	Events Log
	// Reports are what workers have reported; nil if nobody keeps it.
	Reports    *events.Reports
	CreationID string
	// Leader is where clients reach this node while it leads a cluster; empty for none.
	Version, Leader string
	// ShardOf is the shard of a task.
	ShardOf func(wire.TaskID) int
	// Points is the history of a slot, the oldest point first; nil if the server has none.
	// TotalOf is the slot for it of all queues of a tenant, or with "" of all tenants.
	Points  func(slot uint32, rangeMs int64) (stepMs int64, points []wire.WatchPoint)
	TotalOf func(tenant string) (slot uint32)
	// Beside is what is known of the queue of a slot beside its figures, but for Dead. Times
	// adds the times that its percentiles are of. Both are asked on the goroutine of the board.
	Beside func(slot uint32, nowMs int64) needs.Beside
	Times  func(slot uint32, wait, run *[events.Buckets]uint64)
	// Sessions are the sessions of a tenant, by id.
	Sessions func(tenant string) []wire.SessionFigures
	// Server are the figures of the server. They are asked for once a second at most.
	Server func(nowMs int64) wire.ServerFigures
	// Dead looks at the dead letters of a queue, Slow for deliveries of it that began before a
	// time, and Target for why its target gets no task.
	Dead   func(queue wire.SlotName) needs.DeadLetters
	Slow   func(queue wire.SlotName, beforeMs int64) needs.Slow
	Target func(queue wire.SlotName) string
}

// Board has the figures of all queues as of its last refresh. Subscribers only read it. Sessions
// and figures of the server are looked up when a subscriber wants them.
type Board struct {
	Facts
	// At are the numbers of the last events in the figures.
	At []uint64
	// version counts the changes of rows; a row has the version of its last change.
	version uint64
	rows    []row
	rosters map[string]*roster // by tenant
	// forgotten is more than the version of every roster that was dropped. The next rosters begin
	// with it, so a client with rows of a dropped one gets a snapshot.
	forgotten uint64
	// shared are ticks of the version sharedAt.
	shared   map[sharing]shared
	sharedAt uint64
	overview
}

type row struct {
	changed uint64
	// named is the version of the name. A slot without a name was never used.
	named   uint64
	name    wire.SlotName
	figures wire.Figures
	// times changes with what the percentiles of the row are of, which those of a total follow from.
	times uint64
	// dead is what the last look at the dead letters has found, deadThen how many the queue had
	// then, lookedAt the number of that look.
	dead     needs.DeadLetters
	deadThen int64
	lookedAt uint64
	slow     needs.Slow
}

// NewBoard makes a board without queues.
func NewBoard(f Facts) *Board {
	return &Board{Facts: f, At: f.Events.Positions(), rosters: make(map[string]*roster), shared: make(map[sharing]shared)}
}

// Set sets name and figures of a slot. A name without a command says that the queue is gone. times
// is another number after each change of what Times adds.
func (b *Board) Set(name wire.SlotName, figures *wire.Figures, times uint64) {
	for int(name.Slot) >= len(b.rows) {
		b.rows = append(b.rows, row{name: wire.SlotName{Slot: uint32(len(b.rows))}})
	}
	r := &b.rows[name.Slot]
	if r.name == name && r.figures == *figures && r.times == times {
		return
	}
	b.version++
	if r.name != name {
		r.name, r.named, r.dead, r.deadThen, r.slow = name, b.version, needs.DeadLetters{}, 0, needs.Slow{}
	}
	r.figures, r.times, r.changed = *figures, times, b.version
}

// nameOf is the name of a slot, nil if the board does not have it.
func (b *Board) nameOf(slot uint32) *wire.SlotName {
	if int(slot) >= len(b.rows) || b.rows[slot].named == 0 {
		return nil
	}
	return &b.rows[slot].name
}
