package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codeq/wire"
)

// jobState is how far a delivery has come in the hands of this worker.
type jobState int

const (
	// jobArrived: the frame is here, the server does not know that yet, or
	// after a new connection this worker does not know whether the delivery is
	// still its own. It must not be started.
	jobArrived jobState = iota
	// jobReady: may be started when a handler is free.
	jobReady
	jobRunning
	// jobFinished: has an outcome, and the server has not answered for it.
	jobFinished
)

// job is one delivery from its frame to the server's answer for its outcome.
// The loop owns it; a handler's goroutine reads task and leaseFor.
type job struct {
	// static
	ref      wire.TaskRef
	task     *wire.Task
	leaseFor time.Duration
	runFor   time.Duration // 0 is as long as its lease is renewed
	seq      uint64
	link     *link // that it came over

	// owned by the loop
	state    jobState
	doubtful bool // arrived over an earlier link; a heartbeat will tell
	cancel   context.CancelCauseFunc
	came     time.Time
	began    time.Time
	ranFor   time.Duration
	waits    time.Duration
	dead     bool
	expired  bool
	outcome  Outcome
	asked    int64 // ref of the outcome's frame on the present link, 0 if none
	lost     error // why the delivery is no longer this worker's, nil while it is
	stray    bool  // the session has it and this worker never heard of it
}

func (j *job) started() bool { return !j.began.IsZero() }

// crew is the loop of a Worker and all its state.
type crew struct {
	// static
	worker *Worker
	redial *redialer

	// owned by the loop
	link     *link          // nil while there is none
	session  wire.SessionID // of the last link
	jobs     map[wire.Token]*job
	order    []*job // those not started, as they came
	running  int
	lastRef  int64
	asked    map[int64]question // frames of this link without an answer
	out      []wire.ClientFrame // not composed yet
	message  []byte             // ready for the writer, nil if none
	writing  bool
	received uint64 // highest seq that came over this link
	composed uint64 // highest seq confirmed by message
	handed   uint64 // highest seq confirmed by what left
	carried  int    // jobs that came over an earlier link
	window   int    // last stated on this link
	windows  int    // statements of it without an answer
	heart    *time.Timer
	again    *time.Timer // what was refused for now is said again
	waiting  bool        // again is set
	unheard  bool        // the subscription was refused for now
	refusals int         // for now, without a success in between
	putOff   *wire.Error // the last of them, nil after a success
	rest     *time.Timer // end of the pause after work that could not be begun
	resting  bool        // rest is set
	unbegun  int         // pauses in a row
	stale    *time.Timer // something has waited too long to be started
	flush    *time.Timer // end of patience after a stop
	flushing bool
	draining bool
	stopping error // why the worker stops without waiting, nil while it does not
}

// question is what a ref stands for. Exactly one part is set.
type question struct {
	outcome   *job
	heartbeat []*job
	subscribe bool
	window    bool
}

func (c *crew) ask(q question) wire.Ref {
	c.lastRef++
	c.asked[c.lastRef] = q
	return wire.Ref{Value: c.lastRef, Present: true}
}

// arrive takes a delivery in. One that is here already is not taken twice.
func (c *crew) arrive(frame *wire.TaskFrame) {
	c.received = max(c.received, frame.Seq)
	if c.jobs[frame.Token] != nil {
		return
	}
	j := &job{
		ref:      wire.TaskRef{TaskID: frame.Task.ID, Token: frame.Token},
		task:     frame.Task,
		leaseFor: time.Duration(frame.LeaseForMs) * time.Millisecond,
		runFor:   time.Duration(frame.RunForMs) * time.Millisecond,
		seq:      frame.Seq,
		link:     c.link,
		came:     time.Now(),
	}
	c.jobs[frame.Token] = j
	c.order = append(c.order, j)
}

// confirmed makes the deliveries ready whose confirmation has left.
func (c *crew) confirmed() {
	for _, j := range c.order {
		if j.state == jobArrived && !j.doubtful && j.seq <= c.handed {
			j.state = jobReady
		}
	}
}

// startReady starts handlers up to the window, oldest delivery first.
func (c *crew) startReady(ctx context.Context) {
	if c.ending() {
		c.releaseUnstarted()
		return
	}
	if c.resting {
		c.handBack(func(j *job) bool { return true })
		return
	}
	kept := c.order[:0]
	for _, j := range c.order {
		if j.state != jobReady || c.running >= c.worker.options.Window {
			kept = append(kept, j)
			continue
		}
		var own context.Context
		own, j.cancel = j.bounded(ctx)
		j.state, j.began = jobRunning, time.Now()
		c.running++
		go c.worker.runHandler(own, j)
	}
	clear(c.order[len(kept):])
	c.order = kept
	// What is not ready can not be handed back, so nothing is to be done for it then.
	if i := slices.IndexFunc(c.order, func(j *job) bool { return j.state == jobReady }); i >= 0 {
		c.stale.Reset(time.Until(c.order[i].came.Add(startWithin)))
	}
}

