package sim

import (
	"fmt"
	"slices"

	"codeq/index"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// needed is how many kinds of steps no world can be without.
const needed = 4

// quiet is a queue that often has no task, so that its order may change.
const quiet = "d"

// epochMs is when every world begins: 2026-01-01 UTC.
const epochMs = 1_767_225_600_000

var (
	tenants  = []string{"blue", "red", "gold", "grey"}
	commands = []string{"a", "b", "c", quiet}
	// busy are those that most tasks are posted to.
	busy     = []string{"a", "b", "c"}
	subjects = []string{"s1", "s2"}
)

// shape is what a seed decides about a whole world.
type shape struct {
	// tenants are those that the world has, two but in worlds of unequal backlogs
	// and in crowded ones.
	tenants  []string
	shards   int
	workers  int
	index    index.Limits
	mailbox  mailbox.Limits
	padBytes int
	limits   shard.Limits
	// retention is how long ended tasks stay.
	retention shard.Retention
	// big worlds have payloads that fill the bytes a session may have untaken.
	// Pebble decides itself there when tables are written, so nothing crashes.
	big bool
	// setBack worlds have a wall clock that may be behind after a crash.
	setBack bool
	// handsBack worlds have workers that hand back more than they finish, and once
	// for each attempt at most.
	handsBack bool
	// spread worlds have busy queues that are spread from the beginning.
	spread bool
	// hooks: some tasks have a webhook; endpoints: tenants have endpoints.
	hooks, endpoints bool
	// files: workers upload files; notices: subscribers are told of work.
	files, notices bool
	// traced: the server traces.
	traced bool
	// hasLimits: queues have limits of what is in progress and of starts.
	hasLimits bool
	// shares: tasks have concurrency keys, and queues limits for them.
	shares bool
	// nodes: three nodes are a cluster.
	nodes bool
	// guards: tenants have limits.
	guards bool
	// operations are the kinds of steps, with how often each happens; total is
	// the sum of that.
	operations []operation
	total      int
}

// world is one run: everything that exists in it.
type world struct {
	shape  shape
	chance *chance
	trace  trace
	model  *model
	ledger *ledger
	server *server
	// cluster is the log between three nodes, nil in a world of a server alone.
	cluster *cluster
	clients []*client
	conns   []*conn
	// audience are the clients that watch.
	audience *audience
	// hooks are the callbacks of this life, nil in a world without webhooks.
	hooks *hooks
	// doors are the limits of tenants in this life, holds the named records that every shard has.
	doors *doors
	holds map[record.NamedKey]record.Named
	// newest is the newest socket of each session that the server knows.
	newest map[wire.SessionID]*conn
	// replaced are sockets whose session has a newer one, and that go on.
	replaced []*conn
	requests []*request
	files    files
	notices  *notices
	claims   []*claim
	errands  []errand
	unknown  []*request
	// overheard are tokens that were seen lately, for whoever misuses them.
	overheard []wire.TaskRef
	names     map[wire.TaskID]int

	nowMs     int64
	freeBytes int64
	lives     int
	connected int
	// backMs is how far the wall clock is behind at the next start.
	backMs int64
	drawn  int

	rounds, syncs, crashes int
	// flies: shards may wait for the cluster while others run. together counts the rounds that were
	// made while others were on their way, by what became of them.
	flies    bool
	together [fates]int
}

// operation is one kind of step.
type operation struct {
	name   string
	weight int
	do     func(w *world)
	// endsLife: the process may end, or the disk fill.
	endsLife bool
}

// everyOperation lists the kinds of steps, the ones that no world can be without
// first.
func everyOperation() []operation {
	return []operation{
		{name: "run", weight: 400, do: (*world).runSome},
		{name: "sync", weight: 80, do: (*world).syncSome},
		{name: "client", weight: 260, do: (*world).clientActs},
		{name: "network", weight: 300, do: (*world).carry},
		{name: "http", weight: 90, do: (*world).enqueueOverHTTP},
		{name: "replay", weight: 20, do: (*world).replaySome},
		{name: "explain", weight: 25, do: (*world).explainSome},
		{name: "purge", weight: 15, do: (*world).purgeSome},
		{name: "report", weight: 20, do: (*world).reportOverHTTP},
		{name: "configure", weight: 12, do: (*world).configureSome},
		{name: "order", weight: 12, do: (*world).orderSome},
		{name: "cleanup", weight: 4, do: (*world).cleanSome},
		{name: "cancel", weight: 20, do: (*world).cancelSome},
		{name: "manage", weight: 15, do: (*world).manageSome},
		{name: "delete", weight: 4, do: (*world).deleteSome},
		{name: "claim", weight: 40, do: (*world).claimSome},
		{name: "answer", weight: 60, do: (*world).answerSome},
		{name: "time", weight: 60, do: (*world).timePasses},
		{name: "stall", weight: 1, do: (*world).stall},
		{name: "drop", weight: 6, do: (*world).dropSome},
		{name: "stick", weight: 6, do: (*world).stickSome},
		{name: "return", weight: 10, do: (*world).returnSome},
		{name: "leave", weight: 12, do: (*world).leaveSome},
		{name: "repeat", weight: 8, do: (*world).repeatSome},
		{name: "break", weight: 6, do: (*world).breakSome},
		{name: "rest", weight: 15, do: (*world).rest},
		{name: "read", weight: 15, do: (*world).readSome},
		{name: "space", weight: 3, do: (*world).spaceChanges, endsLife: true},
		{name: "flush", weight: 3, do: (*world).flush},
		{name: "fault", weight: 3, do: (*world).faults, endsLife: true},
		{name: "crash", weight: 1, do: (*world).powerCut, endsLife: true},
	}
}

func shapeOf(seed uint64) shape {
	c := newChance(seed)
	c.begin(-1)
	s := shape{
		tenants: tenants[:2],
		shards:  1 + c.IntN(4), workers: 2 + c.IntN(5), mailbox: roomy,
		index:    pick(c, []index.Limits{{Run: 2, Refill: 1, AdvanceAfter: 1}, {Run: 4, Refill: 2, AdvanceAfter: 3}, {Run: 16, Refill: 4}, {}}),
		padBytes: pick(c, []int{1, 200, 200, 2000}),
	}
	if c.oneIn(3) {
		s.mailbox = mailbox.Limits{Messages: 12, Bytes: 24 << 10, NewPerDrain: 2}
	}
	if c.oneIn(16) {
		s.big, s.padBytes, s.mailbox = true, 90_000, roomy
	}
	s.retention = shard.Retention{
		DoneForMs: pick(c, []int64{0, 60_000, 3600_000}), DeadForMs: pick(c, []int64{0, 90_000, 3600_000}),
	}
	s.spread = c.oneIn(2)
	s.operations = everyOperation()
	for i := range s.operations {
		// Some worlds never do one thing or do it all the time: what hides behind
		// an average shows there.
		o := &s.operations[i]
		o.weight *= 4
		switch {
		case s.big && o.endsLife:
			o.weight = 0
		case i < needed:
		case c.oneIn(5):
			o.weight = 0
		case c.oneIn(5):
			o.weight *= 3
		}
		s.total += o.weight
	}
	// What is drawn from here on leaves the rest of a seed's world as it was.
	s.limits = shard.DefaultLimits
	if !s.big && c.oneIn(2) {
		s.limits = smallLimits(c)
		if s.handsBack = c.oneIn(2); s.handsBack {
			s.limits.Releases = 1
		}
	}
	s.setBack = c.oneIn(2)
	if !s.big && c.oneIn(4) {
		s.uneven(c)
	}
	if s.limits.Failed = pick(c, []int{1, 2, 5, 40, shard.DefaultLimits.Failed}); s.big {
		s.limits.Failed = shard.DefaultLimits.Failed
	}
	if !s.big && c.oneIn(10) {
		s.crowded()
	}
	if !s.big && c.oneIn(3) {
		s.limited()
	}
	if !s.big && c.oneIn(4) {
		s.sharing(c)
	}
	s.hooks = !s.big && !s.turnsShow() && c.oneIn(6)
	if !s.big && c.oneIn(4) {
		s.guarded()
	}
	s.grows(c)
	return s
}

// grows adds what worlds of earlier seeds did not have.
func (s *shape) grows(c *chance) {
	if !s.big && !s.turnsShow() && c.oneIn(4) {
		s.hooks = true
		s.calling(c)
	}
	if !s.big && c.oneIn(4) {
		s.adds(operation{name: "progress", weight: 120, do: (*world).progressSome})
	}
	if s.files = !s.big && c.oneIn(4); s.files {
		s.adds(operation{name: "upload", weight: 160, do: (*world).uploadSome})
	}
	if !s.big && c.oneIn(4) {
		s.subscribing()
	}
	s.traced = c.oneIn(2)
	if s.nodes = !s.big && c.oneIn(4); s.nodes {
		s.clustered()
	}
}

// smallLimits are bounds that a world comes to: what lies behind the usual ones
// shows in a subscribers alone.
func smallLimits(c *chance) shard.Limits {
	l := shard.DefaultLimits
	for _, bound := range []*int{&l.Messages, &l.Due, &l.Grants, &l.Refills, &l.Watermarks, &l.Removals, &l.Cleanups, &l.Compared, &l.ReusedInRow, &l.Releases} {
		*bound = pick(c, []int{1, 2, 3, *bound})
	}
	for _, bytes := range []*int{&l.BatchBytes, &l.Refilled} {
		*bytes = pick(c, []int{1, 200, 1000, *bytes})
	}
	l.UntakenBytes = pick(c, []int{1, 100, 1000, l.UntakenBytes})
	return l
}

func newWorld(seed uint64, recording bool) *world {
	w := &world{
		shape: shapeOf(seed), chance: newChance(seed), ledger: newLedger(), nowMs: epochMs, freeBytes: diskBytes,
		files: files{listed: make(map[wire.TaskRef][]string)}, names: make(map[wire.TaskID]int), newest: make(map[wire.SessionID]*conn),
	}
	w.trace.recording = recording
	w.model = newModel(w.shape.shards)
	w.model.retention, w.model.limits, w.model.tenants = w.shape.retention, w.shape.limits, len(w.shape.tenants)
	w.model.traced = w.shape.traced
	w.model.turnsShow, w.model.told = w.shape.turnsShow(), w.ledger.settings
	w.model.look = func(t *task) *wire.Task { return w.read(t) }
	for i := range w.shape.workers {
		w.clients = append(w.clients, w.newClient(fmt.Sprintf("worker%d", i), false))
	}
	for i := range 2 {
		w.clients = append(w.clients, w.newClient(fmt.Sprintf("producer%d", i), true))
	}
	w.audience = newAudience(w, seed)
	w.chance.begin(-2)
	if w.shape.nodes {
		w.found()
	} else {
		w.boot(w.newDisk())
	}
	w.startHooks()
	if w.shape.spread {
		for _, tenant := range w.shape.tenants {
			for _, command := range busy[:2] {
				w.configure(record.QueueKey{Command: command, Tenant: tenant}, shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true}})
			}
		}
		w.settle()
	}
	return w
}

