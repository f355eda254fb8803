package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// violation is a property that did not hold.
type violation struct {
	property string
	text     string
}

// Error is the property and the numbers.
func (v *violation) Error() string { return v.property + ": " + v.text }

// violate ends the run: a property does not hold. The panic is caught where the
// run began.
func violate(property, format string, args ...any) {
	panic(&violation{property, fmt.Sprintf(format, args...)})
}

// consumer is one socket of a session as the model sees it.
type consumer struct {
	*shardactor.Consumer
	// window is what the session can hold; limit is more after it shrank, until
	// what was under way has arrived.
	window, limit int
	// out are the deliveries the worker has not answered for, untaken the payload
	// bytes that the client has not confirmed, and bound how many those may be.
	out     map[wire.Token]bool
	untaken int
	bound   int
	// most is what the bound is cut to.
	most int
	// alone: a suspect is on its way to it, and nothing else may be; aloneOn is the
	// shard that granted the newest one, and sharedAt how many rounds that shard has
	// had when it has surely shared the window again.
	alone    bool
	aloneOn  int
	sharedAt int
	// quietUntilMs is until when it may get nothing because of a suspect.
	quietUntilMs int64
	// idleSinceMs is the first rest since which it has had a free credit and no
	// unconfirmed delivery, 0 for none.
	idleSinceMs int64
	// back are those whose credit the shard knows to come back.
	back   map[wire.Token]bool
	closed bool
	// fenced are the shards that have said their last word of a window of 0.
	drained []bool
	// subscribed is what each shard was asked for.
	subscribed []subscription
}

type subscription struct {
	on       bool
	commands []string
	leaseMs  int64
}

// connected makes a new socket known.
func (m *model) connected(s *shardactor.Consumer) *consumer {
	known := &consumer{
		Consumer: s, most: m.limits.UntakenBytes, out: make(map[wire.Token]bool), back: make(map[wire.Token]bool),
		subscribed: make([]subscription, len(m.shards)), drained: make([]bool, len(m.shards)),
	}
	known.bound = known.most
	if !s.OverHTTP {
		known.bound = min(known.most, 256<<10)
	}
	m.consumers[s.Consumer] = known
	return known
}

func (s *consumer) resize(window int) {
	s.window, s.idleSinceMs = window, 0
	if window > 0 {
		clear(s.drained)
	}
	s.limit = max(s.limit, window)
}

func (s *consumer) takes(shard int, command string) bool {
	sub := &s.subscribed[shard]
	return sub.on && (slices.Contains(sub.commands, command) || command != hookCommand && slices.Contains(sub.commands, wire.AllCommands))
}

// timeCame judges what the round did because of the time.
func (m *model) timeCame() {
	for m.at.event < len(m.at.Outcome.Events) {
		e := m.peek()
		t := m.tasks[e.TaskID]
		switch e.Cause {
		case record.CauseDue:
			if t != nil && t.aside && t.dueMs > m.at.NowMs {
				return // its turn came with the grants
			}
			m.fellDue(t)
		case record.CauseTaskExpired:
			m.endsByTime(t, e)
		case record.CauseExpired, record.CauseSessionGone, record.CauseUndelivered, record.CauseTimeout:
			m.lapsed(t, e)
		default:
			return
		}
	}
}

// endsByTime is a task that expired where it waited, or with a delivery that ended.
func (m *model) endsByTime(t *task, e shard.Event) {
	if t != nil && t.place == wire.LocationInProgress {
		m.lapsed(t, e)
		return
	}
	m.ranOut(t)
}

func (m *model) fellDue(t *task) {
	if t == nil || t.place != wire.LocationDelayed || t.dueMs > m.at.NowMs {
		violate("nothing is delivered before it is due", "%+v at %d", t, m.at.NowMs)
	}
	m.toTail(t)
	t.aside = false
	m.moved(t, wire.LocationDelayed, record.CauseDue)
}

func (m *model) lapsed(t *task, e shard.Event) {
	if t == nil || t.place != wire.LocationInProgress {
		violate("messages come before expiries", "%+v of %+v", e, t)
	}
	if m.at.NowMs < t.lapseMs {
		violate("a lease lasts as long as promised", "task %v until %d, taken at %d: %+v", t.id, t.lapseMs, m.at.NowMs, e)
	}
	if state := &m.shards[m.at.Shard]; state.holds(t, m.at.NowMs) {
		violate("after a stall clients speak first", "task %v taken at %d, held until %d", t.id, m.at.NowMs, state.holdMs)
	}
	session, gone := m.sockets[m.at.Shard][t.session], t.gone
	ref := wire.TaskRef{TaskID: t.id, Token: t.token}
	reason := wire.RevokedExpired
	switch {
	case !t.confirmed:
		m.takeBack(t)
	case m.isOver(t, e):
		m.overran(t)
		reason = wire.RevokedTimeout
	case t.gone:
		m.lost(t, record.CauseSessionGone)
	default:
		m.lost(t, record.CauseExpired)
	}
	if !gone {
		m.toldOf(session, ref, reason)
	}
}

