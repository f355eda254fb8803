package events

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// model is the log as its promises say: all events of each shard, and what the tasks of
// each queue were when it began.
type model struct {
	began  []uint64
	loaded []store.QueueState
	events [][]shard.Event
	keeps  int
}

// figures counts from the beginning.
func (m *model) figures() map[record.QueueKey]Figures {
	all := make(map[record.QueueKey]Figures)
	for _, q := range m.loaded {
		f := all[q.Key]
		f.Row[wire.FigureReady] += q.Counters.ReadyTotal()
		f.Row[wire.FigureDelayed] += q.Counters.Delayed
		f.Row[wire.FigureInProgress] += q.Counters.InProgress
		f.Row[wire.FigureDead] += q.Counters.Dead
		f.Row[wire.FigureDone] += q.Counters.Done
		all[q.Key] = f
	}
	for _, events := range m.events {
		for i := range events {
			e := &events[i]
			key := record.QueueKey{Command: e.Command, Tenant: e.Tenant}
			f := all[key]
			m.count(e, &f)
			all[key] = f
		}
	}
	return all
}

func (m *model) count(e *shard.Event, f *Figures) {
	figure := map[wire.Location]int{
		wire.LocationPending: wire.FigureReady, wire.LocationDelayed: wire.FigureDelayed, wire.LocationInProgress: wire.FigureInProgress,
		wire.LocationDead: wire.FigureDead, wire.LocationNone: wire.FigureDone, wire.LocationLimited: wire.FigureLimited,
	}
	if e.From != "" {
		f.Row[figure[e.From]]--
	}
	if e.To != "" {
		f.Row[figure[e.To]]++
	}
	f.Moves[e.Cause]++
	bucket := func(h *Histogram, ms int64) {
		h.SumMs += uint64(ms)
		i, below := 0, int64(1)
		for ms >= below && i < Buckets-1 {
			i, below = i+1, below*2
		}
		h.Buckets[i]++
	}
	again := e.To == wire.LocationPending || e.To == wire.LocationDelayed || e.To == wire.LocationLimited
	if e.To == wire.LocationInProgress {
		bucket(&f.Wait, e.SpentMs)
	}
	if e.From == wire.LocationInProgress {
		bucket(&f.Run, e.SpentMs)
	}
	if e.From == wire.LocationInProgress && again && e.Cause != record.CauseRelease && e.Cause != record.CauseUndelivered {
		f.Retried++
	}
	if e.To == wire.LocationDead {
		f.Buried++
	}
	ended := e.To == wire.LocationDead || e.To == wire.LocationNone
	if ended && e.Status.Terminal() {
		bucket(&f.Total, e.TotalMs)
	}
	if ended && e.Status == wire.StatusCompleted {
		f.Completed++
	}
}

// records are the events of a shard after a number, and how many of them are gone.
func (m *model) records(shardNo int, after uint64) (kept []shard.Event, missed uint64) {
	for _, e := range m.events[shardNo] {
		if e.Number > after {
			kept = append(kept, e)
		}
	}
	has := min(len(m.events[shardNo]), m.keeps)
	gone := len(kept) - has
	if len(kept) == 0 {
		return nil, 0
	}
	if after < m.began[shardNo] {
		missed = m.began[shardNo] - after
	}
	if gone > 0 {
		kept, missed = kept[gone:], missed+uint64(gone)
	}
	return kept, missed
}

// randomEvent is any event; the log knows no lifecycle.
func randomEvent(t *rapid.T, number uint64, shardNo int) shard.Event {
	names := []string{"a", "b", "c"}
	e := shard.Event{
		Number: number, AtMs: 1_767_225_600_000 + int64(number)*7, Tenant: rapid.SampledFrom([]string{"blue", "red"}).Draw(t, "tenant"),
		Command: rapid.SampledFrom(names).Draw(t, "command"), TaskID: wire.TaskID{15: byte(number)},
		From: rapid.SampledFrom(locations[:]).Draw(t, "from"), To: rapid.SampledFrom(locations[:]).Draw(t, "to"),
		Status: rapid.SampledFrom(statuses[:]).Draw(t, "status"), Cause: record.Cause(rapid.IntRange(1, int(record.Causes)-1).Draw(t, "cause")),
		Delivery: rapid.IntRange(0, 70_000).Draw(t, "delivery"), Attempts: rapid.IntRange(0, 100).Draw(t, "attempts"),
		SpentMs: rapid.Int64Range(0, 1<<27).Draw(t, "spent"), TotalMs: rapid.Int64Range(0, 1<<27).Draw(t, "total"),
		Worker: rapid.SampledFrom([]string{"", "ada", "bob", "eve"}).Draw(t, "worker"),
	}
	// Two shards number the same queue differently, and one place of recent has two queues.
	e.Queue = uint32(1 + slices.Index(names, e.Command)*recentQueues + shardNo)
	if e.Tenant == "red" {
		e.Queue += 7
	}
	return e
}

func TestTallyAndRingAgreeWithAllEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const shards = 2
		m := &model{began: make([]uint64, shards), events: make([][]shard.Event, shards), keeps: rapid.IntRange(1, 9).Draw(t, "keeps")}
		l := New(Options{Shards: shards})
		for shardNo := range shards {
			m.began[shardNo] = rapid.Uint64Range(0, 50).Draw(t, "began")
			queue := store.QueueState{Key: record.QueueKey{Command: "a", Tenant: "blue"}, Counters: record.Counters{
				Delayed: 3, InProgress: 2, Dead: int64(shardNo), Done: 9,
			}}
			queue.Counters.Ready[4] = 5
			m.loaded = append(m.loaded, queue)
			l.shards[shardNo].ring = newRing(m.keeps * cellBytes)
			l.Load(shardNo, m.began[shardNo], []store.QueueState{queue})
		}
		var seen seenFigures
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			shardNo := rapid.IntRange(0, shards-1).Draw(t, "shard")
			first := len(m.events[shardNo])
			for range rapid.IntRange(1, 6).Draw(t, "events") {
				m.events[shardNo] = append(m.events[shardNo], randomEvent(t, m.began[shardNo]+uint64(len(m.events[shardNo]))+1, shardNo))
			}
			l.Observe(shardNo, m.events[shardNo][first:])
			if rapid.Bool().Draw(t, "looks") {
				seen.look(t, l, m)
			}
			checkRing(t, l, m, shardNo, rapid.Uint64Range(0, m.began[shardNo]+uint64(len(m.events[shardNo]))).Draw(t, "after"))
		}
		seen.look(t, l, m)
	})
}

// seenFigures is a reader that takes only what has changed.
type seenFigures struct {
	version uint64
	figures map[record.QueueKey]Figures
}

func (s *seenFigures) look(t *rapid.T, l *Log, m *model) {
	if s.figures == nil {
		s.figures = make(map[record.QueueKey]Figures)
	}
	before := uint32(0)
	version, at := l.Figures(s.version, func(name wire.SlotName, f *Figures) {
		if name.Slot <= before {
			t.Errorf("slot %d comes after slot %d", name.Slot, before)
		}
		before = name.Slot
		s.figures[record.QueueKey{Command: name.Command, Tenant: name.Tenant}] = *f
	})
	s.version = version
	if want := m.figures(); !maps.Equal(s.figures, want) {
		t.Errorf("figures are %v, want %v", s.figures, want)
	}
	for shardNo, number := range at {
		if want := m.began[shardNo] + uint64(len(m.events[shardNo])); number != want || l.Positions()[shardNo] != want {
			t.Errorf("shard %d is at %d and %d, want %d", shardNo, number, l.Positions()[shardNo], want)
		}
	}
	if _, _ = l.Figures(s.version, func(name wire.SlotName, _ *Figures) { t.Errorf("slot %d changed twice", name.Slot) }); t.Failed() {
		t.FailNow()
	}
}

func checkRing(t *rapid.T, l *Log, m *model, shardNo int, after uint64) {
	into := make([]Record, rapid.IntRange(1, 12).Draw(t, "into"))
	n, missed := l.Read(shardNo, after, into)
	want, gone := m.records(shardNo, after)
	if n != min(len(want), len(into)) || missed != gone {
		t.Fatalf("shard %d after %d: %d events, %d missed, want %d, %d", shardNo, after, n, missed, min(len(want), len(into)), gone)
	}
	names := map[uint32]record.QueueKey{}
	_, _ = l.Figures(0, func(name wire.SlotName, _ *Figures) {
		names[name.Slot] = record.QueueKey{Command: name.Command, Tenant: name.Tenant}
	})
	for i, got := range into[:n] {
		e := &want[i]
		if wanted := (Record{
			Number: e.Number, AtMs: e.AtMs, Slot: got.Slot, Task: e.TaskID, From: e.From, To: e.To, Status: e.Status, Cause: e.Cause,
			Worker: e.Worker, Delivery: e.Delivery, Attempts: e.Attempts, SpentMs: e.SpentMs,
		}); got != wanted || names[got.Slot] != (record.QueueKey{Command: e.Command, Tenant: e.Tenant}) {
			t.Fatalf("got  %+v of %v\nwant %+v of %s/%s", got, names[got.Slot], wanted, e.Tenant, e.Command)
		}
	}
	oldest := m.began[shardNo] + uint64(len(m.events[shardNo])-min(len(m.events[shardNo]), m.keeps)) + 1
	if got := l.Oldest()[shardNo]; got != oldest {
		t.Fatalf("the oldest event of shard %d is %d, want %d", shardNo, got, oldest)
	}
}
