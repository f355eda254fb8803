package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codeq/wire"
)

func newCrew(w *Worker, redial *redialer) *crew {
	return &crew{
		worker: w,
		redial: redial,
		jobs:   map[wire.Token]*job{},
		asked:  map[int64]question{},
		heart:  time.NewTimer(w.options.Lease / 3),
		again:  stoppedTimer(),
		rest:   stoppedTimer(),
		stale:  stoppedTimer(),
		flush:  stoppedTimer(),
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// run is the loop, from the first link to the last answer. No handler runs
// when it returns.
func (c *crew) run(ctx context.Context, first *link) error {
	defer c.end()
	handlers := context.WithoutCancel(ctx)
	drain, stop := c.worker.draining, ctx.Done()
	c.up(first)
	for {
		c.startReady(handlers)
		c.compose()
		if over, err := c.over(); over {
			return err
		}
		var outgoing chan []byte
		var incoming chan []wire.ServerFrame
		var written, gone chan struct{}
		if c.link != nil {
			incoming, written, gone = c.link.incoming, c.link.written, c.link.gone
			if c.message != nil && !c.writing {
				outgoing = c.link.outgoing
			}
		}
		select {
		case <-drain:
			drain = nil
			c.drain()
		case <-stop:
			stop = nil
			c.stop(context.Cause(ctx))
		case done := <-c.worker.finished:
			c.finish(done.job, done.outcome)
		case <-c.heart.C:
			c.beat()
		case <-c.again.C:
			c.sayAgain()
		case <-c.rest.C:
			c.restOver()
		case <-c.stale.C:
			c.releaseStale()
		case <-c.flush.C:
			return c.giveUp()
		case outgoing <- c.message:
			c.message, c.writing = nil, true
		case <-written:
			c.writing, c.handed = false, c.composed
			c.confirmed()
		case frames := <-incoming:
			c.take(frames)
		case <-gone:
			c.down()
		case next := <-c.redial.dialled:
			c.redialled(next)
		}
	}
}

// ending reports that no new work is begun.
func (c *crew) ending() bool { return c.draining || c.stopping != nil }

func (c *crew) drain() {
	c.draining = true
	if n := c.refusedOutcomes(); n > 0 {
		c.worker.client.notice(fmt.Sprintf("waiting to hand in the outcomes of %d tasks; the server does not take them yet%s", n, c.why()))
	}
	c.stateWindow()
}

// stop cancels what runs. Its outcomes are still waited for.
func (c *crew) stop(why error) {
	c.stopping = why
	for _, j := range c.jobs {
		if j.state == jobRunning {
			j.cancel(ErrStopping)
		}
	}
	c.stateWindow()
}

// over reports the end of the loop: nothing in hand, and the server has said
// that nothing more comes.
func (c *crew) over() (bool, error) {
	if !c.ending() || c.running > 0 {
		return false, nil
	}
	if len(c.jobs) == 0 && (c.link == nil || c.windows == 0) {
		return true, c.stopping
	}
	if c.stopping != nil && !c.flushing {
		c.flushing = true
		c.flush.Reset(flushFor)
	}
	return false, nil
}

func (c *crew) giveUp() error {
	if len(c.jobs) == 0 {
		return c.stopping
	}
	return fmt.Errorf("%w; the outcomes of %d tasks could not be handed in%s", c.stopping, len(c.jobs), c.why())
}

// refusedOutcomes counts what waits to be handed in because the server puts it off,
// or is away.
func (c *crew) refusedOutcomes() (n int) {
	for _, j := range c.jobs {
		if j.state == jobFinished && !j.stray && (c.link == nil || c.putOff != nil) {
			n++
		}
	}
	return n
}

// why the server takes no outcomes, to stand behind that.
func (c *crew) why() string {
	switch {
	case c.link == nil:
		return ": there is no connection"
	case c.putOff != nil:
		return fmt.Sprintf(": %s (%s)", c.putOff.Sentence, c.putOff.Code)
	}
	return ""
}

// up starts on a fresh link: first the outcomes that the last one may have
// lost, then a sign of life for everything else in hand, which binds it to
// this session if it is another one, then the subscription.
func (c *crew) up(l *link) {
	c.link, c.carried, c.windows = l, len(c.jobs), 0
	c.unheard = false
	c.received, c.composed, c.handed = 0, 0, 0
	if c.goesOn(l) {
		c.takeUp(l.welcome.Held)
	}
	c.remember(l.welcome)
	c.handInAll()
	c.beat()
	c.subscribe()
	c.worker.options.Health(nil)
	c.worker.options.Connected(l.welcome)
	c.take(l.first)
}

func (c *crew) subscribe() {
	c.window = c.wantedWindow()
	c.out = append(c.out, &wire.Subscribe{
		Ref:          c.ask(question{subscribe: true}),
		Commands:     c.worker.options.Commands,
		LeaseSeconds: int(c.worker.options.Lease / time.Second),
		Window:       c.window,
	})
}

// wantedWindow leaves out what an earlier session brought along: the server
// counts only what it sent over this one.
func (c *crew) wantedWindow() int {
	if c.ending() || c.resting {
		return 0
	}
	return max(0, c.worker.options.Window-c.carried)
}

// stateWindow tells the server when the window is another one than it knows.
func (c *crew) stateWindow() {
	wanted := c.wantedWindow()
	if c.link == nil || wanted == c.window {
		return
	}
	c.window = wanted
	c.windows++
	c.out = append(c.out, &wire.Window{Ref: c.ask(question{window: true}), Size: wanted})
}

// beat renews the leases of all that is in hand, by token.
func (c *crew) beat() {
	c.heart.Reset(c.worker.options.Lease / 3)
	if c.link == nil {
		return
	}
	var named []*job
	for _, j := range c.jobs {
		if j.lost == nil && j.asked == 0 {
			named = append(named, j)
		}
	}
	for len(named) > 0 {
		part := named[:min(len(named), wire.MaxHeartbeatTasks)]
		named = named[len(part):]
		beat := &wire.Heartbeat{
			Ref:           c.ask(question{heartbeat: part}),
			ExtendSeconds: int(c.worker.options.Lease / time.Second),
		}
		for _, j := range part {
			beat.Tasks = append(beat.Tasks, j.ref)
		}
		c.out = append(c.out, beat)
	}
}

// compose makes the next message of what waits, once the writer is free. What
// confirms deliveries goes first.
func (c *crew) compose() {
	if c.link == nil || c.writing || c.message != nil {
		return
	}
	message := []byte{'['}
	if c.received > c.composed {
		c.composed = c.received
		message = wire.AppendClientFrame(message, &wire.Received{Through: c.received})
	}
	taken := 0
	for _, frame := range c.out {
		mark := len(message)
		if mark > 1 {
			message = append(message, ',')
		}
		message = wire.AppendClientFrame(message, frame)
		if mark > 1 && len(message) > maxMessageBytes {
			message = message[:mark]
			break
		}
		taken++
	}
	rest := copy(c.out, c.out[taken:])
	clear(c.out[rest:])
	c.out = c.out[:rest]
	if len(message) > 1 {
		c.message = append(message, ']')
	}
}

// down notes that the link is gone. Handlers go on; what has not been started
// waits until a heartbeat over the next link says whose it is.
func (c *crew) down() {
	c.worker.client.notice("connection lost: " + c.link.err.Error())
	c.worker.options.Health(c.link.err)
	if errors.Is(c.link.err, errReplaced) {
		c.redial.resume("")
	}
	c.link.close()
	c.link, c.out, c.message, c.writing = nil, nil, nil, false
	clear(c.asked)
	for _, j := range c.jobs {
		j.asked = 0
	}
	for _, j := range c.order {
		j.state, j.doubtful = jobArrived, true
	}
	c.redial.again()
}

// redialled takes the outcome of an attempt. The loop does not give up: what
// it runs may still be handed in when the server is back.
func (c *crew) redialled(next dialled) {
	c.redial.took(next)
	if next.err == nil {
		c.worker.client.notice("connected to " + c.worker.client.URL() + " again")
		c.up(next.link)
		return
	}
	c.redial.worthAnother(workerLink, next.err) // always is: what is in hand may still count
	c.redial.again()
}

func (c *crew) end() {
	c.heart.Stop()
	c.again.Stop()
	c.rest.Stop()
	c.stale.Stop()
	c.flush.Stop()
	if c.link != nil {
		c.link.close()
	}
}