// grants judges what the round handed out.
func (m *model) grants() {
	for m.at.event < len(m.at.Outcome.Events) {
		e := m.peek()
		t := m.tasks[e.TaskID]
		if t != nil && e.Cause == record.CauseSuspect {
			m.stepsAside(t)
			continue
		}
		if t != nil && e.Cause == record.CauseKeyFull {
			m.givesWay(t)
			continue
		}
		called := t != nil && e.Cause == record.CauseDue && t.aside
		if called {
			m.calledFromAside(t)
			e = m.peek()
		}
		if t == nil || e.Cause != record.CauseGrant || e.TaskID != t.id {
			return
		}
		if t.place == wire.LocationInProgress {
			violate("one live token per task", "task %v granted as %d while delivery %d lives", t.id, e.Delivery, t.deliveries)
		}
		if t.place != wire.LocationPending {
			violate("only what is ready is handed out", "%+v", t)
		}
		if t.isPast(m.at.NowMs) {
			violate("nothing is handed out that has expired", "%+v at %d", t, m.at.NowMs)
		}
		if first := m.head(t.shard, t.tenant, t.command); first != t && !called {
			violate("first in, first out, by priority", "%+v was handed out before %+v", t, first)
		}
		if !called {
			m.goesFirst(t)
		}
		if !called {
			m.hadTurn(t)
		}
		m.granted(t)
	}
}

func (m *model) granted(t *task) {
	if m.at.effect >= len(m.at.Outcome.Effects) {
		violate("every grant is delivered", "task %v", t.id)
	}
	addressed := m.at.Outcome.Effects[m.at.effect]
	m.at.effect++
	g, ok := addressed.Effect.(*shard.Granted)
	if !ok || g.Task.ID != t.id {
		violate("every grant is delivered", "task %v, instead %#v", t.id, addressed.Effect)
	}
	s := m.addressee(addressed.Sink)
	m.mayHave(s, t)
	m.mayStart(t)
	m.shareMayStart(t)
	if s.goesAlone(t); t.isSuspect() {
		s.alone, s.aloneOn, s.quietUntilMs = true, t.shard, m.at.NowMs+asideMs
	}
	if m.tokens[g.Token] || g.Token.IsZero() {
		violate("a token names one delivery", "token %v of task %v", g.Token, t.id)
	}
	m.tokens[g.Token] = true
	sub := &s.subscribed[t.shard]
	m.leave(t)
	m.leased[t.shard] = append(m.leased[t.shard], t)
	t.place, t.status = wire.LocationInProgress, wire.StatusInProgress
	t.deliveries++
	t.token, t.subject, t.session, t.ended, t.listed = g.Token, s.Subject, s.ID, false, nil
	t.worker, t.overHTTP = s.WorkerID, s.OverHTTP
	t.confirmed, t.gone, t.restored = s.OverHTTP, false, false
	if s.OverHTTP {
		t.session = wire.SessionID{}
	}
	t.leaseMs = m.leaseOf(t, sub.leaseMs)
	t.ackedMs = m.at.NowMs + t.leaseMs
	t.lapseMs = t.ackedMs
	t.grantedMs, t.runMs = m.at.NowMs, 0
	t.runForMs = cmp.Or(t.timeoutMs, m.settings.of(t).TimeoutSeconds*1000)
	s.out[g.Token] = true
	s.untaken += len(t.payload)
	s.idleSinceMs = 0
	m.moved(t, wire.LocationPending, record.CauseGrant)
	leaseMs, runMs := t.promised()
	if g.LeaseForMs != t.leaseMs || g.LeaseUntilMs != leaseMs || g.RunForMs != t.runForMs || g.RunUntilMs != runMs {
		violate("a lease is as long as was asked", "task %v: %d until %d, runs %d until %d, got %+v", t.id, t.leaseMs, leaseMs, t.runForMs, runMs, *g)
	}
	if diff := t.differs(g.Task); diff != "" {
		violate("a task comes out as it went in", "%s", diff)
	}
	t.checkReport(g.Task, true)
	t.isGiven(g.Task.TraceParent, g.Task.TraceState, m.following(t, t.deliveries))
}

