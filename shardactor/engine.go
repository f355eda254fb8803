package shardactor

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"codeq/actor"
	"codeq/index"
	"codeq/internal/limit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// EngineOptions configures an Engine. Store must be open, its Synced options Synced
// and LevelChanged must be the methods of Gates.
type EngineOptions struct {
	Store *store.Store
	// Gates connects the store's callbacks with the engine; the same value's
	// methods were given to store.Open.
	Gates *Gates
	// StartClock is called once with the latest engine time in the store, or of a leader
	// of the cluster before, and returns the engine's clock in Unix milliseconds, which must never run
	// backwards nor start before that time.
	StartClock func(latestMs int64) (nowMs func() int64)
	// Random is the source of ids, tokens and jitter; crypto/rand outside
	// tests.
	Random io.Reader
	Log    zerolog.Logger
	// Fatal ends the process after a failed apply; it must not return.
	Fatal func(error)
	// Mailbox bounds the messages that wait for one shard; zero means the default.
	Mailbox mailbox.Limits
	// Index bounds the memory of the orders; zero means the default.
	Index index.Limits
	// Limits bounds the rounds of a shard; zero means the default.
	Limits shard.Limits
	// Retention is how long ended tasks of queues that set none stay; zero is for
	// ever.
	Retention shard.Retention
	// PublicURL begins the URLs in callbacks; without one they begin with the path.
	PublicURL string
	// TraceParent is that of shard.Config; nil if nobody traces.
	TraceParent func(id wire.TaskID, parent string, delivery int) string
	// Made gets every round before its batch is applied, with the batch before, as Observe gets it
	// after. nil outside a simulation.
	Made func(*Observed)
	// Observe gets every round after its batch is applied and before any of its
	// effects is released, from the goroutine of the shard. It may keep the
	// effects, and must not keep or change the rest. nil outside a simulation.
	Observe func(*Observed)
	// Events gets the events of all shards once they are durable; nil if nobody wants
	// them.
	Events Observer
	// Notes gets the reports of workers about their deliveries as Events gets events, each before
	// the end of its delivery; it must not block. nil if nobody wants them.
	Notes func(shard int, notes []shard.Note)
	// Settings is told the settings that every shard has of a queue: of each queue by NewEngine,
	// later of each that has changed, in order. It must not block. nil if nobody wants them.
	Settings func(q record.QueueKey, now *record.Settings)
	// Heard gets what shards answer to the engine itself; nil outside a simulation.
	Heard func([]shard.Effect)
}

// Observed is one round with its inputs.
type Observed struct {
	Shard    int
	NowMs    int64
	Space    store.Level
	Messages []shard.Message
	// Behind are those for later rounds that were drained with Messages.
	Behind  []shard.Message
	Outcome *shard.Outcome
	// Batch is the number whose sync makes the round durable.
	Batch uint64
	// Unknown is a round of a node that led its cluster no more when its batch was to be
	// committed: the batch may happen, and its effects are dropped. Batch is the one before.
	Unknown bool
}

// DefaultMailbox bounds the messages that wait for one shard, so that an accepted
// one is answered in well under a second, and refuses the rest at once. That holds
// for a burst; maxRoundNew bounds a standing backlog further.
var DefaultMailbox = mailbox.Limits{Messages: 4096, Bytes: 16 << 20}

// maxRoundNew is how much of a backlog may be new work, unless one push brings more:
// an eighth of a round. Where new work stands, a task waits for two such rounds at most,
// and what ends work waits for the rest of one. With twice as much offered as the server
// finishes, an accepted task took 1.1 times (median) and 1.7 times (99th percentile) as
// long as with just that much when this was 256, and 0.6 and 1.0 times as long with 128;
// as many were finished.
const maxRoundNew = 128

// Gates is the gate between syncs and effects. It exists apart from the
// Engine because the store wants its callback before the engine can load.
type Gates struct {
	// loops is set once by NewEngine; the store's guard may call before that.
	loops atomic.Pointer[[]*loop]
}

func (o *Gates) all() []*loop {
	if loops := o.loops.Load(); loops != nil {
		return *loops
	}
	return nil
}

// Synced releases the effects of the shard's batches up to upTo. The store calls it
// from the goroutine that ran the barrier.
func (o *Gates) Synced(shard int, upTo uint64) {
	if loops := o.all(); shard < len(loops) {
		loops[shard].gate.release(upTo)
	}
}