// bounded is the context of a handler. The run has begun for the server when it
// heard that the delivery came, so the end by this clock is not after its own.
func (j *job) bounded(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	own, cancel := context.WithCancelCause(ctx)
	if j.runFor == 0 {
		return own, cancel
	}
	own, stop := context.WithDeadlineCause(own, j.came.Add(j.runFor), ErrRunOver)
	return own, func(cause error) {
		cancel(cause)
		stop()
	}
}

// releaseStale hands back what could be started for too long and was not, so
// that another worker has it.
func (c *crew) releaseStale() {
	c.handBack(func(j *job) bool { return time.Since(j.came) >= startWithin })
}

// handBack hands back what could be started and was not. What is not known to be
// this worker's own is not its to hand back, and without a link nothing is.
func (c *crew) handBack(which func(*job) bool) {
	if c.link == nil {
		return
	}
	kept := c.order[:0]
	var handBack []*job
	for _, j := range c.order {
		if j.state == jobReady && which(j) {
			handBack = append(handBack, j)
			continue
		}
		kept = append(kept, j)
	}
	clear(c.order[len(kept):])
	c.order = kept
	for _, j := range handBack {
		c.finish(j, untouched())
	}
}

// releaseUnstarted hands back what nobody has begun. Without a link it is left
// to the server, which misses this worker soon enough.
func (c *crew) releaseUnstarted() {
	for _, j := range c.order {
		if c.link == nil {
			c.drop(j)
			continue
		}
		c.finish(j, untouched())
	}
	c.order = nil
}

// untouched hands back what no handler has seen.
func untouched() Outcome {
	return Outcome{Kind: Released, why: wire.ReleaseRequest{NotStarted: true}}
}

// finish gives a delivery its outcome and hands it in.
func (c *crew) finish(j *job, outcome Outcome) {
	if outcome.Kind == Released && c.ending() {
		outcome.why.Stopping = true
	}
	if j.state == jobRunning {
		c.pace(j, outcome)
		c.running--
		j.ranFor = time.Since(j.began)
		j.cancel(nil)
	}
	j.state, j.outcome = jobFinished, outcome
	c.handIn(j)
}

// pace makes the worker rest after work that could not be begun. The server is
// told before the task goes back, so that it does not send it here again.
func (c *crew) pace(j *job, outcome Outcome) {
	switch {
	case !outcome.why.NotStarted:
		c.unbegun = 0
	case !c.resting && !c.ending():
		pause := min(firstRest<<min(c.unbegun, 16), longestRest)
		c.worker.client.notice(fmt.Sprintf("task %s could not be begun: %s; taking nothing for %s", j.task.ID, outcome.Reason, pause))
		c.unbegun++
		c.resting = true
		c.rest.Reset(pause)
		c.stateWindow()
	}
}

func (c *crew) restOver() {
	c.resting = false
	c.stateWindow()
}

// handIn sends an outcome, or leaves it for the next link.
func (c *crew) handIn(j *job) {
	if c.link == nil {
		return
	}
	ref := c.ask(question{outcome: j})
	j.asked = ref.Value
	c.out = append(c.out, j.outcome.frame(ref, j.ref))
}

// handInAll sends every outcome that is not on its way over this link.
func (c *crew) handInAll() {
	for _, j := range c.jobs {
		if j.state == jobFinished && j.asked == 0 {
			c.handIn(j)
		}
	}
}

// settle ends a delivery with the server's answer for its outcome.
func (c *crew) settle(j *job, refusal *wire.Error) {
	c.drop(j)
	if j.stray {
		c.stateWindow()
		return
	}
	said := Settlement{Task: j.task, Outcome: j.outcome, Started: j.started(), RanFor: j.ranFor, DeadLetter: j.dead, Expired: j.expired, Wait: j.waits}
	if refusal != nil {
		said.Err = refusal
		if j.lost != nil {
			said.Err = j.lost
		}
	}
	c.worker.options.Settled(said)
	c.stateWindow()
}

// lose notes that a delivery is no longer this worker's. A running handler is
// told; its outcome is handed in all the same, because only an answer gives
// the unit of the window back, and a completion may still count.
func (c *crew) lose(j *job, why string) {
	if j.lost != nil {
		return
	}
	j.lost = fmt.Errorf("%w: %s", ErrLeaseLost, why)
	switch j.state {
	case jobRunning:
		j.cancel(j.lost)
	case jobArrived, jobReady:
		c.order = without(c.order, j)
		if j.link == c.link {
			c.finish(j, Release())
			return
		}
		c.drop(j)
		c.stateWindow()
	}
}

// drop forgets a delivery.
func (c *crew) drop(j *job) {
	delete(c.jobs, j.ref.Token)
	if j.link != c.link {
		c.carried--
	}
}

func without(jobs []*job, gone *job) []*job {
	for i, j := range jobs {
		if j == gone {
			return append(jobs[:i], jobs[i+1:]...)
		}
	}
	return jobs
}
