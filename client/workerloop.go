package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codeq/wire"
)

// workerLoop is the loop of a Worker and all its state.
type workerLoop struct {
	loop
	worker   *Worker
	ctx      context.Context // of Run
	handlers context.Context // of all handlers, which ctx does not cancel

	// owned by the loop
	session    wire.SessionID // of the last link
	deliveries map[wire.Token]*delivery
	waiting    []*delivery // those not started, as they came
	running    int
	questions  map[int64]question // frames of this link without an answer
	out        []wire.ClientFrame // not composed yet
	received   receipts
	carried    int        // deliveries that came over an earlier link
	window     windowSaid // on this link
	beatAt     time.Time  // of the next heartbeat
	unheard    bool       // the subscription was refused for now
	restEnd    time.Time  // of the pause after work that could not be begun; zero without one
	unbegun    int        // such pauses in a row
	flushEnd   time.Time  // when a stopped worker gives its outcomes up; zero while it does not
	draining   bool
	stopping   error // why the worker stops without waiting, nil while it does not
}

// receipts are the highest numbers of task frames of a link: of those that came, of
// those that the message confirms, and of those whose confirmation has left.
type receipts struct{ here, composed, left uint64 }

// windowSaid is what the server was told of the window, and how often without an answer.
type windowSaid struct{ size, unanswered int }

// question is what a frame with a ref was about. Exactly one part is set.
type question struct {
	outcome   *delivery
	heartbeat []*delivery
	subscribe bool
	window    bool
}

// run works from the first link to the last answer. No handler runs when it returns.
func (w *Worker) run(ctx context.Context, redial *redialer, first *link) error {
	l := &workerLoop{
		loop: newLoop(w.client, redial), worker: w, ctx: ctx, handlers: context.WithoutCancel(ctx),
		deliveries: map[wire.Token]*delivery{}, questions: map[int64]question{},
	}
	l.drain, l.stop, l.events = w.draining, ctx.Done(), w.events
	l.loop.run(l, first)
	if len(l.deliveries) == 0 {
		return l.stopping
	}
	return fmt.Errorf("%w; the outcomes of %d tasks could not be handed in%s", l.stopping, len(l.deliveries), l.why())
}

// step does what is due, starts handlers and composes the next message.
func (l *workerLoop) step(now time.Time) (wakeAt time.Time, over bool) {
	if l.pauseOver(now) {
		l.askAgain()
	}
	if !l.restEnd.IsZero() && !now.Before(l.restEnd) {
		l.restEnd = time.Time{}
		l.stateWindow()
	}
	if !now.Before(l.beatAt) {
		l.beat()
	}
	if stale := l.stale(); !stale.IsZero() && !now.Before(stale) {
		l.handBack(func(d *delivery) bool { return now.Sub(d.came) >= startWithin })
	}
	l.startReady()
	l.composeNext()
	over = l.over(now)
	for _, at := range []time.Time{l.beatAt, l.restEnd, l.stale(), l.flushEnd} {
		wakeAt = earlier(wakeAt, at)
	}
	return wakeAt, over
}

// ending reports that no new work is begun.
func (l *workerLoop) ending() bool { return l.draining || l.stopping != nil }

func (l *workerLoop) drained() {
	l.draining = true
	if n := l.refusedOutcomes(); n > 0 {
		l.client.notice(fmt.Sprintf("waiting to hand in the outcomes of %d tasks; the server does not take them yet%s", n, l.why()))
	}
	l.stateWindow()
}

func (l *workerLoop) stopped() { l.stopFor(context.Cause(l.ctx)) }

// stopFor cancels what runs. Its outcomes are still waited for.
func (l *workerLoop) stopFor(cause error) {
	l.stopping = cause
	for _, d := range l.deliveries {
		if d.state == running {
			d.cancel(ErrStopping)
		}
	}
	l.stateWindow()
}

// over reports the end of the loop: nothing in hand, and the server has said that
// nothing more comes; or the outcomes of a stopped worker could not be handed in.
func (l *workerLoop) over(now time.Time) bool {
	if !l.ending() || l.running > 0 {
		return false
	}
	if len(l.deliveries) == 0 && (l.link == nil || l.window.unanswered == 0) {
		return true
	}
	if l.stopping != nil && l.flushEnd.IsZero() {
		l.flushEnd = now.Add(flushFor)
	}
	return !l.flushEnd.IsZero() && !now.Before(l.flushEnd)
}

// refusedOutcomes counts what waits to be handed in because the server puts it off,
// or is away.
func (l *workerLoop) refusedOutcomes() (n int) {
	for _, d := range l.deliveries {
		if d.state == ended && !d.unknown && (l.link == nil || l.putOff != nil) {
			n++
		}
	}
	return n
}

// why the server takes no outcomes, to stand behind that.
func (l *workerLoop) why() string {
	switch {
	case l.link == nil:
		return ": there is no connection"
	case l.putOff != nil:
		return fmt.Sprintf(": %s (%s)", l.putOff.Sentence, l.putOff.Code)
	}
	return ""
}

