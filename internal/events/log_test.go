package events

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

const atMs = 1_767_225_600_000

// cycle are the events of tasks that are enqueued, granted and completed.
func cycle(first uint64, tasks int, queues int) (events []shard.Event) {
	for n := range tasks {
		queue := n % queues
		e := shard.Event{
			AtMs: atMs, Tenant: "default", Command: fmt.Sprintf("command-%d", queue), Queue: uint32(queue + 1), TaskID: wire.TaskID{14: byte(n >> 8), 15: byte(n)},
		}
		for i, move := range []struct {
			from, to wire.Location
			status   wire.Status
			cause    record.Cause
		}{
			{"", wire.LocationPending, wire.StatusPending, record.CauseEnqueue},
			{wire.LocationPending, wire.LocationInProgress, wire.StatusInProgress, record.CauseGrant},
			{wire.LocationInProgress, wire.LocationNone, wire.StatusCompleted, record.CauseResult},
			{wire.LocationNone, "", wire.StatusCompleted, record.CauseRetention},
		} {
			e.Number, e.SpentMs = first, int64(i*n)
			e.From, e.To, e.Status, e.Cause = move.from, move.to, move.status, move.cause
			if e.Worker = ""; i == 1 || i == 2 {
				e.Worker = fmt.Sprintf("worker-%d", n%3)
			}
			events = append(events, e)
			first++
		}
	}
	return events
}

func TestACellHas48Bytes(t *testing.T) {
	if cellBytes != 48 || unsafe.Sizeof(part{}) != 72 {
		t.Errorf("a cell has %d bytes, a part %d, want 48 and 72", cellBytes, unsafe.Sizeof(part{}))
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	l := New(Options{Shards: 1})
	l.Load(0, 0, nil)
	number := uint64(1)
	events := cycle(1, 100, 10)
	observe := func() {
		for i := range events {
			events[i].Number = number
			number++
		}
		l.Observe(0, events)
	}
	observe()
	if n := testing.AllocsPerRun(500, observe); n != 0 {
		t.Errorf("%v allocations for %d events", n, len(events))
	}
}

func TestAnEventThatIsMissingEndsTheProcess(t *testing.T) {
	l := New(Options{Shards: 1})
	l.Load(0, 7, nil)
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "event 9 comes after 7") {
			t.Errorf("panicked with %q", text)
		}
	}()
	l.Observe(0, []shard.Event{{Number: 9, Cause: record.CauseEnqueue}})
}

// sum adds the figures of all slots.
func sum(l *Log) (all Figures, names map[string]uint32) {
	names = map[string]uint32{}
	_, _ = l.Figures(0, func(name wire.SlotName, f *Figures) {
		names[name.Command] = name.Slot
		for i, n := range f.Row {
			all.Row[i] += n
		}
		all.Counts.join(&f.Counts)
	})
	return all, names
}

func TestQueuesBeyondTheMemoryAreSummed(t *testing.T) {
	const bytes = 600_000
	l := New(Options{Shards: 2, MemoryBytes: bytes})
	l.Load(0, 0, []store.QueueState{{Key: record.QueueKey{Command: "first", Tenant: "default"}, Counters: record.Counters{Delayed: 7}}})
	l.Load(1, 0, nil)
	const queues = 5000
	l.Observe(0, cycle(1, queues, queues))
	all, names := sum(l)
	if all.Row[wire.FigureDelayed] != 7 || all.Row[wire.FigureDone] != 0 {
		t.Errorf("the sum of all tasks is %v", all.Row)
	}
	if slot, is := names["*"]; !is || slot != 0 || len(names) < 50 || len(names) > bytes/tallyPart/int(partBytes) {
		t.Errorf("%d slots have a name, the rest is in slot %d: %v", len(names), slot, is)
	}
	if l.slots.left < 0 {
		t.Errorf("%d bytes too many are in use", -l.slots.left)
	}
}

