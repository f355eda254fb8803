package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// readResult waits for the end of a task. The answer that there is none yet
// says no more than the status, which is left to the reads of the task.
func (c *client) readResult(ctx context.Context, k known, waitSeconds int) output {
	answer, err := c.api.Do(ctx, "GET", fmt.Sprintf("/tasks/%v/result?waitSeconds=%d", k.id, waitSeconds), "")
	if err != nil {
		return c.answered(err)
	}
	var parts struct{ Task, Result json.RawMessage }
	if err := json.Unmarshal(answer.Body, &parts); err != nil {
		c.t.Errorf("a result is answered with %s: %v", answer.Body, err)
	}
	task, errTask := wire.ParseTask(parts.Task)
	record, errRecord := wire.ParseResultRecord(parts.Result)
	if errTask != nil || errRecord != nil {
		c.t.Errorf("a result is answered with %s: %v, %v", answer.Body, errTask, errRecord)
		return output{unknown: true}
	}
	out := seen(task)
	out.result = string(record.Result) + record.Error
	if record.Status != task.Status {
		c.t.Errorf("task %v is %s and its result is %s", k.id, task.Status, record.Status)
	}
	return out
}

// work is a worker over sessions, which it breaks off now and then with what it
// has in hand.
func (c *client) work() {
	for {
		p := c.dial()
		if p == nil {
			return
		}
		c.workOn(p)
		p.Close()
	}
}

// workOn takes tasks until the session or the world ends.
func (c *client) workOn(p *blackbox.Peer) {
	since := c.history.now()
	ctx, cancel := c.ask()
	err := p.Subscribe(ctx, command, 1+c.chance.IntN(4), 1+c.chance.IntN(2))
	cancel()
	if err != nil {
		return
	}
	for {
		select {
		case <-c.over.Done():
			return
		case <-p.Gone():
			// What came before the end is ours, and another session may end it.
			for len(p.Tasks) > 0 {
				c.mayBeBroken(since, c.take(since, <-p.Tasks))
			}
			return
		case f := <-p.Tasks:
			d := c.take(since, f)
			if !c.calm.Load() && c.one(25) {
				c.mayBeBroken(since, d)
				c.breakOff(since, p, d)
				return
			}
			c.treat(sessionHands{p}, d)
			select {
			case <-p.Gone():
				c.mayBeBroken(since, d)
			default:
			}
		}
	}
}

// mayBeBroken notes of a delivery that its session is gone. A server alone is gone itself then, and the next
// life takes it for confirmed; a leader to which a node has passed the session may not have heard of the
// arrival, and hands the task out again.
func (c *client) mayBeBroken(since int64, d delivery) {
	if c.server.passed {
		c.history.broke(d.ref.Token, since)
	}
}

// delivery is a task in the hands of a client.
type delivery struct {
	label  string
	ref    wire.TaskRef
	number int
}

// take notes a delivery.
func (c *client) take(since int64, f *wire.TaskFrame) delivery {
	d := delivery{label: labelOf(f.Task.Payload), ref: blackbox.RefOf(f), number: f.Task.Deliveries}
	c.history.leased(d.label, f.Token, f.LeaseUntilMs)
	c.history.note(c.number, d.label, since, input{verb: grant, token: f.Token, delivery: d.number},
		output{id: f.Task.ID, attempts: f.Task.Attempts})
	return d
}

// breakOff ends the session in the middle of the work, and completes the task
// over another one or over HTTP, if it still can.
func (c *client) breakOff(since int64, p *blackbox.Peer, d delivery) {
	c.history.left(d.ref.Token)
	for len(p.Tasks) > 0 {
		next := c.take(since, <-p.Tasks)
		c.history.left(next.ref.Token)
		c.mayBeBroken(since, next)
	}
	p.Close()
	next, done := c.otherHands()
	defer done()
	if next == nil {
		return
	}
	c.beat(next, d)
	c.finish(next, d, wire.StatusCompleted)
}

// treat does to a delivery what workers do, good and bad.
func (c *client) treat(h hands, d delivery) {
	draw := c.chance.IntN(20)
	if c.calm.Load() {
		draw = 19
	}
	switch draw {
	case 0: // answers twice, as after a lost answer
		c.finish(h, d, wire.StatusCompleted)
		c.finish(h, d, wire.StatusCompleted)
	case 1: // changes its mind
		c.finish(h, d, wire.StatusCompleted)
		c.finish(h, d, wire.StatusFailed)
	case 2:
		c.handBack(h, d, "nack")
	case 3:
		c.handBack(h, d, "release")
	case 4: // hands back and completes all the same
		c.handBack(h, d, "abandon")
		c.finish(h, d, wire.StatusCompleted)
	case 5: // is slow, and says so
		c.beat(h, d)
		c.pause(50 * time.Millisecond)
		c.beat(h, d)
		c.finish(h, d, wire.StatusCompleted)
	case 6: // is so slow that somebody else gets the task; once, since it costs a long delay after that
		if d.number == 1 {
			c.pause(2200 * time.Millisecond)
			c.beat(h, d)
		}
		c.finish(h, d, wire.StatusCompleted)
	case 7:
		c.finish(h, d, wire.StatusFailed)
		c.handBack(h, d, "release")
	default:
		if d.number > 1 || !c.one(40) || c.calm.Load() { // otherwise it forgets the task
			c.finish(h, d, wire.StatusCompleted)
		}
	}
}

// outcome is what a worker says of a delivery; it is the same whenever it is
// said again.
func (c *client) outcome(d delivery, status wire.Status) (wire.ResultRequest, input) {
	r := wire.ResultRequest{Status: status}
	told := fmt.Sprintf("client %d, delivery %d", c.number, d.number)
	if status == wire.StatusCompleted {
		told = fmt.Sprintf(`{"by":%q}`, told)
		r.Result = []byte(told)
	} else {
		r.Error = told
	}
	return r, input{verb: complete, token: d.ref.Token, status: status, result: told}
}

// finish ends the task. Without an answer, or put off, it says the same again, over another
// session or over HTTP, as a worker must.
func (c *client) finish(h hands, d delivery, status wire.Status) {
	r, in := c.outcome(d, status)
	for c.over.Err() == nil {
		ctx, cancel := c.ask()
		call := c.history.now()
		in.by = h.by()
		out := c.answered(h.complete(ctx, d.ref, r))
		cancel()
		c.history.note(c.number, d.label, call, in, out)
		if !out.unknown && !putOff(out.code) {
			if out.code == "" {
				c.ended.Add(1)
			}
			return
		}
		if other, done := c.otherHands(); other != nil {
			defer done()
			h = other
		}
	}
}

func (c *client) handBack(h hands, d delivery, how string) {
	ctx, cancel := c.ask()
	defer cancel()
	call := c.history.now()
	out := c.answered(h.giveBack(ctx, d.ref, how))
	c.history.note(c.number, d.label, call, input{verb: giveBack, by: h.by(), token: d.ref.Token, costs: how != "release"}, out)
}

func (c *client) beat(h hands, d delivery) {
	ctx, cancel := c.ask()
	defer cancel()
	call := c.history.now()
	untilMs, err := h.heartbeat(ctx, d.ref)
	out := c.answered(err)
	c.history.note(c.number, d.label, call, input{verb: heartbeat, by: h.by(), token: d.ref.Token}, out)
	if err == nil {
		c.history.leased(d.label, d.ref.Token, untilMs)
	}
}