// SpaceChanged wakes every shard after the store's disk guard changed its
// level. The store calls it from the guard's goroutine.
func (o *Gates) SpaceChanged(store.Level) {
	for _, l := range o.all() {
		l.box.PushSlot(&l.space, &shard.SpaceChanged{}, nil)
	}
}

// Engine runs all shards: one actor each, one router for all. Its methods may
// be called from any goroutine after NewEngine returned.
type Engine struct {
	store   *store.Store
	nowMs   func() int64
	router  *router
	loops   []*loop
	actors  []*actor.Actor
	figures *figures
	// retention is the default of queues that set none.
	retention shard.Retention
	// mostUntaken is Limits.UntakenBytes.
	mostUntaken int
	deletions   deletions
	named       named
	limits      limit.Table
	limiters    limiters
	heard       func([]shard.Effect)
	// settings is EngineOptions.Settings.
	settings func(q record.QueueKey, now *record.Settings)
	// epochs counts the consumers.
	epochs atomic.Uint64
}

// NewEngine loads every shard and prepares its actor. Nothing runs before
// Start.
func NewEngine(o EngineOptions) (*Engine, error) {
	shards := o.Store.Shards()
	recovered := make([]*store.Recovered, shards)
	latestMs, takeover := o.Store.Takeover()
	for shardNo := range shards {
		r, err := o.Store.Span(shardNo).Load()
		if err != nil {
			return nil, fmt.Errorf("load shard %d: %w", shardNo, err)
		}
		recovered[shardNo] = r
		latestMs = max(latestMs, r.Marks.TimeMs)
	}
	copyNewest(recovered)
	truth := copyNamed(recovered)
	limits := o.Mailbox
	if limits.Messages == 0 {
		limits = DefaultMailbox
	}
	// One drain is one round. So a message that ends work waits for at most
	// maxRoundNew new work, and a new task in a standing backlog for one more such
	// round.
	limits.NewPerDrain = cmp.Or(limits.NewPerDrain, maxRoundNew)
	e := &Engine{
		store:       o.Store,
		nowMs:       o.StartClock(latestMs),
		router:      newRouter(shards, o.Random),
		figures:     newFigures(),
		retention:   o.Retention,
		mostUntaken: o.Limits.OrDefault().UntakenBytes,
		heard:       o.Heard,
		settings:    o.Settings,
	}
	e.named.of = make(map[string]record.NamedList)
	e.named.changed = map[record.Kind]func(string, record.NamedList){record.KindLimits: e.limitsChanged}
	for _, r := range truth {
		e.named.set(r)
	}
	e.limiters.shards, e.limiters.heard, e.limiters.post = shards, o.Heard, e.Control
	for i := range recovered[0].Settings {
		found := &recovered[0].Settings[i] // every shard has them; see copyNewest
		e.learn(found.Key, &found.Settings)
	}
	for shardNo := range shards {
		seed, err := drawSeed(o.Random)
		if err != nil {
			return nil, err
		}
		span := o.Store.Span(shardNo)
		core := shard.New(shard.Config{
			Shard: shardNo, Shards: shards, Seed: seed, Index: o.Index, Limits: o.Limits, Retention: o.Retention,
			PublicURL: o.PublicURL, TraceParent: o.TraceParent, Takeover: takeover, LimiterOf: e.limiters.of, BacklogOf: func(tenant string) shard.Backlog { return e.limits.Of(tenant) },
		}, span, recovered[shardNo], e.nowMs())
		e.loops = append(e.loops, &loop{
			box: mailbox.NewAt(limits, e.nowMs, tenantOf), core: core, span: span, guard: o.Store.Guard(),
			nowMs: e.nowMs, fatal: o.Fatal, made: o.Made, observe: o.Observe, applied: o.Store.Submitted(shardNo),
			figures: e.figures.of(shardNo), gate: effectGate{shard: shardNo, events: o.Events, notes: o.Notes},
		})
		if o.Events != nil {
			o.Events.Load(shardNo, recovered[shardNo].Marks.Event, recovered[shardNo].Queues)
		}
	}
	o.Gates.loops.Store(&e.loops)
	for i := range recovered[0].Settings {
		if found := &recovered[0].Settings[i]; found.Settings.Deleting {
			e.drop(found.Key)
		}
	}
	return e, nil
}

// learn notes the settings that every shard has of a queue.
func (e *Engine) learn(q record.QueueKey, now *record.Settings) {
	e.router.learn(q, now)
	if e.settings != nil {
		e.settings(q, now)
	}
}

