package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// restMost bounds how many turns a world takes to come to rest.
const restMost = 10_000

// rest lets everything happen that can happen without time, a client or the
// network, and then looks at what is left.
func (w *world) rest() {
	w.settle()
	w.mustBeAtRest()
}

func (w *world) settle() {
	w.endReplaced()
	for range restMost {
		busy := w.server.unsynced || len(w.server.untold) > 0
		w.sync()
		for shard := range w.shape.shards {
			if w.mustRun(shard) {
				w.run(shard)
				busy = true
			}
		}
		busy = w.advanceClaims() || busy
		busy = w.alarmsRing() || busy
		for i := 0; i < len(w.conns); i++ {
			if c := w.conns[i]; c.busy() {
				c.work()
				busy = true
			}
		}
		if !busy {
			return
		}
	}
	violate("work ends", "not at rest after %d turns", restMost)
}

// mustBeAtRest holds the promises of a world in which nobody has anything left
// to do.
func (w *world) mustBeAtRest() {
	for e, m := range w.server.made {
		// One is enough to say so, whichever it is.
		violate("every effect is let out", "shard %d keeps %T", m.shard, e)
	}
	w.nothingIsUnnoted()
	w.server.events.recount()
	w.model.nobodyWaits()
	level := w.server.store.Guard().Level()
	if level >= store.OnlyDelete {
		return
	}
	w.nothingIsLate()
	for _, tenant := range w.shape.tenants {
		w.pendingAddsUp(tenant)
	}
	w.namedHold()
	w.noKeyIsForgotten()
	for _, s := range w.sessions() {
		s.limit = max(s.window, len(s.out))
		s.addsUp()
		if level < store.NoGrant {
			w.nothingWaitsFor(s)
			w.noSuspectStandsAsideBy(s)
		}
	}
}

// sessions are those the server takes for alive.
func (w *world) sessions() []*consumer {
	var alive []*consumer
	for _, c := range w.conns {
		if c.known != nil && !c.known.closed {
			alive = append(alive, c.known)
		}
	}
	for _, c := range w.claims {
		if c.state == claimSits {
			alive = append(alive, c.known)
		}
	}
	if w.hooks != nil {
		for _, s := range w.hooks.sinks {
			if !s.known.closed {
				alive = append(alive, s.known)
			}
		}
	}
	return alive
}

// addsUp compares the window with the model: credits in flight, and bytes that the
// client has not confirmed.
func (s *consumer) addsUp() {
	if s.InFlight() != len(s.out) || s.UntakenBytes() != s.untaken {
		violate("credit adds up", "session %v has %d tasks and %d bytes untaken, its window counts %d and %d",
			s.ID, len(s.out), s.untaken, s.InFlight(), s.UntakenBytes())
	}
}

// nothingWaitsFor checks that no ready task waits while this session has a free credit
// for it.
func (w *world) nothingWaitsFor(s *consumer) {
	if len(s.out) >= s.window || s.untaken >= s.bound || s.isQuiet(w.nowMs) {
		return
	}
	for shard := range w.shape.shards {
		for _, command := range allCommands {
			t := w.model.head(shard, s.Tenant, command)
			if t != nil && s.takes(shard, command) && !w.model.settings.of(t).Paused && !w.model.isFull(t, w.nowMs) {
				violate("no ready task sits beside an open session with credit",
					"task %v of shard %d; session %v has %d of %d and %d bytes untaken",
					t.id, shard, s.ID, len(s.out), s.window, s.untaken)
			}
		}
	}
}

