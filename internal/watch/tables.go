package watch

import (
	"math"

	"codeq/internal/events"
	"codeq/wire"
)

// tables is how far a subscription of kind queues, workers or server is. A tick reads the figures
// of now, so a client that reads slowly gets fewer ticks, and never an old figure.
type tables struct {
	// snapshot: the rows under way are those of the snapshot. history: points come after it.
	snapshot, history bool
	// sent: every row that changed up to this version was sent. underWay: the rows from slot on
	// are still to be sent, after which sent is upTo; told: some were, or names.
	sent     uint64
	underWay bool
	told     bool
	upTo     uint64
	slot     int
	// point is the next point of the slot.
	point int
	// session: the sessions after it are still to be sent.
	session wire.SessionID
	tickAt  int64
}

// pointsAtOnce bounds the points of one frame.
const pointsAtOnce = 500

// putTables puts rows of a snapshot or tick into the message, and then the history.
func (s *Subscriber) putTables(nowMs int64, w *subscription) {
	b, t := s.board, &w.tables
	if !t.underWay {
		if !t.snapshot && (nowMs < t.tickAt || t.sent == b.version) {
			return
		}
		t.tickAt = nowMs + int64(w.ask.EveryMs)
		if !t.snapshot && !t.history && s.putShared(nowMs, w) {
			return
		}
		t.underWay, t.told, t.upTo, t.slot = true, false, b.version, 0
	}
	if t.snapshot || t.sent < t.upTo {
		if !s.putRows(nowMs, w) {
			return
		}
	}
	if t.history && !s.putHistory(w) {
		return
	}
	t.underWay = false
}

// sharing says which subscriptions get the same tick: those with the same rights and filter that
// are as far.
type sharing struct {
	rights   rights
	commands string
	sent     uint64
}

// shared is a tick that was encoded once. bytes is nil if no row changed.
type shared struct {
	bytes []byte
	// named is the version of the newest name of its rows, and of the queues that are gone.
	named uint64
}

// putShared puts the rows that changed into the message as they are encoded for all subscriptions
// that are as far. It reports false if the client lacks a name, or the tick is long.
func (s *Subscriber) putShared(nowMs int64, w *subscription) bool {
	b, t := s.board, &w.tables
	if b.sharedAt != b.version {
		b.sharedAt = b.version
		clear(b.shared)
	}
	key := sharing{w.filter.rights, w.filter.joined, t.sent}
	tick, known := b.shared[key]
	if !known {
		tick = b.share(&w.filter, t.sent)
		b.shared[key] = tick
	}
	if tick.named > t.sent || len(tick.bytes) > s.room-fixedBytes {
		return false
	}
	if tick.bytes != nil {
		s.put(&wire.WatchTick{ID: w.ask.ID, AtMs: nowMs, WatchState: wire.WatchState{Encoded: tick.bytes}})
	}
	t.sent = b.version
	return true
}

// share encodes the rows that have changed since a version.
func (b *Board) share(f *filter, sent uint64) (tick shared) {
	var rows []wire.QueueRow
	for i := range b.rows {
		r := &b.rows[i]
		if r.changed <= sent || r.name.Command != "" && !f.takes(b, uint32(i)) {
			continue
		}
		tick.named = max(tick.named, r.named)
		rows = append(rows, wire.QueueRow{Slot: r.name.Slot, Figures: r.figures})
	}
	if rows != nil && tick.named <= sent {
		rows = append(rows, b.total(f))
		tick.bytes = wire.AppendWatchState(nil, &wire.WatchState{Queues: rows})
	}
	return tick
}

// total is the sum of the queues that a filter takes.
func (b *Board) total(f *filter) wire.QueueRow {
	sum := wire.QueueRow{Slot: wire.TotalSlot}
	var wait, run [events.Buckets]uint64
	oldest := int64(math.MaxInt64)
	for i := range b.rows {
		r := &b.rows[i]
		if r.name.Command == "" || !f.takes(b, uint32(i)) {
			continue
		}
		for k, n := range r.figures {
			sum.Figures[k] += n
		}
		if at := r.figures[wire.FigureOldestReadyAt]; at != 0 {
			oldest = min(oldest, at)
		}
		b.Times(uint32(i), &wait, &run)
	}
	if sum.Figures[wire.FigureOldestReadyAt] = 0; oldest != math.MaxInt64 {
		sum.Figures[wire.FigureOldestReadyAt] = oldest
	}
	sum.Figures[wire.FigureWaitP50], sum.Figures[wire.FigureWaitP99] = events.Percentiles(&wait)
	sum.Figures[wire.FigureRunP50], sum.Figures[wire.FigureRunP99] = events.Percentiles(&run)
	return sum
}