func (w *world) newClient(name string, produces bool) *client {
	n := len(w.clients)
	cl := &client{
		world: w, name: name, tenant: w.shape.tenants[n%len(w.shape.tenants)], subject: subjects[n/2%2], produces: produces,
	}
	if n == 3 {
		cl.allowed = busy[:2]
	}
	return cl
}

// step does one step.
func (w *world) step(number int) {
	w.chance.begin(number)
	n := w.chance.IntN(w.shape.total)
	for i, o := range w.shape.operations {
		n -= o.weight
		if n >= 0 {
			continue
		}
		w.trace.word(uint64(i))
		w.trace.say("%d: %s", number, o.name)
		o.do(w)
		w.answerSomeHooks()
		w.tidy()
		w.tellSome()
		w.server.events.check()
		w.tickSome()
		w.audience.step(number)
		return
	}
}

// runSome runs shards that are awake, one or all.
func (w *world) runSome() {
	if w.cluster != nil && w.chance.oneIn(2) {
		w.fly()
		w.land(w.run)
		return
	}
	first, all := w.chance.IntN(w.shape.shards), w.chance.oneIn(2)
	for i := range w.shape.shards {
		shard := (first + i) % w.shape.shards
		if !w.mustRun(shard) {
			continue
		}
		w.run(shard)
		if !all {
			return
		}
	}
}

