package sim

import (
	"bytes"
	"cmp"
	"slices"

	"codeq/internal/auth"
	"codeq/internal/watch"
	"codeq/shard"
	"codeq/wire"
)

// viewer is a client that watches. It believes what the frames say, and what it believes is
// held against the model.
type viewer struct {
	audience *audience
	name     string
	tenant   string
	scope    string
	// lazy clients read once in so many times.
	lazy int

	sub *watch.Subscriber
	// message was sent and is not read yet.
	message *message
	// reading is a task that the server has read and not shown.
	reading *taskRead
	// opens is a page for a new subscription, again one that is read again.
	opens, again *pageRead
	// asked are the subscriptions as the server has them, listings the pages that it was shown
	// last, by the id of the subscription.
	asked    map[string]*wire.WatchSubscribe
	listings map[string]*listing

	// welcome: the first frame of the socket is still to come.
	welcome  bool
	creation string
	rights   rights
	names    map[uint32]wire.SlotName
	views    []*view
	ref      int64
	pending  map[int64]*answered
	markedMs int64
}

// rights are what a client may see, as of the newest answer.
type rights struct{ tenant, scope string }

// admin: payloads and errors of tasks.
func (r rights) admin() bool { return r.scope != auth.ScopeView }

func (r rights) sees(tenant string) bool { return r.scope == auth.ScopeAdminAll || r.tenant == tenant }

// message is one message with what was true when it was made.
type message struct {
	frames []wire.ServerFrame
	bytes  int
	atMs   int64
	shown  *shown
	oldest []uint64
	// history is that of the life in which it was sent.
	history *chronicle
	// pages are the listings that the server was shown last, served what it was told of itself.
	pages  map[string]*listing
	served *served
}

type taskRead struct {
	shows *watch.Shows
	task  *task
	batch uint64
}

// answered is what the answer to a request makes true.
type answered struct {
	view *view
	ends string
	// renews: the rights are others from here on. at are the positions then.
	renews bool
	rights rights
	at     []uint64
}

// view is what a client has of one subscription.
type view struct {
	ask *wire.WatchSubscribe
	// shows is what the server has read for it.
	shows *watch.Shows
	// foreign: it begins after events that the database never had.
	foreign bool

	// rows are those of kind queues, all of them if whole.
	rows  map[uint32]wire.Figures
	total wire.Figures
	whole bool
	// partly: the snapshot that has begun goes on in a later message.
	partly bool
	// tickedMs is when the newest tick was made, differsMs since when the rows differ from the
	// board; 0 for neither.
	tickedMs, differsMs int64

	page     *pageView
	sessions map[wire.SessionID]wire.SessionFigures
	// servedMs is when the figures of the server were looked up that the client has.
	servedMs int64

	// after has, for each shard, the last event that is accounted for; nil before the
	// snapshot. caughtUp: the client has had all there was. lacking are wanted events that were
	// passed over in a message.
	after    []uint64
	caughtUp bool
	lacking  [][]uint64
	sinceMs  int64
	came     int64
	// first is the message that it began with.
	first *message
	// Up to before, events were looked at with other rights, maybe.
	before []uint64
}

func (v *viewer) newView(f *wire.WatchSubscribe, shows *watch.Shows) *view {
	w := &view{ask: f, shows: shows, rows: make(map[uint32]wire.Figures)}
	log := v.audience.world.server.events.log
	if w.foreign = f.After != nil && (f.CreationID != v.creation || ahead(f.After, log.Positions())); !w.foreign {
		w.after = slices.Clone(f.After)
	}
	return w
}

func (v *viewer) view(id, kind string) *view {
	i := slices.IndexFunc(v.views, func(w *view) bool { return w.ask.ID == id && w.ask.Kind == kind })
	if i < 0 {
		violate("frames are of a subscription", "%s has none that is %s of kind %s", v.name, id, kind)
	}
	return v.views[i]
}

