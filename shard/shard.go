package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"codeq/index"
	"codeq/internal/heap"
	"codeq/lease"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const (
	// stallMs: a round that begins this much later than due holds leases; see
	// noteStall.
	stallMs = 1000

	resumeGraceMs = wire.ResumeGraceSeconds * 1000
)

// Config configures one shard. Seed feeds tokens and jitter. Index bounds the
// memory of the ready and delayed orders, Limits the rounds; zero means the
// defaults.
type Config struct {
	// Shard is one of Shards.
	Shard  int
	Shards int
	Seed   [32]byte
	Index  index.Limits
	Limits Limits
	// Retention is the default of queues that set none.
	Retention Retention
	// Takeover: another node of the cluster had the shard before, and nobody while it was lost.
	Takeover bool
	// PublicURL begins the URLs in callbacks, such as https://codeq.example.com.
	PublicURL string
	// TraceParent returns, for a task that was posted with the traceparent parent, that for the
	// worker of a delivery and for what its end makes; see package tracing. With the same values
	// it returns the same text. nil hands on the posted one, and events have no Trace.
	TraceParent func(id wire.TaskID, parent string, delivery int) string
	// LimiterOf is the limiter of a queue, the same one for all shards.
	LimiterOf func(record.QueueKey) Limiter
	// BacklogOf is the backlog of a tenant, the same one for all shards.
	BacklogOf func(tenant string) Backlog
}

// DefaultIndex bounds the keys of one run kept in memory.
var DefaultIndex = index.Limits{Run: 4096, Refill: 1024}

// Shard is the core of one shard. It is a plain value: whoever calls Round
// owns it, and calls to it never overlap.
type Shard struct {
	// Set once.
	shard  int
	shards int
	limits Limits
	span   *store.Span
	given

	// State that lives as long as the shard.
	random     *rand.ChaCha8
	index      *index.Index
	leases     *lease.Table
	marks      record.Marks
	tenants    map[string]*tenant
	byConsumer map[wire.SessionID]*subscriber
	watchers   map[wire.TaskID][]Asker
	leaked     map[wire.TaskRef][]leaked
	turns      turns
	grantNo    uint64

	queueTable
	suspects
	deadlines
	removals
	round
}

// suspects are the tasks that wait for an idle subscriber.
type suspects struct {
	// aside are suspects that found no idle subscriber. This shard has the window
	// of reserved alone, until reservedUntilMs, for one of them; nil for none.
	aside           []aside
	reserved        *subscriber
	reservedUntilMs int64
}

// queueTable are the queues that have tasks, settings or subscribers. numbered is the
// highest number that one has had; see queue.number.
type queueTable struct {
	queues    map[record.QueueKey]*queue
	numbered  uint32
	limiterOf func(record.QueueKey) Limiter
	backlogOf func(tenant string) Backlog
	// slowed are the queues that wait for their next start.
	slowed []*queue
	shardKeys
}

// deadlines say when the next round is due and which leases may lapse in it.
type deadlines struct {
	// dueAtMs is the NextAtMs of the last round, 0 for none; wasFull reports that
	// its space was store.OnlyDelete. No lease lapses before holdUntilMs after a
	// stall, so that the shard first reads what clients sent meanwhile, except
	// those that ran out by heardUntilMs: an earlier stall held them already.
	dueAtMs      int64
	wasFull      bool
	holdUntilMs  int64
	heardUntilMs int64
	// unsavedReports are the deliveries whose reports wait to be written, by Entry.SaveAtMs.
	// Some may have ended.
	unsavedReports []*lease.Entry
}

// removals are the ended tasks to remove, and the queues that are deleted.
type removals struct {
	// removalQueue orders the queues by when their next ended task must be removed.
	removalQueue heap.Heap[queue]
	cleanups     []*cleanupRun
	// batches are the ended tasks that this round removes.
	batches []removalBatch
	// deleting are the queues being deleted, drops the requests to forget their
	// settings, doomed their tasks, besides ended ones, that this round removes.
	deleting []*queue
	drops    []*Drop
	doomed   []doomed
}

// round is the state of the round that is running.
type round struct {
	now int64
	out Outcome
	// space is what the disk allowed when the round began; see SetSpace.
	space    store.Level
	dirty    []*index.Queue
	credited []*subscriber
	reuses   []reused
	claims   []claimant
	// stalled are queues that get no turn for the rest of the round. limited are those
	// that may have places or starts of their limiters which no grant has used.
	stalled  []*queue
	limited  []*queue
	explains []*Explain
	// spare is memory for the events of the next round; see ReuseEvents.
	spare []Event
	// lessPending are tenants of which tasks wait no more.
	lessPending []*tenant
	// scratch is the record of the task that enqueue makes or fromEntry builds, reused
	// for each; a record that a lease keeps is never it.
	scratch record.Task
	// unsaved are queues whose settings recovery copied from another shard, unsavedNamed
	// the named records.
	unsaved      []*queue
	unsavedNamed []record.NamedKey
	emptied      []*queue
}