// nothingIsLate says that nothing whose time has come is left.
func (w *world) nothingIsLate() {
	for _, t := range w.model.all {
		w.leavesInTime(t)
		if t.waits() && t.isPast(w.nowMs) {
			violate("what is due happens", "task %v expired at %d, it is %d", t.id, t.expiresMs, w.nowMs)
		}
		switch t.place {
		case wire.LocationDelayed:
			if t.dueMs <= w.nowMs {
				violate("what is due happens", "task %v was due at %d, it is %d", t.id, t.dueMs, w.nowMs)
			}
		case wire.LocationInProgress:
			w.reportIsOnDisk(t)
			if t.lapseMs <= w.nowMs && !t.restored && !w.model.shards[t.shard].holds(t, w.nowMs) {
				violate("what is due happens", "the lease of task %v ended at %d, it is %d", t.id, t.lapseMs, w.nowMs)
			}
			// A lease may be longer after a restart, a run is not.
			if state := &w.model.shards[t.shard]; t.runMs != 0 && t.runMs <= w.nowMs && (w.nowMs >= state.holdMs || t.runMs <= state.heardMs) {
				violate("what is due happens", "the run of task %v ended at %d, it is %d", t.id, t.runMs, w.nowMs)
			}
		}
	}
}

// read reads a task as an HTTP client does, but for the wait.
func (w *world) read(t *task) *wire.Task {
	seen, err := w.server.store.ReadTask(t.tenant, t.id)
	if err != nil {
		violate("a task can be read", "%v: %v", t.id, err)
	}
	return seen
}

// compare holds one task in the store against the model.
func (w *world) compare(t *task) {
	seen := w.read(t)
	if t.removed {
		if seen != nil {
			violate("what is removed is gone", "task %v", t.id)
		}
		return
	}
	if seen == nil {
		if _, acknowledged := w.ledger.tasks[t.id]; acknowledged {
			violate("no acknowledged task is lost", "%v", t.id)
		}
		violate("the store says what happened", "task %v is not there", t.id)
	}
	if diff := t.differs(seen); diff != "" {
		violate("the store says what happened", "%s", diff)
	}
	t.checkHands(seen.History)
	t.checkCallbacks(seen)
	t.checkReport(seen, false)
	t.isGiven(seen.TraceParent, seen.TraceState, t.trace)
	if seen.Labels != labelsOf(seen.Payload) || seen.ConcurrencyKey != t.shares {
		violate("the store says what happened", "task %v has the labels %q and the key %q", t.id, seen.Labels, seen.ConcurrencyKey)
	}
	if t.place == wire.LocationDelayed && seen.VisibleAtMs != t.dueMs {
		violate("the store says what happened", "task %v is due at %d, the store says %d", t.id, t.dueMs, seen.VisibleAtMs)
	}
	if t.open() {
		return
	}
	_, record, err := w.server.store.ReadResult(t.tenant, t.id)
	if err != nil || !sameResult(record, t.result) {
		violate("one completion stands", "task %v ended as %+v, the store says %+v, %v", t.id, t.result, record, err)
	}
	w.filesAreThere(t)
}

// readSome reads a few tasks as a client does, durable before it is told.
func (w *world) readSome() {
	if len(w.model.all) == 0 {
		return
	}
	for range 4 {
		t := pick(w.chance, w.model.all)
		if seen, err := w.server.store.ReadTask("green", t.id); err != nil || seen != nil {
			violate("no task of another tenant", "%v: %v", seen, err)
		}
		w.compare(t)
		w.sync()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := w.server.store.WaitDurable(ended, t.shard); err != nil {
			violate("a read after a sync need not wait", "%v", err)
		}
	}
}

// compareAll holds every open task in the store, some of the ended ones, and
// everything a client was ever told, against the model.
func (w *world) compareAll(everyNth int) {
	for i, t := range w.model.all {
		if t.open() || i%everyNth == w.crashes%everyNth {
			w.compare(t)
		}
	}
	for _, id := range w.ledger.order {
		t := w.model.tasks[id]
		if t == nil {
			violate("no acknowledged task is lost", "%v", id)
		}
		told, ended := w.ledger.outcomes[id]
		ended = ended && (told.status != wire.StatusFailed || t.replays == 0)
		// Who cancels what has expired is not told why it ended.
		saysMore := ended && told.status != wire.StatusCancelled && string(t.result.Result)+t.result.Error != told.text
		if ended && t.status != told.status || saysMore {
			violate("one completion stands", "task %v was acknowledged as %+v and is %+v", id, told, t.result)
		}
	}
	w.compareFigures()
	w.compareLabels()
	w.compareSettings()
}