// mayHave holds a grant against who got it.
func (m *model) mayHave(s *consumer, t *task) {
	switch {
	case s == nil:
		violate("a task goes to a session", "task %v", t.id)
	case s.Tenant != t.tenant:
		violate("no task of another tenant", "task %v of %s went to %s", t.id, t.tenant, s.Tenant)
	case !s.takes(t.shard, t.command):
		violate("no task of another command", "task %v of %s, asked for %v", t.id, t.command, s.subscribed[t.shard])
	case s.drained[t.shard]:
		violate("no task comes behind the ok to a window of 0", "task %v went to %s", t.id, s.WorkerID)
	case len(s.out) >= s.limit:
		violate("credit adds up", "session %v of %s has %d of %d and got task %v", s.ID, s.WorkerID, len(s.out), s.limit, t.id)
	case m.frozen[t.shard][t.queue()] > 0:
		violate("a queue that may be deleted hands out nothing", "task %v of %s", t.id, t.command)
	case m.settings.of(t).Paused:
		violate("a paused queue hands out nothing", "task %v of %s", t.id, t.command)
	case m.at.Space >= store.NoGrant:
		violate("nothing is handed out on a full disk", "task %v at %v", t.id, m.at.Space)
	case t.attempts >= t.maxAttempts:
		violate("attempts stay below their limit", "%+v", t)
	}
}

// holdsBack says that the queue of a task may hand out none: it is paused, was asked
// whether it may be deleted, or has a limit. What a limit lets go is seen at rest.
func (m *model) holdsBack(t *task) bool {
	return m.settings.of(t).Paused || m.frozen[t.shard][t.queue()] > 0 || m.isLimited(t.queue(), t.shard)
}

func (m *model) addressee(sink shard.Sink) *consumer {
	switch sink := sink.(type) {
	case *conn:
		if sink.consumer != nil {
			return m.consumers[sink.consumer.Consumer]
		}
	case *claim:
		return m.consumers[sink.consumer.Consumer]
	case *hookSink:
		return sink.known
	}
	return nil
}

// nextPlace is where the next event says its task went.
func (m *model) nextPlace() wire.Location { return m.peek().To }

func (m *model) peek() shard.Event {
	if m.at.event >= len(m.at.Outcome.Events) {
		violate("every change has its event", "no event is left in a round of %d", len(m.at.Outcome.Events))
	}
	return m.at.Outcome.Events[m.at.event]
}

// moved expects the event of a move that the model has just made, and tells
// whoever waits for the end of the task.
func (m *model) moved(t *task, from wire.Location, cause record.Cause) {
	e := m.peek()
	m.at.event++
	m.shards[t.shard].events++
	t.noteHand(m.hand, m.at.NowMs)
	want := shard.Event{
		Number: m.shards[t.shard].events, AtMs: m.at.NowMs, Tenant: t.tenant, Command: t.command, TaskID: t.id,
		From: from, To: t.place, Status: t.status, Cause: cause, Delivery: t.deliveries, Queue: m.numberOf(t, e.Queue), Trace: m.tells(t, e.Trace),
	}
	m.timed(t, &want)
	want.Files = t.begun > 0 && (t.place == "" || !t.open())
	if e.TaskID != t.id && (e.Cause == record.CauseExpired || e.Cause == record.CauseSessionGone) {
		violate("messages come before expiries", "want %+v, got %+v", want, e)
	}
	if e.From != from {
		// From where it came is the only sign of an expiry that went first.
		violate("a task leaves the place it was in", "want %+v, got %+v", want, e)
	}
	if e != want {
		violate("a task moves as its lifecycle says", "want %+v, got %+v", want, e)
	}
	if t.open() {
		return
	}
	for _, w := range m.waiters[t.id] {
		expect[*shard.Ended](m, w)
	}
	delete(m.waiters, t.id)
	if t.place == "" {
		return
	}
	for _, endpoint := range m.recipients(t) {
		m.callsBack(t, endpoint, want.Number)
	}
}