// read takes the message that was sent.
func (v *viewer) read() {
	if v.message == nil {
		return
	}
	m := v.message
	v.message = nil
	var shownOf []*view
	for _, f := range m.frames {
		switch f := f.(type) {
		case *wire.WatchWelcome:
			v.welcomed(f)
		case *wire.OK:
			v.answers(f.Ref.Value, m)
		case *wire.WatchNames:
			v.takeNames(f)
		case *wire.WatchSnapshot:
			if w := v.snapshot(f, m); w != nil {
				shownOf = append(shownOf, w)
			}
		case *wire.WatchTick:
			if w := v.tick(f, m); w != nil {
				shownOf = append(shownOf, w)
			}
		case *wire.WatchPoints:
			v.points(f, m)
		case *wire.WatchEvent:
			v.event(f, m)
		case *wire.WatchGap:
			v.gap(f, m)
		case *wire.WatchMark:
			v.mark(f, m)
		default:
			violate("a subscription is served", "%s got %T %+v", v.name, f, f)
		}
	}
	for _, w := range shownOf {
		// A full message has no room for the last rows.
		if w.whole && m.bytes < wire.MaxServerMessageBytes/2 {
			if diff := cmp.Or(v.differs(w, m.shown), v.totalDiffers(w, m.shown)); diff != "" {
				violate("who watches has the figures", "%s", diff)
			}
		}
	}
	for _, w := range v.views {
		w.lacksNothing()
	}
}

// tick returns the view of queues that it is part of.
func (v *viewer) tick(f *wire.WatchTick, m *message) *view {
	w := v.find(f.ID)
	switch w.ask.Kind {
	case wire.WatchPage:
		v.ticksPage(w, f, m)
		return nil
	case wire.WatchWorkers:
		v.takesSessions(w, &f.WatchState, m, false)
		return nil
	case wire.WatchServer:
		v.takesServer(w, &f.WatchState, m)
		return nil
	}
	if !w.whole {
		violate("a snapshot comes before its ticks", "%s has a tick of %s", v.name, f.ID)
	}
	if m.atMs < w.tickedMs+int64(w.ask.EveryMs) && w.tickedMs != 0 {
		violate("a client gets no more than it asks for", "%s got ticks at %d and %d", v.name, w.tickedMs, m.atMs)
	}
	w.tickedMs, w.differsMs = m.atMs, 0
	v.takeRows(w, f.Queues)
	return w
}

func (v *viewer) welcomed(f *wire.WatchWelcome) {
	store := v.audience.world.server.store
	if !v.welcome || f.CreationID != store.CreationID() || f.TenantID != v.tenant || f.Admin != v.rights.admin() {
		violate("a client is welcomed once", "%s got %+v", v.name, f)
	}
	v.welcome, v.creation = false, f.CreationID
}

// answers makes true what the client has asked for.
func (v *viewer) answers(ref int64, m *message) {
	a := v.pending[ref]
	if a == nil {
		violate("a request is answered once", "%s got ok to %d", v.name, ref)
	}
	delete(v.pending, ref)
	id := a.ends
	if a.view != nil {
		id = a.view.ask.ID
	}
	if id != "" {
		v.views = slices.DeleteFunc(v.views, func(w *view) bool { return w.ask.ID == id })
	}
	if a.view != nil {
		a.view.sinceMs, a.view.first, a.view.lacking = m.atMs, m, make([][]uint64, len(m.shown.at))
		v.views = append(v.views, a.view)
	}
	if a.renews {
		for _, w := range v.views {
			w.before, w.rows, w.tickedMs, w.servedMs = a.at, make(map[uint32]wire.Figures), 0, 0
			w.whole, w.sessions = w.whole && w.ask.Kind == wire.WatchPage, nil
		}
		v.rights = a.rights
	}
}

func (v *viewer) takeNames(f *wire.WatchNames) {
	for _, name := range f.Queues {
		had := v.names[name.Slot]
		switch {
		case name.Command == "" && had.Command == "":
			violate("names come before rows", "%s is told that slot %d is gone, which it does not know", v.name, name.Slot)
		case name.Command != "" && !v.rights.sees(name.Tenant):
			violate("no event of another tenant", "%s is told the name %+v", v.name, name)
		}
		v.names[name.Slot] = name
		for _, w := range v.views {
			delete(w.rows, name.Slot)
		}
	}
}

// find is the subscription of an id.
func (v *viewer) find(id string) *view {
	i := slices.IndexFunc(v.views, func(w *view) bool { return w.ask.ID == id })
	if i < 0 {
		violate("frames are of a subscription", "%s has none that is %s", v.name, id)
	}
	return v.views[i]
}

