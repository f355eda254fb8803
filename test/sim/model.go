package sim

import (
	"cmp"
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// The model is the queue as its promises describe it, in slices and maps, with
// no index, no lease table, no overlay and no bytes. It shares no code with
// what it judges: it is shown every round, with the messages, the time and the
// space that went in, and says for each event and effect that came out whether
// that may be.
type model struct {
	tasks map[wire.TaskID]*task
	// all is every task in the order of its first sight, so that nothing ranges
	// over a map.
	all     []*task
	pending map[orderName][]*task
	// leased are the tasks in progress of each shard, in no order that counts.
	leased [][]*task
	keys   map[keyName]*task
	// parentOf are the callbacks by their names and endpoints.
	parentOf  map[string]*task
	consumers map[*shard.Consumer]*consumer
	// sockets is, for each shard, the socket it knows of each session.
	sockets []map[wire.SessionID]*consumer
	waiters map[wire.TaskID][]shard.Asker
	// claims are, for each shard, those that asked once and wait for the answer.
	claims [][]claimant
	// explains are the questions of the round.
	explains []*shard.Explain
	tokens   map[wire.Token]bool
	// answered are the deliveries that a worker of theirs has ended by a word.
	answered map[wire.Token]bool
	shards   []shardState
	order    uint64
	// settings are those of the shards, durable what is left of them by a crash.
	settings, durableSettings settings
	retention                 shard.Retention
	// traced: the server traces.
	traced bool
	limits shard.Limits
	// stampMs is the time of the newest round that wrote, durableMs of the newest
	// that is durable.
	stampMs, durableMs int64
	frozen             frozen
	// turns are those of the tenants and queues of each shard; see shape.turnsShow.
	turns     []turns
	turnsShow bool
	// tenants is how many there are.
	tenants int
	// cleanings are the cleanups that each shard was asked for, in order.
	cleanings [][]*cleaning
	// drops are the questions whether a deleted queue is empty, of each shard.
	drops [][]*shard.Drop
	// queues are, for each shard, the queues by their numbers in events.
	queues []map[uint32]record.QueueKey
	// told are the versions of the settings that were answered, those of the ledger.
	told map[record.QueueKey]int64
	// waited are the concurrency keys for which tasks have waited since the last rest,
	// shareStarts their starts, and sharesSinceMs when a rate of theirs began last.
	waited        map[shareName]bool
	shareStarts   map[shareName]*starts
	sharesSinceMs int64
	// starts are those of each queue under its rate.
	starts map[record.QueueKey]*starts

	// named are the named records of tenants, durableNamed what is left of them by a crash,
	// newNamed that they differ; counts is which tenants' waiting tasks each shard counts; doors
	// are those of this life.
	named, durableNamed named
	newNamed            bool
	counts              []map[string]bool
	doors               *doors

	// hand is the person whose request is being judged.
	hand hand
	// undo restores what is not durable yet, see rollback.
	undo []undoLine
	// onWay are the shards whose last round was made, and whose batch is not known to be applied;
	// later is what only the store can tell of that round.
	onWay []bool
	later [][]func()
	// at is the round that is being judged.
	at reading
	// look reads a task from the store, for the times that chance decides. It answers
	// nil for a task that a later step of the same round removed.
	look func(t *task) *wire.Task
}

// task is one task. Its fields are what the lifecycle speaks of.
type task struct {
	id              wire.TaskID
	shard           int
	shares          string
	tenant, command string
	key             string
	payload         string
	// webhook gets its outcome, callbacks are those that do so. calledAs is the name of a
	// callback, which all its attempts have, endpoint where it goes, empty for a webhook.
	webhook            string
	callbacks          []wire.TaskID
	calledAs, endpoint string
	// trace is the trace context that it was posted with.
	trace shard.Trace
	// prio is its priority, posted the one that it was posted with.
	prio, posted int
	maxAttempts  int
	// expiresMs is when it expires, timeoutMs how long a delivery may run; 0 is never,
	// and as its queue says.
	expiresMs, timeoutMs int64

	place wire.Location
	// order is its place among pending tasks: kept by a put-back, new at the
	// tail.
	order    uint64
	dueMs    int64
	attempts int
	// postedMs is when it was enqueued, sinceMs when it came where it is.
	postedMs, sinceMs int64
	// aside: it is a suspect whose turn had come when nobody could have it alone.
	aside bool
	// deliveries never go down, losses and releases by a replay alone; undelivered
	// counts in a row.
	deliveries, losses, releases, undelivered int
	// replays are how often its end was taken back, tookBack the token of the last
	// result that was.
	replays  int
	tookBack wire.Token

	// The newest delivery, from its grant on. ended says that the worker itself
	// ended it.
	token    wire.Token
	subject  string
	worker   string
	overHTTP bool
	session  wire.SessionID
	ended    bool
	leaseMs  int64
	ackedMs  int64
	lapseMs  int64
	// runForMs is how long it may run, runMs until when, 0 before it has begun.
	grantedMs, runForMs, runMs int64

	confirmed bool
	gone      bool
	// restored leases may run longer than was promised, never shorter.
	restored bool

	status wire.Status
	// cause is that of a dead letter.
	cause       wire.DeadCause
	reason      string
	result      *wire.ResultRecord
	resultToken wire.Token

	// hands are the people who moved it.
	hands []hand

	// said are the reports of the delivery in progress of which each may be the newest on disk,
	// before is what earlier deliveries have said.
	said   []said
	before said
	// begun counts the files that were begun for it, listed are those of the newest delivery that
	// a result may name.
	begun  int
	listed []wire.Artifact

	// removed says that its time was over and nothing of it is kept.
	removed bool

	isUndone bool
	isNew    bool
}

type orderName struct {
	shard           int
	tenant, command string
	prio            int
}

type keyName struct{ tenant, command, key string }

// shardState is what is known of one shard beside its tasks.
type shardState struct {
	events        uint64
	durableEvents uint64
	// nextMs is when the shard wanted to run again, wasFull that its last round had
	// room for deletions only, holdMs until when it may let no lease lapse, because it
	// came too late or had refused what clients said. What ended by heardMs has been held
	// before.
	nextMs  int64
	wasFull bool
	// lastMs is the time of its newest round, rounds how many it has had.
	lastMs  int64
	rounds  int
	holdMs  int64
	heardMs int64
}

// holds says that the lease of a task must not lapse though its time is over.
func (s *shardState) holds(t *task, nowMs int64) bool {
	return nowMs < s.holdMs && t.lapseMs > s.heardMs
}

type undoLine struct {
	t   *task
	was task
}

func newModel(shards int) *model {
	m := &model{
		tasks:       make(map[wire.TaskID]*task),
		waited:      make(map[shareName]bool),
		shareStarts: make(map[shareName]*starts),
		pending:     make(map[orderName][]*task),
		keys:        make(map[keyName]*task),
		parentOf:    make(map[string]*task),
		consumers:   make(map[*shard.Consumer]*consumer),
		sockets:     make([]map[wire.SessionID]*consumer, shards),
		waiters:     make(map[wire.TaskID][]shard.Asker),
		tokens:      make(map[wire.Token]bool),
		answered:    make(map[wire.Token]bool),
		starts:      make(map[record.QueueKey]*starts),
		leased:      make([][]*task, shards),
		claims:      make([][]claimant, shards),
		shards:      make([]shardState, shards),
		cleanings:   make([][]*cleaning, shards),
		drops:       make([][]*shard.Drop, shards),
		queues:      make([]map[uint32]record.QueueKey, shards),
		settings:    newSettings(shards), durableSettings: newSettings(shards),
		frozen: newFrozen(shards), turns: newTurns(shards),
		named: newNamed(shards), durableNamed: newNamed(shards), counts: make([]map[string]bool, shards),
		onWay: make([]bool, shards), later: make([][]func(), shards),
	}
	for shard := range m.counts {
		m.counts[shard] = make(map[string]bool)
	}
	m.forgetSockets()
	return m
}

func (m *model) forgetSockets() {
	clear(m.consumers)
	for shard := range m.sockets {
		m.sockets[shard] = make(map[wire.SessionID]*consumer)
		m.claims[shard] = nil
	}
}

func (t *task) ordered() orderName {
	return orderName{t.shard, t.tenant, t.command, t.prio}
}

func (t *task) open() bool { return !t.status.Terminal() }

// touch must be called before a task changes.
func (m *model) touch(t *task) {
	if !t.isUndone {
		t.isUndone = true
		m.undo = append(m.undo, undoLine{t, *t})
	}
}

// add makes a task known.
func (m *model) add(t *task) {
	if m.tasks[t.id] != nil {
		violate("a task id is drawn once", "task %v exists", t.id)
	}
	t.isNew, t.isUndone = true, true
	m.tasks[t.id] = t
	m.all = append(m.all, t)
	m.undo = append(m.undo, undoLine{t: t})
	if t.key != "" {
		m.keys[keyName{t.tenant, t.command, t.key}] = t
	}
}

// durable says that everything so far is on the disk, but for rounds that are on their way.
func (m *model) durable() {
	left := m.undo[:0]
	for _, u := range m.undo {
		if m.onWay[u.t.shard] {
			left = append(left, u)
			continue
		}
		u.t.isUndone, u.t.isNew = false, false
	}
	clear(m.undo[len(left):])
	m.undo = left
	for i := range m.shards {
		if m.onWay[i] {
			continue
		}
		m.durableSettings.copyFrom(m.settings, i)
		if m.newNamed {
			m.durableNamed.copyFrom(m.named, i)
		}
		m.shards[i].durableEvents = m.shards[i].events
	}
	m.newNamed = m.newNamed && slices.Contains(m.onWay, true)
	m.durableMs = m.stampMs
}

// isMade judges a round when it is made: what the shards share they take then, in the order in
// which their rounds are made.
func (m *model) isMade(o *shardactor.Observed) {
	m.onWay[o.Shard] = true
	m.round(o)
}

// isApplied says that the batch of the last round of a shard is applied.
func (m *model) isApplied(shardNo int) {
	m.onWay[shardNo] = false
	for _, look := range m.later[shardNo] {
		look()
	}
	m.later[shardNo] = m.later[shardNo][:0]
}

// rollback forgets everything since durable, as a power cut does.
func (m *model) rollback() {
	for _, u := range m.undo {
		if u.t.isNew {
			delete(m.tasks, u.t.id)
			if name := (keyName{u.t.tenant, u.t.command, u.t.key}); m.keys[name] == u.t {
				delete(m.keys, name)
			}
			continue
		}
		*u.t = u.was
		u.t.isUndone = false
	}
	m.undo = m.undo[:0]
	m.stampMs = m.durableMs
	for i := range m.shards {
		m.settings.copyFrom(m.durableSettings, i)
		m.named.copyFrom(m.durableNamed, i)
		m.shards[i].events, m.onWay[i], m.later[i] = m.shards[i].durableEvents, false, nil
	}
	m.all = slices.DeleteFunc(m.all, func(t *task) bool { return t.isNew })
	for _, t := range m.all {
		if t.key != "" && !t.removed {
			m.keys[keyName{t.tenant, t.command, t.key}] = t
		}
	}
	clear(m.pending)
	for shard := range m.leased {
		m.leased[shard] = m.leased[shard][:0]
	}
	for _, t := range m.all {
		if t.place == wire.LocationInProgress {
			m.leased[t.shard] = append(m.leased[t.shard], t)
		}
		if t.place == wire.LocationPending {
			m.pending[t.ordered()] = append(m.pending[t.ordered()], t)
		}
	}
	for name := range m.pending {
		slices.SortFunc(m.pending[name], func(a, b *task) int { return cmp.Compare(a.order, b.order) })
	}
}

// restart begins anew over what is on the disk: sessions are gone, and their
// deliveries count as confirmed and have the grace to be carried on. At a takeover all of it.
func (m *model) restart(nowMs int64, takeover bool) {
	m.forgetSockets()
	clear(m.waiters)
	m.settings.spread()
	m.namedBegin()
	m.ratesBegin(nowMs)
	m.sharesSinceMs = nowMs
	clear(m.shareStarts) // the clock may be set back, and the rates begin anew
	m.frozen, m.turns = newFrozen(len(m.shards)), newTurns(len(m.shards))
	clear(m.cleanings)
	clear(m.drops)
	clear(m.queues)
	for i := range m.shards {
		m.shards[i].nextMs, m.shards[i].holdMs, m.shards[i].heardMs = 0, 0, 0
		m.shards[i].wasFull = false
	}
	for _, t := range m.all {
		// Which suspects stood aside is not stored: they wait for their time.
		t.aside = false
	}
	for _, tasks := range m.leased {
		for _, t := range tasks {
			m.findReport(t)
			t.confirmed, t.gone, t.restored, t.undelivered = true, true, true, 0
			t.lapseMs = min(t.ackedMs, nowMs+graceMs)
			if takeover {
				t.lapseMs = nowMs + graceMs
			}
			if t.session.IsZero() {
				// No socket of it can have ended.
				t.gone, t.lapseMs = false, max(t.ackedMs, nowMs+graceMs)
			}
			if t.runMs = 0; t.runForMs > 0 {
				t.runMs = max(t.grantedMs+t.runForMs, nowMs+graceMs)
				t.lapseMs = t.until(t.lapseMs)
			}
		}
	}
}

// leave takes a task out of where it is.
func (m *model) leave(t *task) {
	m.touch(t)
	if t.place == wire.LocationInProgress {
		tasks := m.leased[t.shard]
		i := slices.Index(tasks, t)
		m.leased[t.shard] = slices.Delete(tasks, i, i+1)
		t.before, t.said = t.saidLast(), nil
		if t.ended {
			t.listed = nil
		}
	}
	if t.place != wire.LocationPending {
		return
	}
	name := t.ordered()
	tasks := m.pending[name]
	if tasks[0] == t {
		m.pending[name] = tasks[1:]
		return
	}
	i, _ := slices.BinarySearchFunc(tasks, t.order, func(a *task, order uint64) int { return cmp.Compare(a.order, order) })
	m.pending[name] = slices.Delete(tasks, i, i+1)
}

// toTail makes a task the last pending one of its priority.
func (m *model) toTail(t *task) {
	m.leave(t)
	m.order++
	t.order = m.order
	t.place, t.status = m.readyPlace(t), wire.StatusPending
	if t.place == wire.LocationPending {
		m.pending[t.ordered()] = append(m.pending[t.ordered()], t)
	}
}

// toOldPlace puts a task back where it was taken from.
func (m *model) toOldPlace(t *task) {
	m.leave(t)
	if t.status = wire.StatusPending; t.place != "" {
		t.place = m.readyPlace(t)
	}
	if t.place != wire.LocationLimited {
		m.putAt(t)
	}
}

// putAt puts a task among the ready ones by its order.
func (m *model) putAt(t *task) {
	t.place = wire.LocationPending
	tasks := m.pending[t.ordered()]
	i, _ := slices.BinarySearchFunc(tasks, t.order, func(a *task, order uint64) int { return cmp.Compare(a.order, order) })
	m.pending[t.ordered()] = slices.Insert(tasks, i, t)
}

func (m *model) toDelayed(t *task, dueMs int64) {
	m.leave(t)
	t.place, t.status, t.dueMs = wire.LocationDelayed, wire.StatusPending, dueMs
}

// head is the task of a queue that must be handed out next, nil if none waits.
func (m *model) head(shard int, tenant, command string) *task {
	for prio := wire.MaxPriority; prio >= 0; prio-- {
		if tasks := m.pending[orderName{shard, tenant, command, prio}]; len(tasks) > 0 {
			return tasks[0]
		}
	}
	return nil
}

// end puts a task at rest for good.
func (m *model) end(t *task, r *wire.ResultRecord) {
	m.leave(t)
	t.status, t.result, t.listed = r.Status, r, nil
}
