package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"codeq/index"
	"codeq/lease"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const (
	// stallMs: a round that begins this late lets clients speak first; see
	// Shard.holdUntilMs.
	stallMs = 1000

	resumeGraceMs = wire.ResumeGraceSeconds * 1000
)

// Config is what distinguishes one shard from another. Seed feeds tokens and
// jitter. Index bounds the memory of the ready and delayed orders, Limits the
// rounds; zero means the defaults.
type Config struct {
	// Shard is one of Shards.
	Shard  int
	Shards int
	Seed   [32]byte
	Index  index.Limits
	Limits Limits
	// Retention holds where a queue does not say.
	Retention Retention
}

// DefaultIndex bounds the keys of one run kept in memory.
var DefaultIndex = index.Limits{Run: 4096, Refill: 1024}

// Shard is the core of one shard. It is a plain value: whoever calls Round
// owns it, and calls to it never overlap.
type Shard struct {
	// Set once.
	shard     int
	shards    int
	limits    Limits
	span      *store.Span
	retention Retention

	// State that lives as long as the shard.
	chance    *rand.ChaCha8
	index     *index.Index
	leases    *lease.Table
	marks     record.Marks
	queues    map[record.QueueKey]*queue
	tenants   map[string]*tenant
	bySession map[wire.SessionID]*subscriber
	watchers  map[wire.TaskID][]Asker
	leaked    map[wire.TaskRef][]leaked
	turns     turns
	grants    uint64

	suspects
	deadlines
	removals
	round
}

// suspects are the tasks that wait for an idle subscriber.
type suspects struct {
	// aside are suspects that nobody could take alone, reserved is the subscriber whose
	// window this shard has alone until a time for one of them, nil for none.
	aside           []aside
	reserved        *subscriber
	reservedUntilMs int64
}

// deadlines say when the next round is due and which leases may lapse in it.
type deadlines struct {
	// dueAtMs is the deadline the last round asked for, 0 for none;
	// wasFull says that its space was store.OnlyDelete;
	// holdUntilMs keeps leases alive after a stall, so that what clients sent
	// meanwhile is read before anything lapses. Of those leases the ones that ran
	// out by heardUntilMs were held for an earlier stall already.
	dueAtMs      int64
	wasFull      bool
	holdUntilMs  int64
	heardUntilMs int64
}

// removals are the ended tasks to remove, and the queues that are deleted.
type removals struct {
	expiries expiryQueue
	cleanups []*cleanupRun
	// batches are the ended tasks that the round found to be over their time.
	batches []expiryBatch
	// removing is the task that goes now, as its entry remembers it.
	removing record.Task
	// deleting are the queues to empty, drops who waits for that, doomed what goes of
	// them in this round besides ended tasks.
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
	// stalled are queues without turns for the rest of the round.
	stalled  []*queue
	explains []*Explain
	// unsaved are queues whose settings recovery took from another shard.
	unsaved []*queue
	emptied []*queue
}

// Outcome is what one round did besides appending to the open batch.
type Outcome struct {
	// Taken is how many messages the round took; the rest is the next round.
	Taken int
	// Effects are let out once the batch is durable.
	Effects []Addressed
	// Events are the transitions of the round, in order.
	Events []Event
	// Suspects counts deliveries that did not arrive, of tasks that are suspects by
	// that or were before.
	Suspects int
	// Unused are credits that arrived and found no task; they go back to
	// their consumers at once.
	Unused []UnusedCredit
	// NextAtMs is when the shard wants to run again without a message, 0 for
	// never. Again asks for another round at once.
	NextAtMs int64
	Again    bool
}

// UnusedCredit are credits that go back to a consumer. With 0 it only looks whether a
// shard may be woken.
type UnusedCredit struct {
	Consumer *Consumer
	Credits  int
}