func (w *world) syncSome() {
	switch w.chance.IntN(6) {
	case 0, 1:
		w.syncOnly()
	case 2:
		w.syncOnly()
		w.letOutSome()
	default:
		w.sync()
	}
}

func (w *world) clientActs() { pick(w.chance, w.clients).act() }

// carry moves a few messages over one socket, in both directions.
func (w *world) carry() {
	if len(w.conns) == 0 {
		w.clientActs()
		return
	}
	cl := pick(w.chance, w.clients)
	c := cl.conn
	if c == nil {
		return
	}
	if w.chance.oneIn(4) {
		w.endReplaced()
	}
	for range 1 + w.chance.IntN(3) {
		c.read()
		c.work()
		cl.read()
	}
}

// timePasses lets a little time go by.
func (w *world) timePasses() {
	w.nowMs += int64(pick(w.chance, []int{1, 5, 30, 100, 100, 300, 900, 2000, 6000, 15_000}))
	w.trace.say("  it is %s", w.clock())
}

// stall is a process that was stopped: hours may go by at once.
func (w *world) stall() {
	w.nowMs += int64(pick(w.chance, []int{20_000, 60_000, 600_000, 2 * 3600_000}))
	w.trace.say("  it is %s", w.clock())
}

func (w *world) dropSome() {
	cl := pick(w.chance, w.clients)
	if cl.conn != nil {
		cl.drop(w.chance.oneIn(3))
	}
}

