package events

import (
	"fmt"
	"testing"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// feeder feeds a log second by second.
type feeder struct {
	log    *Log
	number uint64
	nowMs  int64
}

func newFeeder(bytes int64) *feeder {
	f := &feeder{log: New(Options{Shards: 1, MemoryBytes: bytes}), nowMs: atMs}
	f.log.Load(0, 0, nil)
	f.log.Tick(f.nowMs)
	return f
}

// second observes cycles of a queue, and then a second is over.
func (f *feeder) second(queue int, tasks int, spentMs int64) {
	events := cycle(f.number+1, tasks, 1)
	for i := range events {
		events[i].Command, events[i].Queue, events[i].AtMs, events[i].SpentMs = fmt.Sprint("q", queue), uint32(queue+1), f.nowMs, spentMs
	}
	f.observe(events)
	f.nowMs += 1000
	f.log.Tick(f.nowMs)
}

func (f *feeder) observe(events []shard.Event) {
	f.log.Observe(0, events)
	f.number += uint64(len(events))
}

func TestHistoryHasSecondsTenSecondsAndMinutes(t *testing.T) {
	f := newFeeder(8 << 20)
	// 3 tasks in every second of two minutes, but none in the second minute's first half.
	for second := range 120 {
		tasks := 3
		if second >= 60 && second < 90 {
			tasks = 0
		}
		f.second(0, tasks, 5)
	}
	for _, c := range []struct{ rangeMs, stepMs, points, perPoint int64 }{
		{60_000, 1000, 31, 3}, {300_000, 1000, 90, 3}, {3600_000, 10_000, 9, 30}, {24 * 3600_000, 60_000, 2, 0},
	} {
		step, points := f.log.Points(1, c.rangeMs)
		if step != c.stepMs || int64(len(points)) != c.points {
			t.Errorf("range %d: %d points of %d ms, want %d of %d", c.rangeMs, len(points), step, c.points, c.stepMs)
		}
		var sum int64
		for i, p := range points {
			sum += p.Figures[wire.FigureCompletedPer]
			if c.perPoint > 0 && p.Figures[wire.FigureCompletedPer] != c.perPoint || p.Figures[wire.FigureWaitP99] != 7 || p.Figures[wire.FigureRunP50] != 7 {
				t.Errorf("range %d: point %d is %+v", c.rangeMs, i, p)
			}
			if i > 0 && points[i-1].AtMs >= p.AtMs || p.AtMs%c.stepMs != 0 {
				t.Errorf("range %d: a point of %d comes before one of %d", c.rangeMs, points[max(0, i-1)].AtMs, p.AtMs)
			}
		}
		if c.rangeMs > 60_000 && sum != 270 {
			t.Errorf("range %d: %d tasks were completed, want 270", c.rangeMs, sum)
		}
	}
}

func TestFiguresOfASecondEndWithIt(t *testing.T) {
	f := newFeeder(8 << 20)
	var version uint64
	var slot uint32
	look := func() (rows []wire.Figures) {
		version, _ = f.log.Figures(version, func(name wire.SlotName, f *Figures) { slot, rows = name.Slot, append(rows, f.Row) })
		return rows
	}
	points := func() []wire.WatchPoint {
		_, points := f.log.Points(slot, 60_000)
		return points
	}
	f.second(0, 4, 100)
	if rows := look(); len(rows) != 1 || rows[0] != (wire.Figures{}) {
		t.Errorf("after a second with 4 tasks: %v", rows)
	}
	if p := points(); len(p) != 1 || p[0].Figures[wire.FigureInPer] != 4 || p[0].Figures[wire.FigureStartedPer] != 4 || p[0].Figures[wire.FigureRunP99] != 127 {
		t.Errorf("the points after a second with 4 tasks: %v", p)
	}
	f.second(0, 0, 0)
	if rows, p := look(), points(); len(rows) != 0 || len(p) != 1 {
		t.Errorf("after a second without: %v and the points %v", rows, p)
	}
	f.observe([]shard.Event{{Number: f.number + 1, AtMs: f.nowMs, Command: "q0", Queue: 1, To: wire.LocationPending, Cause: record.CauseEnqueue}})
	if rows, p := look(), points(); len(rows) != 1 || rows[0][wire.FigureReady] != 1 || rows[0][wire.FigureInPer] != 0 || len(p) != 1 {
		t.Errorf("within a second: %v and the points %v", rows, p)
	}
}

func TestHistoryKeepsToItsMemory(t *testing.T) {
	const bytes = 1 << 20
	f := newFeeder(bytes)
	for second := range 3000 {
		f.second(second%40, 1, 1)
		f.second(39-second%40, 1, 1)
	}
	h := f.log.history
	used := int64(len(h.series)) * seriesBytes
	for i := range h.points {
		used += int64(cap(h.points[i].points)) * pointBytes
	}
	if used > bytes/historyPart || len(h.series) != 40+len(h.totals) {
		t.Errorf("%d series and %d bytes of %d are in use", len(h.series), used, bytes/historyPart)
	}
	if _, points := f.log.Points(1, 60_000); len(points) == 0 {
		t.Errorf("the last minute has %d points", len(points))
	}
}

func TestOnlyTheBusiestQueuesGetPoints(t *testing.T) {
	f := newFeeder(0)
	for queue := range maxBusy + 20 {
		events := cycle(f.number+1, 1, 1)
		for i := range events {
			events[i].Command, events[i].Queue = fmt.Sprint("q", queue), uint32(queue+1)
		}
		if queue < 20 {
			events = events[:1]
		}
		f.observe(events)
	}
	f.nowMs += 1000
	f.log.Tick(f.nowMs)
	with := 0
	for slot := uint32(1); slot <= maxBusy+20; slot++ {
		_, points := f.log.Points(slot, 60_000)
		if with += len(points); len(points) > 0 && slot <= 20 {
			t.Errorf("queue %d has a point, and one event", slot)
		}
	}
	if with != maxBusy {
		t.Errorf("%d queues have a point", with)
	}
	// The totals have all of them.
	for _, tenant := range []string{"", "default"} {
		_, points := f.log.Points(f.log.TotalOf(tenant), 60_000)
		if len(points) != 1 || points[0].Figures[wire.FigureInPer] != maxBusy+20 || points[0].Figures[wire.FigureReady] != 20 {
			t.Errorf("the total of tenant %q is %+v", tenant, points)
		}
	}
}

// TestATotalHasThePercentilesOfAllTimes: they are of the times of all queues together, not those
// of the slowest queue.
func TestATotalHasThePercentilesOfAllTimes(t *testing.T) {
	f := newFeeder(0)
	f.second(0, 3, 10_000)
	f.second(1, 997, 1)
	f.nowMs += 10_000
	f.log.Tick(f.nowMs)
	_, points := f.log.Points(wire.TotalSlot, 3600_000)
	if len(points) != 1 || points[0].Figures[wire.FigureRunP99] != 1 || points[0].Figures[wire.FigureCompletedPer] != 1000 {
		t.Errorf("the points are %+v", points)
	}
}

// TestAQuietShardLeavesTheCountsOfItsQueue: what a queue counts never goes down while one of its
// shards has events, and a queue that comes back with more events than before has all of them in
// its points.
func TestAQuietShardLeavesTheCountsOfItsQueue(t *testing.T) {
	l := New(Options{Shards: 2})
	l.Load(0, 0, nil)
	l.Load(1, 0, nil)
	numbers := []uint64{1, 1}
	observe := func(shard, tasks int, nowMs int64) {
		events := cycle(numbers[shard], tasks, 1)
		numbers[shard] += uint64(len(events))
		for i := range events {
			events[i].AtMs = nowMs
		}
		l.Observe(shard, events)
	}
	newest := func(nowMs int64) int64 {
		l.Tick(nowMs)
		_, points := l.Points(1, 60_000)
		return points[len(points)-1].Figures[wire.FigureCompletedPer]
	}
	observe(0, 5, atMs)
	observe(1, 1, atMs+quietForMs)
	if n := newest(atMs + quietForMs + 1000); n != 6 {
		t.Errorf("the first point has %d tasks, want 6", n)
	}
	if all, _ := sum(l); all.Completed != 6 {
		t.Errorf("%d tasks are counted while one shard is quiet, want 6", all.Completed)
	}
	observe(1, 2, atMs+quietForMs+90_000)
	if n := newest(atMs + quietForMs + 91_000); n != 2 {
		t.Errorf("the point after one shard was quiet has %d tasks, want 2", n)
	}
	l.Tick(atMs + 3*quietForMs)
	observe(1, 20, atMs+3*quietForMs+10)
	if n := newest(atMs + 3*quietForMs + 1000); n != 20 {
		t.Errorf("the point after an hour without events has %d tasks, want 20", n)
	}
}