// Outcome is what one round did besides appending to the open batch.
type Outcome struct {
	// Taken is how many messages the round took; the caller passes the rest to the
	// next round.
	Taken int
	// Effects are released once the batch is durable.
	Effects []Addressed
	// Events are the transitions of the round, in order, and Notes its reports.
	Events []Event
	Notes  []Note
	// Suspects counts deliveries that did not arrive whose tasks are suspects now.
	Suspects int
	// Unused are credits that HandedCredit brought and no grant used; the caller
	// returns them to their consumers at once.
	CreditReturns []CreditReturn
	// NextAtMs is when the next round is due without a message, 0 for never. Again
	// asks for another round at once.
	NextAtMs int64
	Again    bool
}

// CreditReturn returns credits to a consumer. With 0 credits it only wakes shards
// that wait and may have one.
type CreditReturn struct {
	Consumer *Consumer
	Credits  int
}

// NewShard builds the core from what recovery found. Deliveries of sessions are
// leased as if their socket had just ended; those over HTTP are leased for at least
// the resume grace from now, and runs last at least as long.
func New(c Config, span *store.Span, r *store.Recovered, nowMs int64) *Shard {
	limits := c.Index
	if limits.Run == 0 {
		limits = DefaultIndex
	}
	s := &Shard{
		shard:      c.Shard,
		shards:     c.Shards,
		limits:     c.Limits.OrDefault(),
		span:       span,
		random:     rand.NewChaCha8(c.Seed),
		index:      index.New(limits),
		leases:     lease.New(),
		marks:      r.Marks,
		tenants:    make(map[string]*tenant),
		byConsumer: make(map[wire.SessionID]*subscriber),
		watchers:   make(map[wire.TaskID][]Asker),
		leaked:     make(map[wire.TaskRef][]leaked),
		given:      given{retention: c.Retention, publicURL: c.PublicURL, traceParent: c.TraceParent},
		round:      round{now: nowMs},
		queueTable: queueTable{queues: make(map[record.QueueKey]*queue), limiterOf: c.LimiterOf, backlogOf: c.BacklogOf},
	}
	for _, q := range r.Queues {
		s.index.Restore(q.Key, q.Counters)
	}
	s.restoreSettings(r.Settings)
	for _, found := range r.Queues {
		q := s.queueOf(found.Key)
		if !q.system {
			q.tenant.waiting += found.Counters.Waiting()
			q.tenant.bytes += found.Counters.WaitingBytes
			q.tenant.fileBytes += found.Counters.FileBytes
		}
		s.joinRings(q)
		s.planRemoval(q)
	}
	s.restoreNamed(r.Named)
	for i := range r.Leased {
		s.restoreLease(&r.Leased[i], nowMs, c.Takeover)
	}
	s.restoreKeys(r.LimitedKeys)
	return s
}

func (s *Shard) restoreLease(found *store.LeasedTask, nowMs int64, takeover bool) {
	found.Task.Location, found.Task.Status = wire.LocationInProgress, wire.StatusInProgress
	e := &lease.Entry{
		Task: &found.Task, Lease: found.Lease,
		AckedUntilMs: found.Lease.DeadlineMs,
		// The store does not say how often the lease was put, so the delete must
		// cover several.
		PutAgain: true,
	}
	expires := max(found.Lease.DeadlineMs, nowMs+resumeGraceMs)
	if !found.Lease.Session.IsZero() {
		e.Gone = true
		expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs)
		if takeover {
			// Nobody could extend it while no node led. It is as long for a session that resumes.
			expires = nowMs + resumeGraceMs
			e.AckedUntilMs = max(e.AckedUntilMs, expires)
		}
	}
	s.leases.Grant(e, expires)
	s.restoreKey(&found.Task)
	if until := found.Lease.RunUntilMs; until != 0 {
		s.leases.Run(e, max(until, nowMs+resumeGraceMs))
	}
	// The store does not say whether the delivery arrived, so it counts as
	// confirmed, and deliveries that did not arrive are counted from 0 again.
	s.confirm(e)
}

// Round runs one round at the given time: refills, messages in order, due work, one
// grant pass, counters. The batch is empty when it begins; the caller applies it
// afterwards, and releases the effects once it is durable.
func (s *Shard) Round(nowMs int64, messages []Message) Outcome {
	if !s.span.Batch().Empty() {
		panic(fmt.Sprintf("shard %d: round over an open batch of %d bytes", s.shard, s.span.Batch().Bytes()))
	}
	s.now = max(s.now, nowMs)
	s.out = Outcome{Events: s.spare[:0]}
	s.spare = nil
	s.noteStall()
	s.openSlowed()
	s.openKeys()
	s.refill()
	s.advanceWatermarks()
	s.findRemovals()
	s.findFreed()
	s.saveNamed()
	s.saveSettings()
	s.makeFreedReady()
	for _, m := range messages[:min(len(messages), s.limits.Messages)] {
		s.step(m)
		s.out.Taken++
		if s.span.Batch().Bytes() >= s.limits.BatchBytes {
			break
		}
	}
	// Messages come before what is due, so that an answer which has arrived counts:
	// nothing lapses while messages are left.
	if s.out.Taken == len(messages) && s.space < store.OnlyDelete {
		s.due()
	}
	if s.space < store.OnlyDelete {
		s.saveReports()
	}
	s.doRemovals()
	s.removeDoomed()
	s.answerDrops()
	cut := false
	if s.space < store.NoGrant {
		cut = s.grantPass()
	}
	s.answerClaims(cut)
	s.answerExplains()
	s.returnCredit()
	s.returnReused()
	s.returnPlaces()
	s.seal()
	s.freePending()
	s.plan()
	return s.out
}

