package sim

import (
	"fmt"
	"maps"
	"slices"

	"codeq/internal/auth"
	"codeq/internal/watch"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// audience are the clients that watch a world, with the board that they watch. They change
// nothing in the world and draw from chances of their own, so a seed is the same world
// with and without them.
type audience struct {
	world  *world
	chance *chance
	// every is once in how many steps something happens here.
	every   int
	viewers []*viewer
	// past are all events of each shard, by number, also those that are not durable yet.
	past [][]shard.Event

	// The board of this life of the process, and what it must show.
	board       *watch.Board
	source      *watch.Source
	shown       *shown
	refreshedMs int64
	paces       paces
	// rosters are the sessions of each tenant that the board was told of last, served what it
	// was told of the server.
	rosters map[string][]wire.SessionFigures
	served  *served
}

// shown is what a board must show as of its last refresh. It does not change.
type shown struct {
	at   []uint64
	rows map[record.QueueKey]wire.Figures
	// times are those that the percentiles of each queue would be of.
	times map[record.QueueKey]happened
}

func newAudience(w *world, seed uint64) *audience {
	a := &audience{world: w, chance: newChance(^seed), past: make([][]shard.Event, w.shape.shards)}
	c := a.chance
	c.begin(-1)
	if a.every = pick(c, []int{0, 0, 2, 5, 16}); a.every == 0 {
		return a
	}
	scopes := []string{auth.ScopeView, auth.ScopeAdmin, auth.ScopeAdminAll}
	for n := range 2 + c.IntN(3) {
		a.viewers = append(a.viewers, &viewer{
			audience: a, name: fmt.Sprintf("viewer%d", n), tenant: pick(c, w.shape.tenants), scope: pick(c, scopes),
			lazy: pick(c, []int{1, 2, 10, 60}),
		})
	}
	return a
}

// began makes the board of a life.
func (a *audience) began() {
	s := a.world.server
	a.source = watch.NewSource(s.events.log, s.store.ReadEveryQueue, func() int64 { return a.world.nowMs })
	a.board = watch.NewBoard(watch.Facts{
		Events: s.events.log, CreationID: s.store.CreationID(), Version: "sim", ShardOf: s.engine.ShardOf,
		Points: s.events.log.Points, TotalOf: s.events.log.TotalOf, Times: a.source.Times, Beside: a.source.Beside,
		Sessions: a.sessions, Server: a.serverFigures, Dead: a.deadLetters, Slow: a.slow, Target: func(wire.SlotName) string { return "" },
	})
	a.paces = paces{world: a.world, queues: make(map[record.QueueKey]*pace)}
	a.rosters, a.served = make(map[string][]wire.SessionFigures), nil
	a.refresh()
}

// refresh brings the board up to date, and notes what is true of the events in it.
func (a *audience) refresh() {
	if err := a.source.Refresh(a.board, a.world.nowMs); err != nil {
		violate("figures can be read", "%v", err)
	}
	a.refreshedMs = a.world.nowMs
	a.paces.refreshed()
	a.shown = &shown{at: slices.Clone(a.board.At), rows: make(map[record.QueueKey]wire.Figures), times: make(map[record.QueueKey]happened)}
	for q, f := range a.world.server.events.queues {
		a.shown.rows[q] = a.row(q, f.Row)
		if x, h := a.paces.queues[q], a.world.server.events.happened[q]; x.began {
			a.shown.times[q] = happened{wait: h.wait[x.window.wait:x.second.wait], run: h.run[x.window.run:x.second.run]}
		}
	}
}

// ended is the end of a life: whoever watched it has to connect again, and may have got what
// was sent last.
func (a *audience) ended() {
	for _, v := range a.viewers {
		if a.chance.oneIn(2) {
			v.read()
		}
		v.gone()
	}
}

// step is what viewers and their hub do beside a step of the world.
func (a *audience) step(number int) {
	a.chance.begin(number)
	if a.every == 0 || !a.chance.oneIn(a.every) {
		return
	}
	if a.world.nowMs-a.refreshedMs >= wire.MinWatchEveryMs || a.chance.oneIn(4) {
		a.refresh()
		for _, v := range a.viewers {
			v.feed()
			v.rereads()
		}
	}
	pick(a.chance, a.viewers).act()
}

// settle lets every client read to the end, and the server what has changed in pages.
func (a *audience) settle() {
	for range 3 {
		a.world.nowMs += wire.MinWatchEveryMs
		a.refresh()
		for _, v := range a.viewers {
			if v.sub == nil {
				continue
			}
			for v.feed(); v.message != nil; v.feed() {
				v.read()
			}
			v.rereads()
		}
	}
}

// act is something that a client does.
func (v *viewer) act() {
	c := v.audience.chance
	switch {
	case v.sub == nil:
		v.connect()
	case c.oneIn(60):
		v.gone()
	case c.oneIn(12):
		v.asks()
	case c.oneIn(v.lazy):
		for range 1 + c.IntN(3) {
			v.read()
			v.feed()
		}
	}
}

func (v *viewer) principal() *auth.Principal {
	return &auth.Principal{Tenant: v.tenant, Subject: v.name, Scopes: []string{v.scope}}
}

// connect opens a socket, and asks again for some of what the client has seen before.
func (v *viewer) connect() {
	a := v.audience
	a.refresh()
	sub, refusal := watch.NewSubscriber(a.board, v.principal(), a.world.nowMs)
	if refusal != nil {
		violate("who may see queues may watch", "%s: %v", v.scope, refusal)
	}
	v.sub, v.rights = sub, rights{v.tenant, v.scope}
	v.welcome, v.markedMs = true, a.world.nowMs
	v.names, v.pending = make(map[uint32]wire.SlotName), make(map[int64]*answered)
	v.asked, v.listings = make(map[string]*wire.WatchSubscribe), make(map[string]*listing)
	before := v.views
	v.views = nil
	for _, b := range before {
		if b.after != nil && b.ask.Kind == wire.WatchEvents && !a.chance.oneIn(4) {
			v.resume(b)
		}
	}
	v.asks()
	v.feed()
}

// gone ends the socket. What the client has stays with it.
func (v *viewer) gone() { v.sub, v.message, v.reading, v.opens, v.again = nil, nil, nil, nil, nil }

// resume asks for the events after those that the client has, or names events that this
// database never had.
func (v *viewer) resume(b *view) {
	ask := *b.ask
	ask.After, ask.CreationID = slices.Clone(b.after), v.creation
	switch v.audience.chance.IntN(12) {
	case 0:
		ask.CreationID = "another"
	case 1:
		ask.After[0] += 1 << 40
	case 2:
		clear(ask.After)
	}
	v.subscribe(&ask)
}

// asks says one of the things that a client may say.
func (v *viewer) asks() {
	c := v.audience.chance
	switch n := c.IntN(18); {
	case n < 5:
		v.subscribe(&wire.WatchSubscribe{
			ID: pick(c, []string{"q", "q", "r"}), Kind: wire.WatchQueues, Commands: v.somePatterns(),
			EveryMs: pick(c, []int{wire.MinWatchEveryMs, wire.DefaultWatchMs, wire.MaxWatchEveryMs}),
			RangeMs: pick(c, []int64{0, 5 * 60_000, 3600_000, 24 * 3600_000}),
		})
	case n < 8:
		v.subscribe(&wire.WatchSubscribe{
			ID: pick(c, []string{"e", "f"}), Kind: wire.WatchEvents, Commands: v.somePatterns(), Causes: v.someCauses(),
			MaxPerSecond: pick(c, []int{1, 5, 50, wire.MaxWatchPerSecond, wire.MaxWatchPerSecond}),
		})
	case n < 10:
		v.subscribeTask()
	case n < 11 && len(v.views) > 0 && len(v.pending) == 0:
		v.say(&wire.WatchUnsubscribe{ID: pick(c, v.views).ask.ID}, nil)
	case n < 12:
		v.renew()
	case n < 15:
		v.subscribePage()
	case n < 17:
		v.subscribe(&wire.WatchSubscribe{ID: "w", Kind: wire.WatchWorkers})
	default:
		v.subscribe(&wire.WatchSubscribe{ID: "s", Kind: wire.WatchServer})
	}
}

func (v *viewer) somePatterns() []string {
	return pick(v.audience.chance, [][]string{nil, {wire.AllCommands}, {"a"}, {"b", "c"}, {quiet, "a"}})
}

func (v *viewer) someCauses() []string {
	return pick(v.audience.chance, [][]string{nil, nil, {"enqueue"}, {"grant", "lease_expired"}, {"nack", "abandon", "release", "due"}})
}

// subscribeTask asks for a task. The server reads it, and answers when what it read is durable.
func (v *viewer) subscribeTask() {
	a := v.audience
	if len(a.world.model.all) == 0 || v.reading != nil {
		return
	}
	t := pick(a.chance, a.world.model.all[max(0, len(a.world.model.all)-40):])
	shows := &watch.Shows{At: a.world.server.events.log.Positions(), Task: a.world.read(t)}
	if t.tenant != v.tenant || shows.Task == nil {
		return
	}
	v.reading = &taskRead{shows: shows, task: t, batch: a.world.server.applied[t.shard]}
}

// answersTask goes on with a task that was read.
func (v *viewer) answersTask() {
	r := v.reading
	if r == nil || v.audience.world.server.durable[r.task.shard] < r.batch {
		return
	}
	v.reading = nil
	v.say(&wire.WatchSubscribe{ID: "t", Kind: wire.WatchTask, TaskID: r.task.id}, r.shows)
}

func (v *viewer) subscribe(f *wire.WatchSubscribe) { v.say(f, nil) }

// say sends a frame, as bytes.
func (v *viewer) say(f wire.ClientFrame, shows *watch.Shows) {
	a := v.audience
	v.ref++
	next := &answered{}
	switch f := f.(type) {
	case *wire.WatchSubscribe:
		f.Ref = wire.Ref{Value: v.ref, Present: true}
		next.view = v.newView(f, shows)
	case *wire.WatchUnsubscribe:
		f.Ref = wire.Ref{Value: v.ref, Present: true}
		next.ends = f.ID
	}
	v.pending[v.ref] = next
	list, violation := wire.ParseWatchRequest(wire.AppendWatchRequest(nil, f))
	if violation != nil || len(list) != 1 {
		violate("a frame of a client can be read", "%+v: %v", f, violation)
	}
	switch f := list[0].(type) {
	case *wire.WatchSubscribe:
		v.asked[f.ID] = f
	case *wire.WatchUnsubscribe:
		delete(v.asked, f.ID)
	}
	if refusal := v.sub.Take(a.world.nowMs, list[0], shows); refusal != nil {
		violate("a good subscription is answered", "%+v: %v", f, refusal)
	}
	v.feed()
}

// renew is a client with another credential.
func (v *viewer) renew() {
	c := v.audience.chance
	had := v.scope
	v.scope = pick(c, []string{auth.ScopeView, auth.ScopeAdmin, auth.ScopeAdminAll})
	if refusal := v.sub.Renew(v.principal()); refusal != nil {
		violate("who may see queues may watch", "%s: %v", v.scope, refusal)
	}
	v.ref++
	v.pending[v.ref] = &answered{rights: rights{v.tenant, v.scope}, renews: v.scope != had, at: v.audience.world.server.events.log.Positions()}
	v.sub.Say(&wire.OK{Ref: wire.Ref{Value: v.ref, Present: true}})
	v.feed()
}

// feed makes the next message, if the client has read the one before.
func (v *viewer) feed() {
	a := v.audience
	if v.sub == nil || v.message != nil {
		return
	}
	if v.answersTask(); v.message != nil {
		return
	}
	if v.showsPages(); v.message != nil {
		return
	}
	data := v.sub.Next(a.world.nowMs)
	if data == nil {
		v.hasAll()
		return
	}
	if len(data) > wire.MaxServerMessageBytes {
		violate("a message of events has its bound", "%d bytes", len(data))
	}
	frames, err := wire.ParseWatchMessage(data)
	if err != nil {
		violate("a message of events can be read", "%v in %s", err, data)
	}
	if _, welcome := frames[0].(*wire.WatchWelcome); !welcome {
		a.world.trace.text(data) // a welcome has an id that each run draws anew
	}
	v.message = &message{
		frames: frames, bytes: len(data), atMs: a.world.nowMs, shown: a.shown, oldest: a.world.server.events.log.Oldest(),
		history: a.world.server.events.history, pages: maps.Clone(v.listings), served: a.served,
	}
}
