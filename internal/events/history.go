package events

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// level is one resolution of the history.
type level struct {
	stepMs, rangeMs int64
	// part is its part of the memory, in eighths.
	part int64
}

var levels = [...]level{
	{1000, 5 * 60_000, 1}, {10_000, 3600_000, 1}, {60_000, 7 * 24 * 3600_000, 5},
}

// maxBusy bounds the queues that get a point in one step: those with the most events. Totals come
// in addition; maxTotals bounds the tenants that have one.
const (
	maxBusy   = 500
	maxTotals = 250
)

// totalCommand stands for all queues in the day file. No queue has the name.
const totalCommand = "**"

// history has figures of queues over time. Each level is one ring of points of all queues, so
// its memory does not depend on their number: with many busy queues it reaches less far
// back. A queue without an event in a step has no point of it.
type history struct {
	mu     sync.Mutex
	points [len(levels)]pointRing
	// series are by slot, at most maxSeries and the totals.
	series    map[uint32]*series
	maxSeries int
	// held are the tasks of all queues at the last look, by slot.
	held []held
	// totals are the slots of all queues of a tenant, from wire.TotalSlot downwards; that one
	// itself is of all tenants, "".
	totals map[string]uint32
	// version is that of the last look at the figures, tickedMs its time.
	version  uint64
	tickedMs int64
	// file has the minutes; nil without one, and after an error, of which failed is told.
	file   *dayFile
	failed func(error)
}

// held are tasks by their place: as in a row, and those that are limited behind them.
type held [wire.FigureInPer + 1]int64

func heldOf(row *wire.Figures) held {
	h := held(row[:])
	h[wire.FigureInPer] = row[wire.FigureLimited]
	return h
}

// series is what the history knows of a queue, or of all queues of a tenant.
type series struct {
	// tasks and now are those of the last look.
	tasks held
	now   counts
	// sinceMs is when the slot became that of the queue; older points are of another one.
	sinceMs int64
	name    record.QueueKey
	// begun are the counts at the beginning of the current step of each level.
	begun [len(levels)]counts
}

// counts are those whose differences make a point. They may overflow.
type counts struct {
	moves     uint64
	per       [wire.FigureExpiredPer - wire.FigureInPer + 1]uint32
	wait, run [Buckets]uint32
}

// pointFigures are the figures of a point: those of a row up to FigureRunP99, and FigureLimited.
const pointFigures = wire.FigureRunP99 + 2

// point is the figures of one queue in one step. Values above 2^32-1 are stored as that.
type point struct {
	atS     uint32
	slot    uint32
	figures [pointFigures]uint32
}

// figureAt is the place in a row of a figure of a point.
func figureAt(k int) int {
	if k == pointFigures-1 {
		return wire.FigureLimited
	}
	return k
}

const (
	pointBytes  = int64(unsafe.Sizeof(point{}))
	seriesBytes = int64(unsafe.Sizeof(series{})) + 64
)

// pointRing has the last points of a level, the oldest at next once it is full.
type pointRing struct {
	points []point
	next   int
}

func newHistory(bytes int64) *history {
	h := &history{
		series: make(map[uint32]*series), maxSeries: int(bytes / 8 / seriesBytes), totals: map[string]uint32{"": wire.TotalSlot},
	}
	for i := range levels {
		h.points[i].points = make([]point, 0, max(1, bytes*levels[i].part/8/pointBytes))
	}
	return h
}