// snapshot returns the view of queues that it is part of.
func (v *viewer) snapshot(f *wire.WatchSnapshot, m *message) *view {
	w := v.find(f.ID)
	switch w.ask.Kind {
	case wire.WatchPage:
		v.beginsPage(w, f, m)
	case wire.WatchWorkers:
		v.takesSessions(w, &f.WatchState, m, true)
		w.whole = !f.More
	case wire.WatchServer:
		v.takesServer(w, &f.WatchState, m)
		w.whole = true
	case wire.WatchQueues:
		if w.differsMs = 0; w.whole {
			w.rows, w.whole = make(map[uint32]wire.Figures), false
		}
		if !slices.Equal(f.At, m.shown.at) {
			violate("a snapshot has the events up to its positions", "%s is at %v, the board at %v", f.ID, f.At, m.shown.at)
		}
		v.takeRows(w, f.Queues)
		began := !w.partly
		if w.whole, w.partly = !f.More, f.More; began {
			return w
		} // else the rows before are as old as their message, and the next tick has what has changed
	case wire.WatchTask:
		w.after, w.caughtUp = slices.Clone(f.At), true
		v.showsTask(w, f)
	case wire.WatchEvents:
		if w.ask.After != nil && !w.foreign {
			violate("who resumes goes on", "%s resumes after %v of %s and gets %+v", v.name, w.ask.After, w.ask.CreationID, f)
		}
		w.after, w.caughtUp = slices.Clone(f.At), true
	}
	for shard, n := range f.At {
		if n > uint64(len(v.audience.past[shard])) {
			violate("no event before its batch is durable", "a snapshot at %v", f.At)
		}
	}
	return nil
}

// ahead reports whether any number is one that the database has not come to.
func ahead(after, at []uint64) bool {
	for shard, n := range after {
		if n > at[shard] {
			return true
		}
	}
	return false
}

// showsTask holds the task of a snapshot against the one that was read.
func (v *viewer) showsTask(w *view, f *wire.WatchSnapshot) {
	got, want := f.Task, *w.shows.Task
	if v.rights.scope == auth.ScopeView {
		want.Payload, want.Error = nil, ""
	}
	if got == nil || got.ID != want.ID || got.Status != want.Status || got.Location != want.Location || got.Deliveries != want.Deliveries ||
		!bytes.Equal(got.Payload, want.Payload) || got.Error != want.Error || len(got.History) != len(want.History) {
		violate("a task is shown as the rights say", "%s of %s got %+v, want %+v", v.name, v.rights.scope, got, want)
	}
	for i := range got.History {
		if v.rights.scope == auth.ScopeView && got.History[i].Error != "" {
			violate("a task is shown as the rights say", "%s of %s got the line %+v", v.name, v.rights.scope, got.History[i])
		}
	}
}

// wants reports whether an event is one that the subscription is about. surely is false for
// one that may have been looked at before the client had its rights.
func (v *viewer) wants(w *view, shardNo int, e *shard.Event) (may, surely bool) {
	if w.ask.Kind == wire.WatchTask {
		return e.TaskID == w.ask.TaskID, e.TaskID == w.ask.TaskID
	}
	may = v.rights.sees(e.Tenant) && matches(w.ask.Commands, e.Command) &&
		(len(w.ask.Causes) == 0 || slices.Contains(w.ask.Causes, e.Cause.String()))
	return may, may && (w.before == nil || e.Number > w.before[shardNo] || e.Tenant == v.tenant)
}

// goesOn accounts for the events of a shard up to a number: those that are wanted must be
// told of in the same message.
func (v *viewer) goesOn(w *view, shardNo int, upTo uint64) {
	for ; w.after[shardNo] < upTo; w.after[shardNo]++ {
		e := &v.audience.past[shardNo][w.after[shardNo]]
		if _, surely := v.wants(w, shardNo, e); surely {
			w.lacking[shardNo] = append(w.lacking[shardNo], e.Number)
		}
	}
}

func (w *view) lacksNothing() {
	for shardNo, lacking := range w.lacking {
		if len(lacking) > 0 {
			violate("what a client does not get is said", "subscription %s lacks events %v of shard %d", w.ask.ID, lacking, shardNo)
		}
	}
}

// stream is the view of a frame about events of a shard.
func (v *viewer) stream(id string, shardNo int) *view {
	i := slices.IndexFunc(v.views, func(w *view) bool { return w.ask.ID == id && w.ask.Kind != wire.WatchQueues })
	if i < 0 || shardNo < 0 || shardNo >= len(v.audience.past) || v.views[i].after == nil {
		violate("frames are of a subscription", "%s has none that is %s, shard %d", v.name, id, shardNo)
	}
	return v.views[i]
}

