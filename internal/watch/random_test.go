package watch

import (
	"math/rand/v2"
	"testing"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/record"
	"codeq/wire"
)

// world is a model of queues with a subscriber that follows it.
type world struct {
	t     *testing.T
	r     *rand.Rand
	log   *fakeLog
	board *Board
	// figures are those of now, by slot; the board has those of its last refresh.
	figures []wire.Figures
	names   []wire.SlotName
	nowMs   int64

	sub *Subscriber
	follower
}

// follower is what a client knows: the figures by slot, and the events it was told of.
type follower struct {
	named    map[uint32]wire.SlotName
	total    wire.Figures
	rows     map[uint32]wire.Figures
	complete bool
	after    []uint64
	// counted and missed are events by shard.
	counted, missed []uint64
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), nowMs: 1_000_000}
	w.log = newFakeLog(1+w.r.IntN(4), 20+w.r.IntN(3000))
	w.board = NewBoard(w.log.facts())
	for range w.r.IntN(50) {
		w.step()
	}
	return w
}

// step changes the model: events and figures, a new queue, one that goes or whose slot comes
// again, and now and then the board follows.
func (w *world) step() {
	switch k := w.r.IntN(20); {
	case k == 0 || len(w.names) == 0:
		w.names = append(w.names, queueName(len(w.names)))
		w.figures = append(w.figures, wire.Figures{})
	case k == 1:
		w.refresh()
		slot := w.r.IntN(len(w.names))
		w.names[slot], w.figures[slot] = wire.SlotName{Slot: uint32(slot)}, wire.Figures{}
		if w.r.IntN(2) == 0 {
			w.refresh()
			w.names[slot] = queueName(slot)
			w.names[slot].Command += ".again"
		}
	case k < 5:
		w.nowMs += w.r.Int64N(1500)
		w.refresh()
	default:
		for range w.r.IntN(1 << w.r.IntN(10)) {
			slot := w.r.IntN(len(w.names))
			if w.names[slot].Command == "" {
				continue
			}
			w.figures[slot][w.r.IntN(len(w.figures[slot]))] = w.r.Int64()
			w.log.add(w.r.IntN(len(w.log.last)), events.Record{
				AtMs: w.nowMs, Slot: uint32(slot), Task: wire.TaskID{1, 15: 1}, Cause: record.CauseNack, To: wire.LocationPending,
			})
		}
	}
}

func (w *world) refresh() {
	for slot := range w.names {
		w.board.Set(w.names[slot], &w.figures[slot], 0)
	}
	w.board.At = w.log.Positions()
}

// follow begins a subscriber; from is nil or where it resumes.
func (w *world) follow(who *auth.Principal, from []uint64) {
	var refusal *wire.Error
	if w.sub, refusal = NewSubscriber(w.board, who, w.nowMs); refusal != nil {
		w.t.Fatal(refusal)
	}
	w.follower = follower{named: map[uint32]wire.SlotName{}, rows: map[uint32]wire.Figures{}, after: from}
	if from != nil {
		w.counted, w.missed = make([]uint64, len(from)), make([]uint64, len(from))
	}
	w.sub.Take(w.nowMs, &wire.WatchSubscribe{ID: "q", Kind: wire.WatchQueues, Commands: []string{"a1.*", "a2.*"}, EveryMs: wire.MinWatchEveryMs}, nil)
	w.sub.Take(w.nowMs, &wire.WatchSubscribe{
		ID: "e", Kind: wire.WatchEvents, After: from, MaxPerSecond: 1 + w.r.IntN(wire.MaxWatchPerSecond),
	}, nil)
}