func (r *pointRing) add(p point) {
	if len(r.points) < cap(r.points) {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % len(r.points)
}

func countsOf(c *Counts) (t counts) {
	t.moves = c.moves()
	for i, n := range []uint64{
		c.Moves[record.CauseEnqueue], c.Moves[record.CauseGrant], c.Completed, c.Buried, c.Retried, c.Moves[record.CauseTaskExpired],
	} {
		t.per[i] = uint32(n)
	}
	for i := range Buckets {
		t.wait[i], t.run[i] = uint32(c.Wait.Buckets[i]), uint32(c.Run.Buckets[i])
	}
	return t
}

// since is what came after then.
func (c counts) since(then *counts) counts {
	c.moves -= then.moves
	for i, n := range then.per {
		c.per[i] -= n
	}
	for i := range then.wait {
		c.wait[i] -= then.wait[i]
		c.run[i] -= then.run[i]
	}
	return c
}

// add adds what became of a queue to a total.
func (s *series) add(tasks *held, came *counts) {
	for i, n := range tasks {
		s.tasks[i] += n
	}
	s.now.moves += came.moves
	for i, n := range came.per {
		s.now.per[i] += n
	}
	for i := range came.wait {
		s.now.wait[i] += came.wait[i]
		s.now.run[i] += came.run[i]
	}
}

// rowSince has the tasks of now, and what happened since then.
func (s *series) rowSince(then *counts) (row wire.Figures) {
	copy(row[:], s.tasks[:wire.FigureInPer])
	row[wire.FigureLimited] = s.tasks[wire.FigureInPer]
	came := s.now.since(then)
	for i, n := range came.per {
		row[wire.FigureInPer+i] = int64(n)
	}
	row[wire.FigureWaitP50], row[wire.FigureWaitP99] = percentiles(&came.wait)
	row[wire.FigureRunP50], row[wire.FigureRunP99] = percentiles(&came.run)
	return row
}

func percentiles(times *[Buckets]uint32) (p50, p99 int64) {
	var came [Buckets]uint64
	for i, n := range times {
		came[i] = uint64(n)
	}
	return Percentiles(&came)
}

// take notes the newest figures of a queue.
func (h *history) take(name wire.SlotName, f *Figures, nowMs int64) {
	if name.Command == "" {
		delete(h.series, name.Slot)
		return
	}
	s := h.series[name.Slot]
	if s == nil && len(h.series) < h.maxSeries && f.moves() > 0 {
		s = h.begin(name.Slot, record.QueueKey{Command: name.Command, Tenant: name.Tenant}, nowMs)
	}
	for int(name.Slot) >= len(h.held) {
		h.held = append(h.held, held{})
	}
	tasks, came := heldOf(&f.Row), counts{}
	more := tasks
	for i, n := range h.held[name.Slot] {
		more[i] -= n
	}
	h.held[name.Slot] = tasks
	if s != nil {
		now := countsOf(&f.Counts)
		came = now.since(&s.now)
		s.tasks, s.now = tasks, now
	}
	h.total("", nowMs).add(&more, &came)
	if name.Tenant == "" { // queues beyond the memory, of any tenant
		return
	}
	if t := h.total(name.Tenant, nowMs); t != nil {
		t.add(&more, &came)
	}
}

// total is what all queues of a tenant are together, nil if there is no room for one more tenant.
func (h *history) total(tenant string, nowMs int64) *series {
	slot, known := h.totals[tenant]
	if !known {
		if len(h.totals) > maxTotals || len(h.series) >= h.maxSeries {
			return nil
		}
		slot = wire.TotalSlot - uint32(len(h.totals))
		h.totals[tenant] = slot
	}
	if h.series[slot] == nil {
		h.begin(slot, record.QueueKey{Command: totalCommand, Tenant: tenant}, nowMs)
	}
	return h.series[slot]
}

// forget notes that queues count from 0 again. What has happened in a step that goes on stays: an
// event may be an hour old when it is known, where the process was stopped in between.
func (h *history) forget(slots []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, slot := range slots {
		if s := h.series[slot]; s != nil {
			for n := range s.begun {
				came := s.now.since(&s.begun[n])
				s.begun[n] = counts{}.since(&came)
			}
			s.now = counts{}
		}
	}
}

func (h *history) begin(slot uint32, q record.QueueKey, sinceMs int64) *series {
	s := &series{sinceMs: sinceMs, name: q}
	h.series[slot] = s
	return s
}

// restore takes a point of an earlier run, if the queue still has a slot.
func (h *history) restore(slot uint32, q record.QueueKey, p *point) {
	if q.Command == totalCommand {
		if h.total(q.Tenant, int64(p.atS)*1000) == nil {
			return
		}
		slot = h.totals[q.Tenant]
	}
	if slot == 0 {
		return
	}
	if h.series[slot] == nil {
		if len(h.series) >= h.maxSeries {
			return
		}
		h.begin(slot, q, int64(p.atS)*1000)
	}
	p.slot = slot
	h.points[len(levels)-1].add(*p)
}

// keep writes a point to the file. An error ends the file; the points stay in memory.
func (h *history) keep(q record.QueueKey, p *point) {
	if h.file == nil {
		return
	}
	if err := h.file.add(q, p); err != nil {
		h.file = nil
		h.failed(err)
	}
}

// step ends a step of a level, and begins the next one.
func (h *history) step(n int, nowMs int64) {
	type busy struct {
		slot  uint32
		moves uint64
	}
	var moved []busy
	for slot, s := range h.series {
		if moves := s.now.moves - s.begun[n].moves; moves > 0 {
			moved = append(moved, busy{slot, moves})
		}
	}
	slices.SortFunc(moved, func(a, b busy) int { return cmp.Or(cmp.Compare(b.moves, a.moves), cmp.Compare(a.slot, b.slot)) })
	for i, b := range moved {
		s := h.series[b.slot]
		if i < maxBusy+len(h.totals) {
			p := point{atS: uint32(nowMs / 1000), slot: b.slot}
			row := s.rowSince(&s.begun[n])
			for k := range p.figures {
				p.figures[k] = uint32(min(max(row[figureAt(k)], 0), math.MaxUint32))
			}
			h.points[n].add(p)
			if n == len(levels)-1 {
				h.keep(s.name, &p)
			}
		}
		s.begun[n] = s.now
	}
}

// tick takes what has changed, and ends the steps that are over.
func (h *history) tick(l *Log, nowMs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, _ = l.Figures(h.version, func(name wire.SlotName, f *Figures) { h.take(name, f, nowMs) })
	for n := range levels {
		if nowMs/levels[n].stepMs != h.tickedMs/levels[n].stepMs {
			h.step(n, nowMs)
		}
	}
	h.tickedMs = nowMs
}

// OpenHistory reads the minutes of earlier runs from a directory, and writes further ones
// there. It must come after Load of all shards and before the first Tick. After an error the
// history goes on without the file; failed is told of one that comes later.
func (l *Log) OpenHistory(fs vfs.FS, dir string, nowMs int64, failed func(error)) error {
	h := l.history
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := (nowMs - levels[len(levels)-1].rangeMs) / 1000
	h.failed = failed
	var err error
	h.file, err = openDayFile(fs, dir, func(q record.QueueKey, p *point) {
		if int64(p.atS) >= oldest {
			h.restore(l.slots.find(q), q, p)
		}
	})
	return err
}

// Close ends the file of the history.
func (l *Log) Close() error {
	h := l.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		return nil
	}
	err := h.file.file.Close()
	h.file = nil
	return err
}