// connected sends the outcomes that the last link may have lost, then a heartbeat for
// everything else in hand, which binds it to this session if it is another one, then
// the subscription.
func (l *workerLoop) connected() {
	welcome := l.link.welcome
	l.carried, l.window, l.unheard, l.received = len(l.deliveries), windowSaid{}, false, receipts{}
	if l.redial.hello.Resume != "" && welcome.SessionID == l.session {
		l.resumed(welcome.Held)
	}
	l.session = welcome.SessionID
	l.redial.resume(welcome.Resume)
	l.handInAll()
	l.beat()
	l.subscribe()
	l.worker.options.Health(nil)
	l.worker.options.Connected(welcome)
}

// resumed sorts what is in hand by what the server says that the session still
// has. The rest is lost, though an outcome that is there already may count. What
// this worker does not know never arrived; it goes back at once.
func (l *workerLoop) resumed(held []wire.TaskRef) {
	for _, ref := range held {
		d := l.deliveries[ref.Token]
		if d == nil {
			l.deliveries[ref.Token] = &delivery{ref: ref, link: l.link, state: ended, outcome: Release(), unknown: true}
			continue
		}
		if d.link != l.link {
			d.link = l.link
			l.carried--
		}
		if d.state == arrived {
			d.state, d.doubtful = ready, false
		}
	}
	for _, d := range l.deliveries {
		if d.link != l.link && d.state != ended {
			l.lose(d, "it is not in hand of the session any more")
		}
	}
}

// disconnected lets handlers go on; what has not been started waits until a heartbeat
// over the next link says whose it is.
func (l *workerLoop) disconnected(err error) {
	l.worker.options.Health(err)
	if errors.Is(err, errReplaced) {
		l.redial.resume("")
	}
	l.out = nil
	clear(l.questions)
	for _, d := range l.deliveries {
		d.asked = wire.Ref{}
	}
	for _, d := range l.waiting {
		d.state, d.doubtful = arrived, true
	}
}

// dialFailed never gives up: what runs may still be handed in when the server is back.
func (l *workerLoop) dialFailed(err error) bool { return l.redial.worthAnother(workerLink, err) }

func (l *workerLoop) handed() {}

// written makes the deliveries ready whose confirmation has left.
func (l *workerLoop) written() {
	l.received.left = l.received.composed
	for _, d := range l.waiting {
		if d.state == arrived && !d.doubtful && d.seq <= l.received.left {
			d.state = ready
		}
	}
}

// composeNext makes the next message of what waits, what confirms deliveries first.
func (l *workerLoop) composeNext() {
	if !l.mayCompose() {
		return
	}
	first := 0
	if l.received.here > l.received.composed {
		l.received.composed, first = l.received.here, 1
	}
	n := l.compose(first+len(l.out), func(i int) wire.ClientFrame {
		if i < first {
			return &wire.Received{Through: l.received.composed}
		}
		return l.out[i-first]
	})
	l.out = slices.Delete(l.out, 0, max(0, n-first))
}

func (l *workerLoop) ask(q question) wire.Ref {
	ref := l.ref()
	l.questions[ref.Value] = q
	return ref
}

func (l *workerLoop) subscribe() {
	l.window.size = l.wantedWindow()
	l.out = append(l.out, &wire.Subscribe{
		Ref:          l.ask(question{subscribe: true}),
		Commands:     l.worker.options.Commands,
		LeaseSeconds: int(l.worker.options.Lease / time.Second),
		Window:       l.window.size,
	})
}

// wantedWindow leaves out what an earlier session brought along: the server
// counts only what it sent over this one.
func (l *workerLoop) wantedWindow() int {
	if l.ending() || !l.restEnd.IsZero() {
		return 0
	}
	return max(0, l.worker.options.Window-l.carried)
}

// stateWindow tells the server when the window is another one than it knows.
func (l *workerLoop) stateWindow() {
	wanted := l.wantedWindow()
	if l.link == nil || wanted == l.window.size {
		return
	}
	l.window.size = wanted
	l.window.unanswered++
	l.out = append(l.out, &wire.Window{Ref: l.ask(question{window: true}), Size: wanted})
}

// beat renews the leases of all that is in hand, by token.
func (l *workerLoop) beat() {
	l.beatAt = time.Now().Add(l.worker.options.Lease / 3)
	if l.link == nil {
		return
	}
	var named []*delivery
	for _, d := range l.deliveries {
		if d.lost == nil && !d.asked.Present {
			named = append(named, d)
		}
	}
	for part := range slices.Chunk(named, wire.MaxHeartbeatTasks) {
		beat := &wire.Heartbeat{
			Ref:           l.ask(question{heartbeat: part}),
			ExtendSeconds: int(l.worker.options.Lease / time.Second),
		}
		for _, d := range part {
			beat.Tasks = append(beat.Tasks, d.ref)
		}
		l.out = append(l.out, beat)
	}
}