func TestAQuietQueueLosesItsCountsAndAnEmptyOneItsSlot(t *testing.T) {
	l := New(Options{Shards: 2})
	has := record.Counters{Delayed: 1}
	l.Load(0, 0, []store.QueueState{{Key: record.QueueKey{Command: "has a task", Tenant: "t"}, Counters: has}})
	l.Load(1, 0, nil)
	l.shards[1].ring = newRing(4 * cellBytes)
	l.Observe(1, cycle(1, 1, 1))
	left := l.slots.left
	for second := range int64(2) { // the figures of the last second change, and change back
		l.Tick(atMs + 1000*second)
	}
	version, _ := l.Figures(0, func(wire.SlotName, *Figures) {})
	l.Tick(atMs + quietForMs - 1)
	_, _ = l.Figures(version, func(name wire.SlotName, _ *Figures) { t.Errorf("%v changed too early", name) })
	l.Tick(atMs + quietForMs + 60_000)
	changes := 0
	version, _ = l.Figures(version, func(name wire.SlotName, f *Figures) {
		changes++
		if name.Command != "command-0" || f.Counts != (Counts{}) {
			t.Errorf("%v has %v", name, f.Counts)
		}
	})
	if changes != 1 || l.slots.left != left+countsBytes {
		t.Errorf("%d changes, %d bytes are left, before %d", changes, l.slots.left, left)
	}
	// Other events take the places of those of the quiet queue.
	later := cycle(5, 1, 1)
	for i := range later {
		later[i].Command, later[i].Queue, later[i].AtMs = "late", 9, atMs+quietForMs
	}
	l.Observe(1, later)
	version, _ = l.Figures(version, func(wire.SlotName, *Figures) {})
	l.Tick(atMs + quietForMs + 120_000)
	var gone uint32
	_, _ = l.Figures(version, func(name wire.SlotName, _ *Figures) {
		if name.Command == "" {
			gone = name.Slot
		}
	})
	if gone == 0 {
		t.Fatal("no slot is gone")
	}
	// The slot comes again, but not before an hour.
	for i, tooEarly := range []bool{true, false} {
		command := fmt.Sprint("new", i)
		events := cycle(uint64(9+4*i), 1, 1)
		for k := range events {
			events[k].Command, events[k].Queue, events[k].AtMs = command, uint32(20+i), atMs+2*quietForMs+60_000+int64(i)*120_000
		}
		l.Observe(1, events)
		if _, names := sum(l); (names[command] == gone) == tooEarly {
			t.Errorf("%s has slot %d, gone was %d", command, names[command], gone)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, queues := range []int{1, 150} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			l := New(Options{Shards: 4})
			l.Load(0, 0, nil)
			events := cycle(1, 250, queues)
			number := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range events {
					number++
					events[i].Number = number
				}
				l.Observe(0, events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
		})
	}
}

func TestLogIsUsedFromManyGoroutines(t *testing.T) {
	l := New(Options{Shards: 2, MemoryBytes: 4 << 20})
	var all sync.WaitGroup
	var done atomic.Int32
	for shardNo := range 2 {
		l.Load(shardNo, 0, nil)
		all.Go(func() {
			for n := range 200 {
				l.Observe(shardNo, cycle(uint64(1+40*n), 10, 5))
			}
			done.Add(1)
		})
	}
	for _, use := range []func(n int64){
		func(n int64) { l.Tick(atMs + 1000*min(n, 3000)) }, // less than an hour, after which counts go
		func(int64) { _, _ = l.Figures(0, func(wire.SlotName, *Figures) {}) },
		func(int64) { l.Read(1, l.Oldest()[1], make([]Record, 10)) },
		func(int64) { l.Points(1, 60_000) },
	} {
		all.Go(func() {
			for n := int64(0); done.Load() < 2; n++ {
				use(n)
			}
		})
	}
	all.Wait()
	if all, _ := sum(l); all.Completed != 4000 {
		t.Errorf("%d tasks were completed, want 4000", all.Completed)
	}
}