// ReuseEvents takes the events of an earlier round back, so that the next round needs
// no new memory for its own. The caller reads them no more.
func (s *Shard) ReuseEvents(events []Event) {
	clear(events) // they keep records in memory by their names
	s.spare = events[:0]
}

// noteStall holds leases for the resume grace when the round begins stallMs after
// it was due: the process was stopped or starved, and heartbeats wait unread. It
// also holds them in the first round after a full disk, when the shard had refused
// heartbeats. A lease is held once: otherwise a shard that is late again and again
// would never end the lease of a worker that is gone.
func (s *Shard) noteStall() {
	stalled := s.dueAtMs != 0 && s.now > s.dueAtMs+stallMs
	full := s.space >= store.OnlyDelete
	spaceCame := s.wasFull && !full
	s.wasFull = full
	if !stalled && !spaceCame || s.now < s.holdUntilMs {
		return
	}
	s.heardUntilMs, s.holdUntilMs = s.holdUntilMs, s.now+resumeGraceMs
}

// lapseUntilMs is the latest deadline with which leases may lapse now.
func (s *Shard) lapseUntilMs() int64 {
	if s.now < s.holdUntilMs {
		return s.heardUntilMs
	}
	return s.now
}

// refill reads the runs of keys that ran short. It runs only here, with the open
// batch empty and every earlier one applied: later in a round it would read keys
// that the batch is about to delete.
func (s *Shard) refill() {
	for refills, keys := 0, 0; refills < s.limits.Refills && keys < s.limits.Refilled; refills++ {
		r, ok := s.index.NextRefill()
		if !ok {
			return
		}
		keys += r.Limit
		if r.Order == index.Ready {
			found, err := s.span.ScanPending(r.Queue.Key(), r.Priority, r.AfterPending, r.Limit)
			s.mustRead(err)
			r.FillPending(found)
			continue
		}
		order := record.FamilyDelayed
		if r.Order == index.Expiring {
			order = record.FamilyExpiring
		}
		found, err := s.span.ScanTimed(r.Queue.Key(), order, r.AfterTimed, r.Limit)
		s.mustRead(err)
		r.FillTimed(found)
	}
}

// seal writes the counters of every changed queue, and the marks.
func (s *Shard) seal() {
	batch := s.span.Batch()
	s.dirty = s.index.TakeDirty(s.dirty[:0])
	for _, q := range s.dirty {
		counters := q.Counters()
		if !counters.IsZero() {
			batch.PutCounters(q.Key(), &counters)
			continue
		}
		batch.DeleteCounters(q.Key())
		empty := s.queueOf(q.Key())
		s.addFiles(empty, -q.TakeFileBytes())
		s.mayBeEmpty(empty)
	}
	s.forgetEmpty()
	if batch.Empty() {
		return
	}
	s.marks.TimeMs = s.now
	batch.PutMarks(s.marks)
}

// plan sets when the next round is due.
func (s *Shard) plan() {
	if s.space >= store.OnlyDelete {
		// No due move may be written; SpaceChanged starts the next round. Ended
		// tasks are still removed, which frees space.
		s.dueAtMs = s.nextRemovalMs()
		s.out.NextAtMs = s.dueAtMs
		return
	}
	next := s.index.NextDueAtMs()
	if at := s.leases.NextAtMs(); at != 0 {
		if at > s.lapseUntilMs() {
			at = max(at, s.holdUntilMs)
		}
		if next == 0 || at < next {
			next = at
		}
	}
	if at := s.now + checkAsideMs; len(s.aside) > 0 && (next == 0 || at < next) {
		next = at
	}
	if at := s.nextSaveMs(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	if next != 0 && next <= s.now || len(s.freed) > 0 {
		s.out.Again = true
	}
	if at := s.nextStartMs(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	if at := s.nextRemovalMs(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	s.dueAtMs = next
	s.out.NextAtMs = next
}

// mustRead ends the process over a store that cannot be read: memory would no
// longer mirror it. An unreadable record is not such an error; see quarantineReady.
func (s *Shard) mustRead(err error) {
	if err != nil {
		panic(fmt.Sprintf("shard %d: read: %v", s.shard, err))
	}
}

// unreadable reports a record that is there and cannot be decoded. Any other
// read error ends the process.
func (s *Shard) unreadable(err error) bool {
	if err == nil {
		return false // damaged would be allocated
	}
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return true
	}
	s.mustRead(err)
	return false
}

// tell adds an effect for a sink; nil wants none.
func (s *Shard) tell(to Sink, e Effect) {
	if to != nil {
		s.out.Effects = append(s.out.Effects, Addressed{Sink: to, Effect: e})
	}
}
