package client

import (
	"time"

	"codeq/wire"
)

func (l *workerLoop) receive(frame wire.ServerFrame) {
	switch frame := frame.(type) {
	case *wire.TaskFrame:
		l.arrive(frame)
	case *wire.OK:
		l.answered(frame)
	case *wire.ErrorFrame:
		l.refused(frame)
	case *wire.Revoked:
		if d := l.deliveries[frame.Token]; d != nil {
			l.lose(d, frame.Reason)
		}
	case *wire.Draining:
		l.client.notice("the server sends no more tasks: " + frame.Reason)
	}
}

// answer finds what a frame answers and forgets it.
func (l *workerLoop) answer(ref wire.Ref) question {
	q := l.questions[ref.Value]
	delete(l.questions, ref.Value)
	return q
}

func (l *workerLoop) answered(frame *wire.OK) {
	q := l.answer(frame.Ref)
	switch {
	case q.outcome != nil:
		l.succeeded()
		l.outcomeTaken(q.outcome, Ending{
			DeadLetter: frame.NackStatus == wire.NackDeadLettered,
			Expired:    frame.NackStatus == wire.NackExpired,
			Wait:       time.Duration(frame.DelaySeconds) * time.Second,
		})
	case q.heartbeat != nil:
		l.beaten(q.heartbeat, frame.Lost)
	case q.window:
		l.window.unanswered--
	}
}

// beaten takes the answer to a heartbeat: what it does not call lost is this
// worker's, also what came over an earlier link.
func (l *workerLoop) beaten(named []*delivery, lost []wire.TaskRef) {
	for _, ref := range lost {
		if d := l.deliveries[ref.Token]; d != nil {
			l.lose(d, "the server does not count it as this worker's any more")
		}
	}
	for _, d := range named {
		if d.state == arrived && d.doubtful && d.lost == nil {
			d.state, d.doubtful = ready, false
		}
	}
}

func (l *workerLoop) refused(frame *wire.ErrorFrame) {
	if !frame.Ref.Present {
		return // about the session as a whole; its end follows
	}
	q := l.answer(frame.Ref)
	switch {
	case q.outcome != nil:
		l.outcomeRefused(q.outcome, frame.Err)
	case q.heartbeat != nil:
		if harmlessFrame.again(frame.Err) {
			l.beatAt = time.Now().Add(min(backoff(0), l.worker.options.Lease/6))
			return
		}
		l.client.notice("heartbeat refused: " + frame.Err.Sentence)
	case q.subscribe && harmlessFrame.again(frame.Err):
		l.unheard = true
		l.later(frame.Err)
	case q.subscribe:
		l.stopFor(frame.Err)
	case q.window:
		// The server knows another window than this worker thinks; the next change
		// states it again.
		l.window.unanswered--
		l.window.size = -1
	}
}

// outcomeRefused hands an outcome in again, or another one in its place, or
// takes the answer for final.
func (l *workerLoop) outcomeRefused(d *delivery, refusal *wire.Error) {
	d.asked = wire.Ref{}
	if harmlessFrame.again(refusal) {
		l.later(refusal)
		return
	}
	if other, ok := d.outcome.insteadOf(refusal); ok && d.lost == nil {
		d.outcome = other
		l.handIn(d)
		return
	}
	l.outcomeTaken(d, Ending{Err: refusal})
}

func (l *workerLoop) later(refusal *wire.Error) {
	l.pause(refusal, "the server puts this worker off")
}

// askAgain sends what was refused before the pause. Without a link, the next one
// begins with all of it.
func (l *workerLoop) askAgain() {
	if l.link == nil {
		return
	}
	l.handInAll()
	if l.unheard {
		l.unheard = false
		l.subscribe()
	}
}