// read takes one message and reports whether there was one.
func (w *world) read() bool {
	list := frames(w.t, w.sub.Next(w.nowMs))
	for _, f := range list {
		switch f := f.(type) {
		case *wire.WatchNames:
			for _, name := range f.Queues {
				w.named[name.Slot] = name
				delete(w.rows, name.Slot)
			}
		case *wire.WatchSnapshot:
			if f.ID == "e" {
				w.after = f.At
				w.counted, w.missed = make([]uint64, len(f.At)), make([]uint64, len(f.At))
				continue
			}
			w.complete = !f.More
			w.takeRows(f.Queues)
		case *wire.WatchTick:
			if !w.complete {
				w.t.Fatal("a tick before the end of the snapshot")
			}
			w.takeRows(f.Queues)
		case *wire.WatchEvent:
			if f.Number <= w.after[f.Shard] || f.Number > w.board.At[f.Shard] {
				w.t.Fatalf("event %d of shard %d after %d, with %d on the board", f.Number, f.Shard, w.after[f.Shard], w.board.At[f.Shard])
			}
			w.after[f.Shard] = f.Number
			w.counted[f.Shard]++
		case *wire.WatchGap:
			w.missed[f.Shard] += f.Missed
			w.after[f.Shard] = max(w.after[f.Shard], f.To)
		}
	}
	return len(list) > 0
}

func (w *world) takeRows(rows []wire.QueueRow) {
	for _, r := range rows {
		if r.Slot == wire.TotalSlot {
			w.total = r.Figures
			continue
		}
		if w.named[r.Slot].Command == "" {
			w.t.Fatalf("a row of slot %d before its name", r.Slot)
		}
		w.rows[r.Slot] = r.Figures
	}
}

// settle lets the client read to the end, and compares it with the model.
func (w *world) settle(tenant string, all bool, from []uint64) {
	w.refresh()
	for idle := 0; idle < 3; {
		w.nowMs += 1000
		if idle++; w.read() {
			idle = 0
		}
	}
	var total wire.Figures
	var times [events.Buckets]uint64
	for slot, name := range w.names {
		want := name.Command != "" && (all || name.Tenant == tenant) && slot%3 != 0
		got, has := w.rows[uint32(slot)]
		if has != want || has && (got != w.figures[slot] || w.named[uint32(slot)] != name) {
			w.t.Fatalf("slot %d is %+v (%v) for the client, %+v in the model (%v)", slot, got, has, w.figures[slot], want)
		}
		for i := range w.figures[slot] {
			if want && i != wire.FigureOldestReadyAt {
				total[i] += w.figures[slot][i]
			}
		}
		if at := w.figures[slot][wire.FigureOldestReadyAt]; want && at != 0 && (at < total[wire.FigureOldestReadyAt] || total[wire.FigureOldestReadyAt] == 0) {
			total[wire.FigureOldestReadyAt] = at
		}
		if want {
			w.board.Times(uint32(slot), &times, nil)
		}
	}
	total[wire.FigureWaitP50], total[wire.FigureWaitP99] = events.Percentiles(&times)
	total[wire.FigureRunP50], total[wire.FigureRunP99] = 0, 0
	if w.total != total {
		w.t.Fatalf("the total is %v for the client, %v in the model", w.total, total)
	}
	for shard, n := range w.log.last {
		if all && w.counted[shard]+w.missed[shard] != n-from[shard] {
			w.t.Fatalf("shard %d: %d events and %d missed are not %d", shard, w.counted[shard], w.missed[shard], n-from[shard])
		}
	}
}

// TestWhoFollowsKnowsWhatIs: whatever happens, and however slowly a client reads, its figures
// are those of the model in the end, and its events and gaps add up.
func TestWhoFollowsKnowsWhatIs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		w.refresh()
		all := w.r.IntN(2) == 0
		who := principal("t1", auth.ScopeRead)
		if all {
			who = principal("t1", auth.ScopeAdminAll)
		}
		var from []uint64
		if w.r.IntN(2) == 0 {
			from = make([]uint64, len(w.log.last))
		}
		w.follow(who, from)
		start := w.log.Positions()
		if from != nil {
			start = make([]uint64, len(start))
		}
		lazy := 1 + w.r.IntN(20)
		for range 200 {
			w.step()
			if w.r.IntN(lazy) == 0 {
				w.read()
			}
		}
		w.settle("t1", all, start)
	}
}
