package watch

import (
	"codeq/internal/needs"
	"codeq/wire"
)

// overview has the figures of the server and what needs a person, as of its last look.
type overview struct {
	lookedAtMs int64
	// number counts the looks.
	number uint64
	server wire.ServerFigures
	// needs are those of all queues, each with the tenant of its queue.
	needs []needs.Need
	// encoded is what subscribers with the same rights get.
	encoded map[rights][]byte
	// slowNext is the row whose tasks in progress are looked at next.
	slowNext int
}

// slowLooks is of how many queues the tasks in progress are looked at in a second.
const slowLooks = 8

// overviewOf is the overview, at most a second old.
func (b *Board) overviewOf(nowMs int64) *overview {
	o := &b.overview
	if o.number > 0 && nowMs < o.lookedAtMs+secondMs {
		return o
	}
	o.lookedAtMs, o.server, o.needs, o.encoded = nowMs, b.Server(nowMs), nil, make(map[rights][]byte)
	o.number++
	if n, ok := needs.OfDisk(&o.server); ok {
		o.needs = append(o.needs, n)
	}
	b.lookAtDead()
	b.lookAtSlow(nowMs)
	for i := range b.rows {
		r := &b.rows[i]
		if r.name.Command == "" || r.name.Command == wire.AllCommands {
			continue
		}
		beside := b.Beside(r.name.Slot, nowMs)
		beside.Dead, beside.Slow = r.dead, r.slow
		c := needs.Condition{Name: &r.name, Figures: &r.figures, Beside: &beside}
		if c.Waits(nowMs) {
			c.Takers = b.rosterOf(r.name.Tenant, nowMs).takers(r.name.Command)
			c.Target = b.Target(r.name)
		}
		o.needs = append(o.needs, needs.Of(&c, nowMs)...)
	}
	return o
}

// lookAtDead looks at the dead letters of one queue whose number has changed since its last look:
// the one that was looked at longest ago.
func (b *Board) lookAtDead() {
	var next *row
	for i := range b.rows {
		r := &b.rows[i]
		isQueue, n := r.name.Command != "" && r.name.Command != wire.AllCommands, r.figures[wire.FigureDead]
		if isQueue && n != 0 && n != r.deadThen && (next == nil || r.lookedAt < next.lookedAt) {
			next = r
		}
	}
	if next != nil {
		next.deadThen, next.lookedAt = next.figures[wire.FigureDead], b.overview.number
		next.dead = b.Dead(next.name)
	}
}

// lookAtSlow looks at the tasks in progress of some queues, in turn.
func (b *Board) lookAtSlow(nowMs int64) {
	o, looks := &b.overview, slowLooks
	for range b.rows {
		o.slowNext = (o.slowNext + 1) % len(b.rows)
		r := &b.rows[o.slowNext]
		if r.name.Command == "" || r.name.Command == wire.AllCommands {
			continue
		}
		before := int64(0)
		if r.figures[wire.FigureInProgress] > 0 {
			beside := b.Beside(r.name.Slot, nowMs)
			before = beside.LongBefore(nowMs)
		}
		if before == 0 {
			r.slow = needs.Slow{}
			continue
		}
		if looks--; looks < 0 {
			o.slowNext--
			return
		}
		r.slow = b.Slow(r.name, before)
	}
}

// needsFor are the needs that a subscriber may see, worst first.
func (o *overview) needsFor(rights *rights) []wire.Need {
	seen := []wire.Need{}
	for i := range o.needs {
		n := o.needs[i].Need
		if rights.contents {
			n.Sentence += o.needs[i].Told
		}
		if n.Command != "" && !rights.sees(&wire.SlotName{Tenant: n.Tenant, Command: n.Command}) {
			continue
		}
		if n.Tenant == rights.tenant {
			n.Tenant = ""
		}
		seen = append(seen, n)
	}
	return needs.WorstFirst(seen)
}

// putServer puts the figures of the server and the needs into the message, once a second.
func (s *Subscriber) putServer(nowMs int64, w *subscription) {
	t, o := &w.tables, s.board.overviewOf(nowMs)
	if t.sent == o.number {
		return
	}
	if o.encoded[s.rights] == nil {
		o.encoded[s.rights] = wire.AppendWatchState(nil, &wire.WatchState{Server: &o.server, Needs: o.needsFor(&s.rights)})
	}
	state := wire.WatchState{Encoded: o.encoded[s.rights]}
	var f wire.ServerFrame = &wire.WatchTick{ID: w.ask.ID, AtMs: nowMs, WatchState: state}
	if t.snapshot {
		f = &wire.WatchSnapshot{ID: w.ask.ID, WatchState: state}
	}
	if s.putIfRoom(f) {
		t.snapshot, t.sent = false, o.number
	}
}