// NewShard builds the core from what recovery found. Deliveries of sessions
// count as if their socket had just gone, deliveries over HTTP keep at least
// the resume grace from now. So long a run goes on, too.
func New(c Config, span *store.Span, r *store.Recovered, nowMs int64) *Shard {
	limits := c.Index
	if limits.Run == 0 {
		limits = DefaultIndex
	}
	s := &Shard{
		shard:     c.Shard,
		shards:    c.Shards,
		limits:    c.Limits.OrDefault(),
		span:      span,
		chance:    rand.NewChaCha8(c.Seed),
		index:     index.New(limits),
		leases:    lease.New(),
		marks:     r.Marks,
		queues:    make(map[record.QueueKey]*queue),
		tenants:   make(map[string]*tenant),
		bySession: make(map[wire.SessionID]*subscriber),
		watchers:  make(map[wire.TaskID][]Asker),
		leaked:    make(map[wire.TaskRef][]leaked),
		retention: c.Retention,
		round:     round{now: nowMs},
	}
	for _, q := range r.Queues {
		s.index.Restore(q.Key, q.Counters)
	}
	s.restoreSettings(r.Settings)
	for _, q := range r.Queues {
		s.ready(s.queueOf(q.Key))
		s.planExpiry(s.queueOf(q.Key))
	}
	for i := range r.Leased {
		s.restoreLease(&r.Leased[i], nowMs)
	}
	return s
}

func (s *Shard) restoreLease(found *store.LeasedTask, nowMs int64) {
	found.Task.Location, found.Task.Status = wire.LocationInProgress, wire.StatusInProgress
	e := &lease.Entry{
		Task: &found.Task, Lease: found.Lease,
		AckedUntilMs: found.Lease.DeadlineMs,
		// Nobody knows any more how often it was put.
		PutAgain: true,
	}
	expires := max(found.Lease.DeadlineMs, nowMs+resumeGraceMs)
	if !found.Lease.Session.IsZero() {
		e.Gone = true
		expires = min(found.Lease.DeadlineMs, nowMs+resumeGraceMs)
	}
	s.leases.Grant(e, expires)
	if until := found.Lease.RunUntilMs; until != 0 {
		s.leases.Run(e, max(until, nowMs+resumeGraceMs))
	}
	// Nobody knows any more what had arrived. That also ends a row of deliveries
	// that did not.
	s.confirm(e)
}

// Round runs one round at the given time: refills, messages in order, due
// work, one grant pass, counters. The batch is empty when it begins; the
// caller applies it afterwards, and lets the effects out when it is durable.
func (s *Shard) Round(nowMs int64, messages []Message) Outcome {
	if !s.span.Batch().Empty() {
		panic(fmt.Sprintf("shard %d: round over an open batch of %d bytes", s.shard, s.span.Batch().Bytes()))
	}
	s.now = max(s.now, nowMs)
	s.out = Outcome{}
	s.noteStall()
	s.refill()
	s.advanceWatermarks()
	s.findExpired()
	s.saveSettings()
	for _, m := range messages[:min(len(messages), s.limits.Messages)] {
		s.step(m)
		s.out.Taken++
		if s.span.Batch().Bytes() >= s.limits.BatchBytes {
			break
		}
	}
	// Messages before expiries: an answer that is already here wins, so with
	// messages left over nothing lapses yet.
	if s.out.Taken == len(messages) && s.space < store.OnlyDelete {
		s.due()
	}
	s.removeExpired()
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
	s.seal()
	s.plan()
	return s.out
}

// SetSpace states what the disk allows from the next round on. It is an input
// like the time: from store.NoEnqueue on new tasks are refused, from
// store.NoGrant on nothing is handed out, at store.OnlyDelete nothing moves.
func (s *Shard) SetSpace(level store.Level) { s.space = level }

// noteStall holds leases for the resume grace when the round begins long after
// it was due: the process was stopped or starved, and clients were not heard. The
// same holds for the first round after a full disk made the shard refuse what they
// said. A lease is held once: a shard that is late again and again would otherwise
// never take a task from a worker that is gone.
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

