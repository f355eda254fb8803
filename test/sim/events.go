package sim

import (
	"codeq/internal/events"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// eventsBytes is little, so that rings come round and have all that they need beside: also the
// history of 20 queues, of which four are of callbacks, and of five totals.
const eventsBytes = 480 << 10

// ringTail is how many of the last events of a ring are compared.
const ringTail = 6

// watcher stands between the shards and the log of events of one life. It holds every
// event against the round that made it, and the figures of the log against what it has
// counted itself.
type watcher struct {
	world  *world
	log    *events.Log
	shards []watchedShard
	// queues are the figures as of the last event that was observed.
	queues map[record.QueueKey]*events.Figures
	// happened is what has happened in each queue in this life.
	happened map[record.QueueKey]*happened
	// seen is what a reader has who takes what has changed since version.
	seen    map[record.QueueKey]events.Figures
	version uint64
	// slots are the queues by their slots.
	slots   map[uint32]record.QueueKey
	history *chronicle
}

// watchedShard is what is known of the events of one shard.
type watchedShard struct {
	// first is the number of the last event before the life, told the newest batch that
	// the gate knows to be durable.
	first, told uint64
	// made are events that were not observed, last those that were observed last.
	made []madeEvent
	last []shard.Event
	// lastMs is the time of the last event of each queue that the shard has.
	lastMs map[record.QueueKey]int64
}

type madeEvent struct {
	shard.Event
	batch uint64
}

func newWatcher(w *world) *watcher {
	v := &watcher{
		world: w, log: events.New(events.Options{Shards: w.shape.shards, MemoryBytes: eventsBytes}),
		shards: make([]watchedShard, w.shape.shards), queues: make(map[record.QueueKey]*events.Figures),
		happened: make(map[record.QueueKey]*happened),
		seen:     make(map[record.QueueKey]events.Figures), slots: make(map[uint32]record.QueueKey), history: newChronicle(),
	}
	for i := range v.shards {
		v.shards[i].lastMs = make(map[record.QueueKey]int64)
	}
	return v
}

// Load implements shardactor.Observer. Numbers go on after those that a crash left.
func (v *watcher) Load(shardNo int, number uint64, queues []store.QueueState) {
	if want := v.world.model.shards[shardNo].events; number != want {
		violate("events are numbered without gaps", "shard %d begins after event %d, the last durable one is %d", shardNo, number, want)
	}
	v.shards[shardNo].first = number
	for i := range queues {
		v.shards[shardNo].lastMs[queues[i].Key] = 0
	}
	past := &v.world.audience.past[shardNo]
	*past = (*past)[:number]
	v.log.Load(shardNo, number, queues)
}

// made notes the events of a round.
func (v *watcher) made(shardNo int, batch uint64, round []shard.Event) {
	s := &v.shards[shardNo]
	for i := range round {
		s.made = append(s.made, madeEvent{round[i], batch})
	}
	past := &v.world.audience.past[shardNo]
	*past = append(*past, round...)
}

// Observe implements shardactor.Observer.
func (v *watcher) Observe(shardNo int, round []shard.Event) {
	s, durable := &v.shards[shardNo], v.world.server.durable[shardNo]
	for i := range round {
		e := &round[i]
		if len(s.made) == 0 || s.made[0].Event != *e {
			violate("events are observed once and in order", "shard %d observes %+v, next of %d is %+v", shardNo, *e, len(s.made), s.made)
		}
		if s.made[0].batch > durable {
			violate("no event before its batch is durable", "shard %d: event %d of batch %d, durable %d", shardNo, e.Number, s.made[0].batch, durable)
		}
		s.made = s.made[1:]
		s.last = append(s.last[max(0, len(s.last)-ringTail+1):], *e)
		v.count(shardNo, e)
		if e.Files {
			v.world.files.due = append(v.world.files.due, e.TaskID)
		}
	}
	v.log.Observe(shardNo, round)
}

// count moves a task from figure to figure, and counts the event.
func (v *watcher) count(shardNo int, e *shard.Event) {
	q := record.QueueKey{Command: e.Command, Tenant: e.Tenant}
	f := v.figures(q)
	if e.From != "" {
		f.Row[figureOf(e.From)]--
	}
	if e.To != "" {
		f.Row[figureOf(e.To)]++
	}
	countInto(&f.Counts, e)
	v.shards[shardNo].lastMs[q] = e.AtMs
	v.history.add(e)
	if v.happened[q] == nil {
		v.happened[q] = &happened{}
	}
	v.happened[q].add(e)
}

func countInto(c *events.Counts, e *shard.Event) {
	c.Moves[e.Cause]++
	if e.Cause == record.CauseGrant {
		c.Wait.SumMs += uint64(e.SpentMs)
	}
	if e.From == wire.LocationInProgress {
		c.Run.SumMs += uint64(e.SpentMs)
	}
	c.Total.SumMs += uint64(e.TotalMs)
	for _, figure := range figuresOf(e) {
		switch figure {
		case wire.FigureCompletedPer:
			c.Completed++
		case wire.FigureFailedPer:
			c.Buried++
		case wire.FigureRetriedPer:
			c.Retried++
		}
	}
}

// forget drops what the log drops once a minute: the counts of a queue that had no event for
// an hour, and a queue of which nothing is left.
func (v *watcher) forget(nowMs int64) {
	if nowMs < v.history.forgetsMs {
		return
	}
	v.history.forgetsMs = nowMs + 60_000
	oldest := v.log.Oldest()
	for q, f := range v.queues {
		quiet, ends := false, f.Row == wire.Figures{}
		for i := range v.shards {
			last, known := v.shards[i].lastMs[q]
			if !known {
				continue
			}
			if quiet = last/1000*1000+forgetForMs <= nowMs; !quiet {
				break
			}
			ends = ends && v.ringIsPast(i, oldest[i], last)
		}
		if !quiet {
			continue
		}
		if f.Counts = (events.Counts{}); ends {
			v.ends(q)
		}
	}
}

// ends drops a queue.
func (v *watcher) ends(q record.QueueKey) {
	delete(v.queues, q)
	for i := range v.shards {
		delete(v.shards[i].lastMs, q)
	}
	if s := v.history.series[q]; s != nil {
		s.sinceMs, s.came = -1, [len(steps)]happened{}
	}
}

// ringIsPast reports whether the ring has no event of the second of a time or before.
func (v *watcher) ringIsPast(shardNo int, oldest uint64, ms int64) bool {
	past := v.world.audience.past[shardNo]
	s := &v.shards[shardNo]
	return len(s.last) == 0 || past[oldest-1].AtMs >= (ms/1000+1)*1000
}

// figureOf is the figure that counts the tasks in a place.
func figureOf(place wire.Location) int {
	switch place {
	case wire.LocationPending:
		return wire.FigureReady
	case wire.LocationDelayed:
		return wire.FigureDelayed
	case wire.LocationInProgress:
		return wire.FigureInProgress
	case wire.LocationDead:
		return wire.FigureDead
	case wire.LocationLimited:
		return wire.FigureLimited
	}
	return wire.FigureDone
}

func (v *watcher) figures(q record.QueueKey) *events.Figures {
	if v.queues[q] == nil {
		v.queues[q] = &events.Figures{}
	}
	return v.queues[q]
}

// counted are the tasks of each queue by place as the model has them, without what was
// not observed yet.
func (v *watcher) counted() map[record.QueueKey]*wire.Figures {
	tasks := make(map[record.QueueKey]*wire.Figures)
	move := func(tenant, command string, place wire.Location, by int64) {
		if place == "" {
			return
		}
		q := record.QueueKey{Command: command, Tenant: tenant}
		row := tasks[q]
		if row == nil {
			row = &wire.Figures{}
			tasks[q] = row
		}
		row[figureOf(place)] += by
	}
	for _, t := range v.world.model.all {
		move(t.tenant, t.command, t.place, 1)
	}
	for i := range v.shards {
		for _, e := range v.shards[i].made {
			move(e.Tenant, e.Command, e.To, -1)
			move(e.Tenant, e.Command, e.From, 1)
		}
	}
	return tasks
}

// begin counts the tasks that a start has found.
func (v *watcher) begin() {
	for q, row := range v.counted() {
		v.figures(q).Row = *row
	}
	v.check()
}

// recount holds what was counted from event to event against the tasks.
func (v *watcher) recount() {
	tasks := v.counted()
	for q, f := range v.queues {
		var row wire.Figures
		if tasks[q] != nil {
			row = *tasks[q]
		}
		if f.Row != row {
			violate("events tell every move", "queue %v has %v by its events, %v by its tasks", q, f.Row, row)
		}
	}
}

// check holds the log against what was counted. Every event that the gate knows to be
// durable has been observed.
func (v *watcher) check() {
	version, at := v.log.Figures(v.version, func(name wire.SlotName, f *events.Figures) {
		if delete(v.seen, v.slots[name.Slot]); name.Command == "" {
			delete(v.slots, name.Slot)
			return
		}
		q := record.QueueKey{Command: name.Command, Tenant: name.Tenant}
		v.seen[q], v.slots[name.Slot] = *f, q
	})
	v.version = version
	for i := range v.shards {
		s := &v.shards[i]
		if len(s.made) > 0 && s.made[0].batch <= s.told {
			violate("every durable event is observed", "shard %d has not observed event %d of batch %d, the gate was told of %d",
				i, s.made[0].Number, s.made[0].batch, s.told)
		}
		want := s.first
		if len(s.last) > 0 {
			want = s.last[len(s.last)-1].Number
		}
		if at[i] != want {
			violate("events are numbered without gaps", "shard %d has figures of event %d, the last one is %d", i, at[i], want)
		}
		v.checkRing(i, want)
	}
	for q, want := range v.queues {
		got := v.seen[q]
		if got.Row != want.Row || got.Moves != want.Moves || got.Wait.SumMs != want.Wait.SumMs || got.Run.SumMs != want.Run.SumMs ||
			got.Total.SumMs != want.Total.SumMs || got.Completed != want.Completed || got.Buried != want.Buried || got.Retried != want.Retried {
			violate("figures of events add up", "queue %v has %+v, counted %+v", q, got, *want)
		}
	}
	for q := range v.seen {
		if v.queues[q] == nil {
			violate("figures of events add up", "queue %v has figures and no event", q)
		}
	}
}

// checkRing reads the last events of a shard.
func (v *watcher) checkRing(shardNo int, number uint64) {
	var into [ringTail + 1]events.Record
	last := v.shards[shardNo].last
	n, missed := v.log.Read(shardNo, number-uint64(len(last)), into[:])
	if n != len(last) || missed > 0 {
		violate("the ring has the last events", "shard %d after %d: %d events, %d missed, want %d", shardNo, number-uint64(len(last)), n, missed, len(last))
	}
	for i := range last {
		e, got := &last[i], into[i]
		if want := (events.Record{
			Number: e.Number, AtMs: e.AtMs, Slot: got.Slot, Task: e.TaskID, From: e.From, To: e.To, Status: e.Status, Cause: e.Cause,
			Worker: e.Worker, Delivery: e.Delivery, Attempts: e.Attempts, SpentMs: e.SpentMs,
		}); got != want {
			violate("the ring has the last events", "shard %d has %+v, want %+v", shardNo, got, want)
		}
	}
}