// TotalOf is the slot for Points of all queues of a tenant together, or with "" of all tenants. A
// tenant has none before its first task, and if too many tenants came before it; then it is 0.
func (l *Log) TotalOf(tenant string) (slot uint32) {
	l.history.mu.Lock()
	defer l.history.mu.Unlock()
	return l.history.totals[tenant]
}

// Points is the history of the queue of a slot up to now, the oldest point first: steps of 1
// s for at most 5 minutes, of 10 s for an hour, else of a minute. A step without an event has
// no point. A point has the time of the end of its step.
func (l *Log) Points(slot uint32, rangeMs int64) (stepMs int64, points []wire.WatchPoint) {
	h := l.history
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for n < len(levels)-1 && levels[n].rangeMs < rangeMs {
		n++
	}
	s := h.series[slot]
	if s == nil {
		return levels[n].stepMs, nil
	}
	from, r := max(s.sinceMs, h.tickedMs-min(rangeMs, levels[n].rangeMs)), &h.points[n]
	for i := range r.points {
		p := &r.points[(r.next+i)%len(r.points)]
		if p.slot != slot || int64(p.atS)*1000 < from-999 {
			continue
		}
		point := wire.WatchPoint{AtMs: int64(p.atS) * 1000}
		for k, v := range p.figures {
			point.Figures[figureAt(k)] = int64(v)
		}
		points = append(points, point)
	}
	return levels[n].stepMs, points
}