// compareFigures counts.
func (w *world) compareFigures() {
	for _, tenant := range tenants {
		want := map[string][5]int64{}
		dead := map[string][wire.DeadKinds]int64{}
		for _, t := range w.model.all {
			if t.tenant != tenant {
				continue
			}
			figures := want[t.command]
			switch t.place {
			case wire.LocationPending:
				figures[0]++
			case wire.LocationDelayed:
				figures[1]++
			case wire.LocationLimited:
				figures[4]++
			case wire.LocationInProgress:
				figures[2]++
			case wire.LocationDead:
				figures[3]++
				by := dead[t.command]
				by[t.cause]++
				dead[t.command] = by
			}
			want[t.command] = figures
		}
		queues, err := w.server.store.ReadQueues(tenant)
		if err != nil {
			violate("figures can be read", "%v", err)
		}
		got := map[string][5]int64{}
		for _, q := range queues {
			got[q.Command] = [5]int64{q.Ready, q.Delayed, q.InProgress, q.Dead, q.Limited}
			if q.DeadBy != dead[q.Command] {
				violate("dead letters are counted by cause", "queue %s of %s: want %v, got %v", q.Command, tenant, dead[q.Command], q.DeadBy)
			}
		}
		for _, command := range allCommands {
			if want[command] != got[command] {
				violate("figures add up", "queue %s of %s: want %v, got %v (ready, delayed, in progress, dead, limited)",
					command, tenant, want[command], got[command])
			}
			w.compareDead(record.QueueKey{Command: command, Tenant: tenant})
		}
	}
}

// compareDead lists the letters of each cause: every task that ended FAILED is
// among those of its cause, once.
func (w *world) compareDead(q record.QueueKey) {
	for cause := wire.DeadExhausted; cause < wire.DeadKinds; cause++ {
		page, err := w.server.store.Find(&store.ListQuery{
			Queue: q, State: store.ListDead, UntilMs: math.MaxInt64, Filter: store.ListFilter{Causes: wire.OnlyDead(cause)}, Limit: 1 << 20, MostRead: 1 << 20,
		})
		if err != nil {
			violate("figures can be read", "%v", err)
		}
		found := make(map[wire.TaskID]bool)
		for _, k := range page.Found {
			found[k.ID] = true
		}
		want := 0
		for _, t := range w.model.all {
			if t.removed || t.queue() != q || t.status != wire.StatusFailed || t.cause != cause {
				continue
			}
			if want++; !found[t.id] {
				violate("every failed task is a dead letter once", "task %v of %v is not among those that are %v", t.id, q, cause)
			}
		}
		if len(page.Found) != want {
			violate("every failed task is a dead letter once", "%v has %d that are %v, want %d", q, len(page.Found), cause, want)
		}
	}
}

// drain brings everything to its end: the disk has space, the network works,
// and workers finish what they get.
func (w *world) drain() {
	w.trace.say("the end: drain")
	w.chance.begin(1 << 40)
	w.setFree(diskBytes)
	for _, c := range w.claims {
		c.left = true
	}
	for _, cl := range w.clients {
		if cl.conn != nil {
			cl.drop(false)
		}
		cl.honest = true
		cl.allowed = nil
	}
	w.resumeAll()
	w.freeTenants()
	w.openEndpoints()
	// A queue with a limit may take long, but its tasks become fewer.
	turn, most := 0, w.open()
	for open := most; open > 0 || w.deletes(); open = w.open() {
		if turn++; open < most {
			turn, most = 0, open
		}
		if turn > restMost {
			i := slices.IndexFunc(w.model.all, (*task).open)
			violate("everything ends", "%d tasks are still open, such as %+v, a queue is still deleted: %v", open, w.model.all[i], w.deletes())
		}
		w.rest()
		if !w.carryAll() {
			w.leap()
		}
	}
	w.liftLimits()
	w.rest()
	w.creditAddsUp()
}