// putRows puts the rows from slot on that changed, and reports whether those were all.
func (s *Subscriber) putRows(nowMs int64, w *subscription) bool {
	b, t := s.board, &w.tables
	var names []wire.SlotName
	rows := []wire.QueueRow{}
	room := s.room - fixedBytes
	for ; t.slot < len(b.rows) && room > 0; t.slot++ {
		r := &b.rows[t.slot]
		if r.changed <= t.sent && !t.snapshot || !w.filter.takes(b, uint32(t.slot)) && !s.knows(r) {
			continue
		}
		if s.learns(r) {
			names = append(names, r.name)
			room -= nameBytes
		}
		if r.name.Command != "" && w.filter.takes(b, uint32(t.slot)) {
			rows = append(rows, wire.QueueRow{Slot: r.name.Slot, Figures: r.figures})
			room -= rowBytes
		}
	}
	if names != nil {
		s.put(&wire.WatchNames{Queues: names})
	}
	done := t.slot >= len(b.rows)
	if t.told = t.told || len(rows)+len(names) > 0; done && (t.told || t.snapshot) {
		rows = append(rows, b.total(&w.filter))
	}
	switch {
	case t.snapshot && (done || len(rows) > 0):
		s.put(&wire.WatchSnapshot{ID: w.ask.ID, At: b.At, More: !done, WatchState: wire.WatchState{Queues: rows}})
	case len(rows) > 0:
		s.put(&wire.WatchTick{ID: w.ask.ID, AtMs: nowMs, WatchState: wire.WatchState{Queues: rows}})
	}
	if done {
		t.snapshot, t.sent, t.slot, t.point = false, t.upTo, 0, 0
	}
	return done
}

// knows reports whether the client was told a name of a slot that is not true any more.
func (s *Subscriber) knows(r *row) bool {
	return r.name.Command == "" && int(r.name.Slot) < len(s.named) && s.named[r.name.Slot] != 0
}

// learns reports whether the client must be told the name of a slot, and counts it as told.
func (s *Subscriber) learns(r *row) bool {
	for int(r.name.Slot) >= len(s.named) {
		s.named = append(s.named, 0)
	}
	told := &s.named[r.name.Slot]
	if *told == r.named || *told == 0 && r.name.Command == "" {
		return false
	}
	*told = r.named
	if r.name.Command == "" {
		*told = 0
	}
	return true
}

// putHistory puts the points of the queues of the subscription, and behind them those of its total,
// and reports whether those were all. A total of some commands, asked for or allowed, has no history.
func (s *Subscriber) putHistory(w *subscription) bool {
	b, t := s.board, &w.tables
	for ; t.slot < len(b.rows); t.slot, t.point = t.slot+1, 0 {
		if b.rows[t.slot].name.Command != "" && w.filter.takes(b, uint32(t.slot)) && !s.putPoints(w, uint32(t.slot), uint32(t.slot)) {
			return false
		}
	}
	t.slot = math.MaxInt // of no queue, also if one more comes
	if slot := b.TotalOf(s.rights.whose()); slot != 0 && len(w.ask.Commands) == 0 && s.rights.commands == "" && !s.putPoints(w, slot, wire.TotalSlot) {
		return false
	}
	t.history = false
	return true
}

// putPoints puts the points of a slot of the history, and reports whether those were all.
func (s *Subscriber) putPoints(w *subscription, of, slot uint32) bool {
	t := &w.tables
	stepMs, points := s.board.Points(of, w.ask.RangeMs)
	for t.point < len(points) {
		part := points[t.point:min(len(points), t.point+pointsAtOnce)]
		if s.room < fixedBytes+len(part)*rowBytes {
			return false
		}
		s.put(&wire.WatchPoints{ID: w.ask.ID, Slot: slot, StepMs: stepMs, Points: part})
		t.point += len(part)
	}
	return true
}