func (v *viewer) event(f *wire.WatchEvent, m *message) {
	w := v.stream(f.ID, f.Shard)
	if f.Number <= w.after[f.Shard] {
		violate("a client gets every event once and in order", "%s got event %d of shard %d after %d", v.name, f.Number, f.Shard, w.after[f.Shard])
	}
	if f.Number > m.shown.at[f.Shard] {
		violate("no event before its batch is durable", "%s got event %d of shard %d, observed are %d", v.name, f.Number, f.Shard, m.shown.at[f.Shard])
	}
	v.goesOn(w, f.Shard, f.Number-1)
	e := &v.audience.past[f.Shard][f.Number-1]
	if may, _ := v.wants(w, f.Shard, e); !may {
		violate("no event of another tenant", "%s of %+v asks for %+v and got %+v", v.name, v.rights, w.ask, f)
	}
	want := wire.WatchEvent{
		ID: f.ID, Shard: f.Shard, Number: e.Number, AtMs: e.AtMs, Task: e.TaskID, Command: e.Command, From: e.From, To: e.To,
		Status: e.Status, Cause: e.Cause.String(), Delivery: e.Delivery, Worker: e.Worker, SpentMs: e.SpentMs, Attempts: e.Attempts,
	}
	if e.Tenant != v.tenant {
		want.Tenant = e.Tenant
	}
	if *f != want {
		violate("a client gets events as they were", "%s got %+v, want %+v", v.name, *f, want)
	}
	w.after[f.Shard] = f.Number
	w.came++
	// Nothing waits while tokens are left, and there are those of one second at most.
	if most := int64(w.ask.MaxPerSecond); w.ask.Kind == wire.WatchEvents && w.came > most+(m.atMs-w.sinceMs)*most/1000+1 {
		violate("a client gets no more than it asks for", "%s got %d events in %d ms, %d a second", v.name, w.came, m.atMs-w.sinceMs, most)
	}
}

func (v *viewer) gap(f *wire.WatchGap, m *message) {
	w := v.stream(f.ID, f.Shard)
	if f.Reason == wire.GapSampled {
		v.goesOn(w, f.Shard, f.To)
		left := slices.DeleteFunc(slices.Clone(w.lacking[f.Shard]), func(n uint64) bool { return n >= f.From && n <= f.To })
		lacks := uint64(len(w.lacking[f.Shard]) - len(left))
		w.lacking[f.Shard] = left
		if f.Missed < lacks || f.Missed > lacks && (w.before == nil || f.From > w.before[f.Shard]) {
			violate("what a client does not get is said", "%s lacks %d events and is told %+v", v.name, lacks, f)
		}
		return
	}
	if f.From <= w.after[f.Shard] || f.To != m.oldest[f.Shard]-1 || f.Missed != f.To-f.From+1 {
		violate("what a client does not get is said", "%s has events up to %d, the server those from %d, and it is told %+v",
			v.name, w.after[f.Shard], m.oldest[f.Shard], f)
	}
	if w.caughtUp && f.Reason != wire.GapSlow || w.first == m && w.ask.After != nil && !w.caughtUp && f.Reason != wire.GapEvicted {
		violate("a gap says why", "%s has had all: %v, and is told %+v", v.name, w.caughtUp, f)
	}
	v.goesOn(w, f.Shard, f.From-1)
	w.after[f.Shard] = f.To
}

func (v *viewer) mark(f *wire.WatchMark, m *message) {
	v.markedMs = m.atMs
	if ahead(f.Positions, m.shown.at) {
		violate("a mark says what was sent", "%s is told %v, the board is at %v", v.name, f.Positions, m.shown.at)
	}
	for _, w := range v.views {
		for shardNo := range w.after {
			if v.counts(w, shardNo) {
				v.goesOn(w, shardNo, f.Positions[shardNo])
			}
		}
	}
}

// counts reports whether the subscription is about a shard.
func (v *viewer) counts(w *view, shardNo int) bool {
	return w.ask.Kind == wire.WatchEvents || w.after != nil && v.audience.world.server.engine.ShardOf(w.ask.TaskID) == shardNo
}

// hasAll holds what a client has against the board when the server has no more to send.
func (v *viewer) hasAll() {
	a := v.audience
	if len(v.pending) > 0 || v.welcome {
		violate("a request is answered once", "%s waits for %d answers", v.name, len(v.pending))
	}
	if a.world.nowMs >= v.markedMs+wire.WatchMarkMs {
		violate("a mark says what was sent", "%s has none since %d, it is %d", v.name, v.markedMs, a.world.nowMs)
	}
	for _, w := range v.views {
		if !w.whole && w.after == nil {
			violate("a subscription is served", "%s has no snapshot of %+v", v.name, w.ask)
		}
		v.isLate(w, a.world.nowMs)
		for shardNo := range w.after {
			if v.counts(w, shardNo) {
				v.goesOn(w, shardNo, a.shown.at[shardNo])
			}
		}
		w.caughtUp = true
		w.lacksNothing()
	}
}