// carryAll lets every client and every socket do all they can.
func (w *world) carryAll() (moved bool) {
	moved = w.answerAllHooks()
	for _, cl := range w.clients {
		if cl.conn == nil || len(cl.inHand) > 0 {
			cl.act()
			moved = true
		}
		for c := cl.conn; c != nil && len(c.toServer)+len(c.toClient) > 0; c = cl.conn {
			c.stuck = false
			c.read()
			c.work()
			cl.read()
			moved = true
		}
	}
	return moved
}

// leap goes to the next moment at which anything happens by itself.
func (w *world) leap() {
	next := w.nowMs + sleepMostMs
	for _, at := range w.server.wakeAtMs {
		next = min(next, max(at, w.nowMs+1))
	}
	next = w.nextAlarm(next)
	w.nowMs = next
	w.tick()
}

func (w *world) open() (n int) {
	for _, t := range w.model.all {
		if t.open() {
			n++
		}
	}
	return n
}

// creditAddsUp offers every session more tasks than its window and answers none: each
// must get exactly as many as its window. Then it ends all of them.
func (w *world) creditAddsUp() {
	// Much may have been written since the guard of the disk has looked.
	w.tick()
	w.carryAll()
	for _, cl := range w.clients {
		cl.honest = false
		f := &wire.Window{Size: 3}
		cl.most = 3
		f.Ref = cl.expects(f, wire.TaskRef{})
		cl.stops(f.Size, f.Ref)
		cl.say(f)
	}
	w.carryAllQuietly()
	for _, tenant := range w.shape.tenants {
		for n := range 60 {
			r := &request{world: w, body: labelled(wire.EnqueueRequest{
				Command: busy[n%len(busy)], MaxAttempts: 3, Payload: fmt.Appendf(nil, `{"tenant":%q,"last":%d}`, tenant, n),
			})}
			r.post()
			w.settle()
		}
	}
	w.carryAllQuietly()
	for _, cl := range w.clients {
		if len(cl.inHand) != 3 {
			violate("credit adds up", "%s has a window of 3 and got %d of a full queue", cl.name, len(cl.inHand))
		}
		cl.honest = true
	}
	for turn := 0; w.open() > 0; turn++ {
		if turn > restMost {
			violate("everything ends", "%d tasks are still open", w.open())
		}
		w.rest()
		if !w.carryAll() {
			w.leap()
		}
	}
	w.rest()
}

// carryAllQuietly lets messages arrive, and clients only listen.
func (w *world) carryAllQuietly() {
	for range 20 {
		w.rest()
		for _, cl := range w.clients {
			for c := cl.conn; c != nil && len(c.toServer)+len(c.toClient) > 0; c = cl.conn {
				c.read()
				c.work()
				cl.read()
			}
		}
	}
}

// mustBeEmpty is what is left of a world that was drained.
func (w *world) mustBeEmpty() {
	for _, tenant := range tenants {
		queues, err := w.server.store.ReadQueues(tenant)
		if err != nil {
			violate("figures can be read", "%v", err)
		}
		for _, q := range queues {
			if q.Ready+q.Delayed+q.InProgress != 0 {
				violate("all gauges return to zero", "%+v", q)
			}
		}
	}
	for shard := range w.shape.shards {
		if f := w.server.engine.MailboxFigures(shard); f.Depth+f.DepthBytes != 0 {
			violate("all gauges return to zero", "mailbox of shard %d: %+v", shard, f)
		}
	}
	w.compareAll(1)
	w.everyCallbackCame()
	w.noFileIsLeft()
	w.checkStore()
}