// lapseUntilMs is up to which deadline leases may lapse now.
func (s *Shard) lapseUntilMs() int64 {
	if s.now < s.holdUntilMs {
		return s.heardUntilMs
	}
	return s.now
}

// step carries out one message.
func (s *Shard) step(m Message) {
	if s.space >= store.OnlyDelete && s.refuseNoSpace(m) {
		return
	}
	switch m := m.(type) {
	case *Enqueue:
		s.enqueue(m)
	case *Subscribe:
		s.subscribe(m)
	case *Claim:
		s.claim(m)
	case *Extend:
		s.extend(m)
	case *HandedCredit:
		s.handedCredit(m)
	case *Received:
		s.received(m)
	case *Undelivered:
		s.undelivered(m)
	case *Result:
		s.result(m)
	case *End:
		s.end(m)
	case *Heartbeat:
		s.heartbeat(m)
	case *SessionGone:
		s.sessionGone(m)
	case *Resume:
		s.resume(m)
	case *DrainBarrier:
		s.drainBarrier(m)
	case *Watch:
		s.watch(m)
	case *Unwatch:
		s.unwatch(m)
	case *Replay:
		s.replay(m)
	case *Explain:
		s.explain(m)
	case *TellLeases:
		s.tellLeases(m)
	case *Purge:
		s.purge(m)
	case *Cancel:
		s.cancel(m)
	case *RunNow:
		s.runNow(m)
	case *Prioritize:
		s.prioritize(m)
	case *Cleanup:
		s.cleanup(m)
	case *Freeze:
		s.freeze(m)
	case *Configure:
		s.configure(m)
	case *CopySettings:
		s.copySettings(m)
	case *Drop:
		s.drop(m)
	case *SpaceChanged:
		// The round itself is the answer.
	default:
		panic(fmt.Sprintf("shard: unknown message %T", m))
	}
}

// refill reads the runs that ran short. Only here, with the open batch empty
// and every earlier one applied, may memory be filled from the store: inside a
// round it would bring back keys that the batch is about to delete.
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
		scan := s.span.ScanDelayed
		if r.Order == index.Expiring {
			scan = s.span.ScanExpiring
		}
		found, err := scan(r.Queue.Key(), r.AfterTimed, r.Limit)
		s.mustRead(err)
		r.FillTimed(found)
	}
}

// seal writes the counters of every queue that changed, and the marks.
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
		s.mayBeEmpty(s.queueOf(q.Key()))
	}
	s.forgetEmpty()
	if batch.Empty() {
		return
	}
	s.marks.TimeMs = s.now
	batch.PutMarks(s.marks)
}

// plan decides when the next round must come.
func (s *Shard) plan() {
	if s.space >= store.OnlyDelete {
		// Nothing due may be written, SpaceChanged calls again; but ended tasks go,
		// which makes credit.
		s.dueAtMs = s.nextExpiryMs()
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
	if next != 0 && next <= s.now {
		s.out.Again = true
	}
	if at := s.nextExpiryMs(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	s.dueAtMs = next
	s.out.NextAtMs = next
}

// mustRead ends the process over a store that cannot be read: memory would no
// longer mirror it. An unreadable record is not such an error; see setAside.
func (s *Shard) mustRead(err error) {
	if err != nil {
		panic(fmt.Sprintf("shard %d: read: %v", s.shard, err))
	}
}

// unreadable reports a record that is there and cannot be decoded. Any other
// read error ends the process.
func (s *Shard) unreadable(err error) bool {
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return true
	}
	s.mustRead(err)
	return false
}

// tell adds an effect for whoever asked.
func (s *Shard) tell(to Sink, e Effect) {
	if to != nil {
		s.out.Effects = append(s.out.Effects, Addressed{Sink: to, Effect: e})
	}
}

// refuse answers a message that is not carried out.
func (s *Shard) refuse(to Asker, id wire.TaskID, code wire.Code, sentence string) {
	s.tell(to.Sink, &Refused{Ref: to.Ref, TaskID: id, Err: wire.Refuse(code, sentence)})
}
