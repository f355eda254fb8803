package client

import (
	"time"

	"codeq/wire"
)

// maxMessageBytes is where a client message is closed and the next begun; only
// a single larger frame makes a larger one.
const maxMessageBytes = 256 << 10

// loop is the part that a Session, a Worker and a watch have in common: one goroutine that owns
// one link at a time, hands it one message at a time, dials again when the link is lost,
// and pauses after a refusal. The rest is its driver.
type loop struct {
	// static
	client *Client
	redial *redialer
	timer  *time.Timer

	// owned by the loop
	drain    <-chan struct{} // closed to take nothing new, nil after that
	stop     <-chan struct{} // closed to end at once, nil after that
	events   <-chan func()   // what other goroutines want done here, nil while nothing is taken
	link     *link           // nil while there is none
	message  []byte          // ready for the writer, nil if none
	writing  bool
	lastRef  int64
	refusals int         // in a row, without a success in between
	putOff   *wire.Error // the last of them, nil after a success
	pauseEnd time.Time   // of the pause after a refusal; zero without a pause
}

// driver is what a Session, a Worker or a watch does in its loop. All methods run on the loop.
type driver interface {
	// step runs before each wait. It does what can be done now and returns when it must
	// run again at the latest, zero for no such time, and whether the loop is over.
	step(now time.Time) (wakeAt time.Time, over bool)
	// drained and stopped run once, when those channels are closed.
	drained()
	stopped()
	// connected runs when there is a new link, disconnected when the link has ended
	// with err and is gone.
	connected()
	disconnected(err error)
	// dialFailed reports whether to dial again.
	dialFailed(err error) bool
	// handed runs when the writer has taken the message, written when it has left.
	handed()
	written()
	receive(frame wire.ServerFrame)
}

func newLoop(c *Client, redial *redialer) loop {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return loop{client: c, redial: redial, timer: timer}
}

// run drives the loop from the first link until a step says that it is over.
func (l *loop) run(d driver, first *link) {
	l.up(d, first)
	for {
		wakeAt, over := d.step(time.Now())
		if over {
			break
		}
		if wakeAt = earlier(wakeAt, l.pauseEnd); wakeAt.IsZero() {
			l.timer.Stop()
		} else {
			l.timer.Reset(time.Until(wakeAt))
		}
		l.wait(d)
	}
	l.timer.Stop()
	if l.link != nil {
		l.link.close()
	}
}

// earlier is the earlier of two times of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// wait takes the next event.
func (l *loop) wait(d driver) {
	var outgoing chan []byte
	var incoming chan []wire.ServerFrame
	var written, gone chan struct{}
	if l.link != nil {
		incoming, written, gone = l.link.incoming, l.link.written, l.link.gone
		if l.message != nil && !l.writing {
			outgoing = l.link.outgoing
		}
	}
	select {
	case <-l.drain:
		l.drain = nil
		d.drained()
	case <-l.stop:
		l.stop = nil
		d.stopped()
	case event := <-l.events:
		event()
	case <-l.timer.C:
	case outgoing <- l.message:
		l.message, l.writing = nil, true
		d.handed()
	case <-written:
		l.writing = false
		d.written()
	case frames := <-incoming:
		l.receive(d, frames)
	case <-gone:
		l.down(d)
	case next := <-l.redial.dialled:
		l.dialled(d, next)
	}
}

func (l *loop) receive(d driver, frames []wire.ServerFrame) {
	for _, frame := range frames {
		if _, ok := frame.(*wire.Draining); ok {
			l.redial.goodbye = true
		}
		d.receive(frame)
	}
}

func (l *loop) up(d driver, next *link) {
	l.link, l.message, l.writing = next, nil, false
	d.connected()
	l.receive(d, next.first)
}

func (l *loop) down(d driver) {
	err := l.link.err
	l.client.notice("connection lost: " + err.Error())
	l.link.close()
	l.link, l.message, l.writing = nil, nil, false
	d.disconnected(err)
	l.redial.again()
}

// dialled goes on with the link of an attempt, or begins another attempt.
func (l *loop) dialled(d driver, next dialled) {
	l.redial.took(next)
	switch {
	case next.err == nil:
		l.client.notice("connected to " + l.client.URL() + " again")
		l.up(d, next.link)
	case d.dialFailed(next.err):
		l.redial.again()
	}
}

// ref is a number for the next frame, to recognise its answer.
func (l *loop) ref() wire.Ref {
	l.lastRef++
	return wire.Ref{Value: l.lastRef, Present: true}
}

// mayCompose reports whether the writer is free for another message. The longer it was
// busy, the more frames go into one message.
func (l *loop) mayCompose() bool { return l.link != nil && !l.writing && l.message == nil }

// compose makes a message of up to n frames and returns how many fit.
func (l *loop) compose(n int, frame func(i int) wire.ClientFrame) int {
	message := []byte{'['}
	for i := range n {
		mark := len(message)
		if i > 0 {
			message = append(message, ',')
		}
		message = l.link.append(message, frame(i))
		if i > 0 && len(message) > maxMessageBytes {
			message, n = message[:mark], i
			break
		}
	}
	if n > 0 {
		l.message = append(message, ']')
	}
	return n
}

// pause waits before refused requests are sent again. Refusals during a pause count
// once. The fourth in a row is told to people, after what.
func (l *loop) pause(refusal *wire.Error, what string) {
	if !l.pauseEnd.IsZero() {
		return
	}
	l.putOff, l.pauseEnd = refusal, time.Now().Add(pause(l.refusals, 0, refusal))
	if l.refusals++; l.refusals == 4 {
		l.client.notice(what + " and is asked again: " + refusal.Sentence)
	}
}

// pauseOver reports, once, that a pause has ended.
func (l *loop) pauseOver(now time.Time) bool {
	if l.pauseEnd.IsZero() || now.Before(l.pauseEnd) {
		return false
	}
	l.pauseEnd = time.Time{}
	return true
}

// succeeded ends a row of refusals.
func (l *loop) succeeded() { l.refusals, l.putOff = 0, nil }