// stickSome makes a client stop or go on reading.
func (w *world) stickSome() {
	if len(w.conns) == 0 {
		return
	}
	c := pick(w.chance, w.conns)
	c.stuck = !c.stuck && w.chance.oneIn(2)
	c.stuckAtMs = w.nowMs
	w.trace.say("  socket %d is stuck: %v", c.number, c.stuck)
}

// spaceChanges fills the disk or empties it, and lets the guard look.
func (w *world) spaceChanges() {
	if w.cluster != nil {
		w.cluster.diskFills()
		return
	}
	w.setFree(pick(w.chance, spaces))
}

// spaces are how much a disk may have left.
var spaces = []int64{diskBytes, diskBytes, diskBytes, 7 << 18, 3 << 18, 1 << 18}

func (w *world) setFree(bytes int64) {
	if w.shape.big {
		return
	}
	w.freeBytes = bytes
	w.trace.say("  %d KiB are free", bytes>>10)
	if w.cluster == nil {
		w.server.setFree(bytes)
	} else {
		for _, n := range w.cluster.nodes {
			n.setFree(bytes)
		}
	}
	w.tick()
}

// faults are a disk that fails: a log that cannot be synced ends the process,
// a table that cannot be written is written again.
func (w *world) faults() {
	if w.chance.oneIn(2) {
		w.trace.say("  tables fail a few times")
		w.server.failTables.Store(int32(1 + w.chance.IntN(3)))
		w.flush()
		return
	}
	if !w.server.unsynced {
		return
	}
	w.trace.say("  the log cannot be synced")
	w.server.failSyncs.Store(true)
	w.die(w.sync)
}

func (w *world) powerCut() {
	w.crash(w.chance.oneIn(2))
	w.nowMs += int64(pick(w.chance, []int{0, 50, 3000, 20_000}))
	if w.chance.oneIn(2) {
		w.retryUnknown()
	}
}

func (w *world) someCommands() []string {
	some := []string{pick(w.chance, commands)}
	if other := pick(w.chance, commands); other != some[0] {
		some = append(some, other)
	}
	return some
}

func (w *world) overhear(ref wire.TaskRef) {
	if len(w.overheard) == 16 {
		w.overheard = slices.Delete(w.overheard, 0, 1)
	}
	w.overheard = append(w.overheard, ref)
}