// numberOf is the number of the queue of a task in its events: any that no other queue
// of the shard has had in this life.
func (m *model) numberOf(t *task, told uint32) uint32 {
	q := record.QueueKey{Command: t.command, Tenant: t.tenant}
	if m.queues[t.shard] == nil {
		m.queues[t.shard] = make(map[uint32]record.QueueKey)
	}
	if has, known := m.queues[t.shard][told]; known && has != q || told == 0 {
		violate("a number in events names one queue", "shard %d has told %d for %v, and now for %v", t.shard, told, has, q)
	}
	m.queues[t.shard][told] = q
	return told
}

// timed adds to the event of a move how long its task was where it was, and who had it.
func (m *model) timed(t *task, e *shard.Event) {
	if e.From == "" {
		t.postedMs, t.sinceMs = e.AtMs, e.AtMs
	}
	e.SpentMs, t.sinceMs = e.AtMs-t.sinceMs, e.AtMs
	if e.From == wire.LocationInProgress || e.To == wire.LocationInProgress {
		e.Worker = t.worker
	}
	if e.To == "" {
		return
	}
	e.Attempts = t.attempts
	if !t.open() {
		e.TotalMs = e.AtMs - t.postedMs
	}
}

// expect takes the next effect, which must be of that type and for that asker.
func expect[E shard.Effect](m *model, to shard.Asker) (e E) {
	if to.Sink == nil {
		return e
	}
	if m.at.effect >= len(m.at.Outcome.Effects) {
		violate("every request is answered", "want %T for request %d, got nothing", e, to.Ref)
	}
	next := m.at.Outcome.Effects[m.at.effect]
	m.at.effect++
	e, ok := next.Effect.(E)
	if !ok || next.Sink != to.Sink || refOf(next.Effect) != to.Ref {
		violate("a request is answered as the protocol says", "want %T for request %d, got %s", e, to.Ref, describe(next.Effect))
	}
	return e
}

func (m *model) refused(to shard.Asker, code wire.Code) {
	if e := expect[*shard.Refused](m, to); to.Sink != nil && e.Err.Code != code {
		violate("a refusal has its code", "request %d: want %s, got %v", to.Ref, code, e.Err)
	}
}

func (m *model) requeued(to shard.Asker, t *task) *shard.Requeued {
	e := expect[*shard.Requeued](m, to)
	if to.Sink == nil {
		return &shard.Requeued{}
	}
	want := wire.NackRequeued
	switch t.status {
	case wire.StatusFailed:
		want = wire.NackDeadLettered
	case wire.StatusCancelled:
		want = wire.NackExpired
	}
	if e.Status != want {
		violate("a worker is told whether a task is tried again", "%+v, told %s", t, e.Status)
	}
	return e
}

func refOf(e shard.Effect) shard.Ref {
	if answer, ok := e.(shard.Referenced); ok {
		return answer.Reference()
	}
	return 0
}

func describe(e shard.Effect) string {
	if r, ok := e.(*shard.Refused); ok {
		return fmt.Sprintf("refused %v: %v", r.TaskID, r.Err)
	}
	return fmt.Sprintf("%T%+v", e, e)
}

// differs compares a task as somebody saw it with what it must be.
func (t *task) differs(seen *wire.Task) string {
	if seen == nil {
		return fmt.Sprintf("task %v is not there", t.id)
	}
	type view struct {
		id                               wire.TaskID
		tenant, command, payload, reason string
		place                            wire.Location
		cause                            wire.DeadCause
		status                           wire.Status
		prio, attempts, most, deliveries int
		expiresMs, timeoutMs             int64
		ended                            string
	}
	want := view{t.id, t.tenant, t.command, t.payload, t.reason, t.place, t.cause, t.status, t.prio, t.attempts, t.maxAttempts, t.deliveries,
		t.expiresMs, t.timeoutMs, ""}
	if t.result != nil {
		want.ended = t.result.CancelCause
	}
	got := view{seen.ID, seen.TenantID, seen.Command, string(seen.Payload), seen.Error, seen.Location, seen.DeadCause, seen.Status,
		seen.Priority, seen.Attempts, seen.MaxAttempts, seen.Deliveries, seen.ExpiresAtMs, seen.TimeoutSeconds * 1000, seen.CancelCause}
	if want != got {
		return fmt.Sprintf("want %+v, got %+v", want, got)
	}
	return ""
}

func sameResult(a, b *wire.ResultRecord) bool {
	return a != nil && b != nil && a.TaskID == b.TaskID && a.Status == b.Status && a.Error == b.Error &&
		a.CancelCause == b.CancelCause &&
		a.CompletedAtMs == b.CompletedAtMs && bytes.Equal(a.Result, b.Result) && slices.EqualFunc(a.Artifacts, b.Artifacts, sameArtifact)
}