func drawSeed(random io.Reader) (seed [32]byte, err error) {
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return seed, fmt.Errorf("draw seed: %w", err)
	}
	return seed, nil
}

// Start starts the actors. The store's syncer must be running, or barriers be
// run by hand.
func (e *Engine) Start() {
	for _, l := range e.loops {
		e.actors = append(e.actors, actor.Start(l.box, l.handle))
	}
}

// Run works through the mailbox of one shard by hand, as its actor would, and
// says how long that would sleep. It is for whoever owns every step of an
// engine that was not started: a simulator, a test.
func (e *Engine) Run(shard int) (sleepFor time.Duration) {
	l := e.loops[shard]
	return l.handle(l.box.Drain(nil))
}

// Stop closes the mailboxes, handles what waits in them and makes it durable, which
// releases the last effects. The store stays open. At a node that leads its cluster no more it
// drops what waits; no effect leaves once it has returned.
func (e *Engine) Stop() error {
	for _, a := range e.actors {
		a.Stop()
	}
	if err := e.store.Barrier(); err != nil && !errors.Is(err, store.ErrNotLeader) {
		return fmt.Errorf("sync at stop: %w", err)
	}
	return nil
}

// Wake has every shard make a round, and returns how many each had made before. A shard whose count
// is the same later hangs, or is at one round since then.
func (e *Engine) Wake() (rounds []uint64) {
	for _, l := range e.loops {
		rounds = append(rounds, l.rounds.Load())
		l.box.PushSlot(&l.space, &shard.SpaceChanged{}, nil)
	}
	return rounds
}

// Shards is the number of shards.
func (e *Engine) Shards() int { return len(e.loops) }

// Effective returns the settings in force of a queue; see Retention.Effective.
func (e *Engine) Effective(command string, set wire.QueueSettings) wire.QueueSettings {
	if set == (wire.QueueSettings{}) {
		set = wire.FirstSettings(command)
	}
	return e.retention.Effective(set)
}

// NowMs is the engine's time in Unix milliseconds.
func (e *Engine) NowMs() int64 { return e.nowMs() }

// ShardOf is the shard that owns a task.
func (e *Engine) ShardOf(id wire.TaskID) int { return wire.ShardOfTask(id, len(e.loops)) }

// Route draws the id of a new task and says which shard owns it.
func (e *Engine) Route(tenant, command, key string) (wire.TaskID, int) {
	return e.router.route(e.nowMs(), tenant, command, key)
}

// Post puts messages into the mailbox of a shard, all or none. bytes is what
// they keep in memory while they wait. What new tasks have taken at the door goes back
// if it takes none.
func (e *Engine) Post(shardNo int, batch []shard.Message, bytes int, class mailbox.Class) mailbox.Verdict {
	verdict := e.loops[shardNo].box.Push(batch, bytes, class)
	if verdict != mailbox.Accepted {
		for _, m := range batch {
			if m, is := m.(*shard.Enqueue); is {
				m.GiveBack()
			}
		}
	}
	return verdict
}

// NewConsumer makes the consumer of a new socket, of a new or a resumed session;
// its epoch is higher than that of every consumer made before. The session
// subscribes it with a Subscribe message to every shard. The consumer of a claim is
// subscribed only if the claim waits.
func (e *Engine) NewConsumer(o ConsumerOptions) *Consumer {
	epoch := e.epochs.Add(1)
	if o.OverHTTP {
		// Drawn ids begin with a time, so none equals this one.
		o.ID = wire.SessionID{0xff}
		binary.BigEndian.PutUint64(o.ID[8:], epoch)
	}
	consumer := newConsumer(o, len(e.loops), e.mostUntaken, e.Control)
	consumer.Epoch = epoch
	return consumer
}

// Control posts a control message, which a shard that lives never refuses, however
// full its mailbox is; false says that it has stopped. A message that waits in the
// slot is merged with m. With a nil slot m has one of its own.
func (e *Engine) Control(shardNo int, slot *mailbox.Slot[shard.Message], m shard.Message) (posted bool) {
	if slot == nil {
		slot = new(mailbox.Slot[shard.Message])
	}
	return e.loops[shardNo].box.PushSlot(slot, m, mergeControl) != mailbox.Closed
}

// MailboxFigures are the figures of one shard's mailbox.
func (e *Engine) MailboxFigures(shard int) mailbox.Figures { return e.loops[shard].box.Figures() }
