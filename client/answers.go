package client

import (
	"time"

	"codeq/wire"
)

// take handles the frames of one message of the server.
func (c *crew) take(frames []wire.ServerFrame) {
	for _, frame := range frames {
		switch frame := frame.(type) {
		case *wire.TaskFrame:
			c.arrive(frame)
		case *wire.OK:
			c.answered(frame)
		case *wire.ErrorFrame:
			c.refused(frame)
		case *wire.Revoked:
			if j := c.jobs[frame.Token]; j != nil {
				c.lose(j, frame.Reason)
			}
		case *wire.Draining:
			c.redial.goodbye = true
			c.worker.client.notice("the server is going away: " + frame.Reason)
		}
	}
}

// answer finds what a frame answers and forgets it.
func (c *crew) answer(ref wire.Ref) question {
	q := c.asked[ref.Value]
	delete(c.asked, ref.Value)
	return q
}

func (c *crew) answered(frame *wire.OK) {
	q := c.answer(frame.Ref)
	switch {
	case q.outcome != nil:
		c.refusals, c.putOff = 0, nil
		q.outcome.waits = time.Duration(frame.DelaySeconds) * time.Second
		q.outcome.dead = frame.NackStatus == wire.NackDeadLettered
		q.outcome.expired = frame.NackStatus == wire.NackExpired
		c.settle(q.outcome, nil)
	case q.heartbeat != nil:
		c.beaten(q.heartbeat, frame.Lost)
	case q.window:
		c.windows--
	}
}

// beaten takes the answer to a heartbeat: what it does not call lost is this
// worker's, also what came over an earlier link.
func (c *crew) beaten(named []*job, lost []wire.TaskRef) {
	for _, ref := range lost {
		if j := c.jobs[ref.Token]; j != nil {
			c.lose(j, "the server does not count it as this worker's any more")
		}
	}
	for _, j := range named {
		if j.state == jobArrived && j.doubtful && j.lost == nil {
			j.state, j.doubtful = jobReady, false
		}
	}
}

func (c *crew) refused(frame *wire.ErrorFrame) {
	if !frame.Ref.Present {
		return // about the session as a whole; its end follows
	}
	q := c.answer(frame.Ref)
	switch {
	case q.outcome != nil:
		c.outcomeRefused(q.outcome, frame.Err)
	case q.heartbeat != nil:
		if harmlessFrame.again(frame.Err) {
			c.heart.Reset(min(backoff(0), c.worker.options.Lease/6))
			return
		}
		c.worker.client.notice("heartbeat refused: " + frame.Err.Sentence)
	case q.subscribe:
		c.subscriptionRefused(frame.Err)
	case q.window:
		// The room is another one than this worker thinks; the next change
		// states it again.
		c.windows--
		c.window = -1
	}
}

// subscriptionRefused asks again later, or ends the worker with the reason.
func (c *crew) subscriptionRefused(refusal *wire.Error) {
	if !harmlessFrame.again(refusal) {
		c.stop(refusal)
		return
	}
	c.unheard = true
	c.later(refusal)
}

// outcomeRefused hands an outcome in again, or another one in its place, or
// takes the answer for final.
func (c *crew) outcomeRefused(j *job, refusal *wire.Error) {
	j.asked = 0
	if harmlessFrame.again(refusal) {
		c.later(refusal)
		return
	}
	if other, ok := j.outcome.insteadOf(refusal); ok && j.lost == nil {
		j.outcome = other
		c.handIn(j)
		return
	}
	c.settle(j, refusal)
}

// later says what was refused again after a while. Refusals of one burst
// count once.
func (c *crew) later(refusal *wire.Error) {
	if c.waiting {
		return
	}
	c.waiting, c.putOff = true, refusal
	c.again.Reset(pause(c.refusals, refusal))
	c.refusals++
	if c.refusals == 4 {
		c.worker.client.notice("the server puts this worker off and is asked again: " + refusal.Sentence)
	}
}

func (c *crew) sayAgain() {
	c.waiting = false
	if c.link == nil {
		return // the next link hears it all from the start
	}
	c.handInAll()
	if c.unheard {
		c.unheard = false
		c.subscribe()
	}
}
