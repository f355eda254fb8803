package session

import (
	"cmp"
	"slices"
	"strconv"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// delivery is one task frame that was put into the outbox.
type delivery struct {
	ref wire.TaskRef
	seq uint64
	// payloadBytes are on their way to the client; 0 once it has taken them.
	payloadBytes int
	// confirmed: the client has the frame, and the shard knows it or will be told.
	confirmed bool
	// ending: a frame that ends it was posted to the shard.
	ending bool
}

// deliveries are the tasks that were sent to the client. A delivery is in flight until the
// worker has answered for it, even if its lease has ended: until then it takes one credit.
type deliveries struct {
	byRef map[wire.TaskRef]*delivery
	// unconfirmed are in the order of seq. A frame that names its delivery confirms it and
	// leaves it in the list; it is removed when its seq is confirmed, or when more than half of
	// the list is confirmed.
	unconfirmed []*delivery
	open        int
	// again are deliveries that the client has confirmed and whose shard was full; isAgain has
	// the same ones.
	again   []wire.TaskRef
	isAgain map[wire.TaskRef]bool

	lastSeq    uint64
	writtenSeq uint64
	// confirmedSeq: the client has confirmed every seq up to this one.
	confirmedSeq uint64
	// pingedSeq is the payload of the last ping; underWay says that its pong has not come.
	pingedSeq uint64
	underWay  bool
	// takenBytes is the payload that was confirmed in this step.
	takenBytes int
}

func newDeliveries() deliveries {
	return deliveries{byRef: make(map[wire.TaskRef]*delivery), isAgain: make(map[wire.TaskRef]bool)}
}

func (d *deliveries) inFlight() int { return len(d.byRef) }

// arrived is how many of those in flight are confirmed.
func (d *deliveries) arrived() int {
	n := 0
	for _, one := range d.byRef {
		if one.confirmed {
			n++
		}
	}
	return n
}

func (d *deliveries) add(ref wire.TaskRef, payloadBytes int) (seq uint64) {
	d.lastSeq++
	one := &delivery{ref: ref, seq: d.lastSeq, payloadBytes: payloadBytes}
	d.byRef[ref] = one
	d.unconfirmed = append(d.unconfirmed, one)
	d.open++
	return d.lastSeq
}

// hold adds a delivery that an earlier socket of the session has sent.
func (d *deliveries) hold(ref wire.TaskRef) {
	d.byRef[ref] = &delivery{ref: ref, confirmed: true}
}

// remove removes a delivery and is how many credits come back for it: 1, or 0 if it was removed
// before.
func (d *deliveries) remove(ref wire.TaskRef) int {
	if d.byRef[ref] == nil {
		return 0
	}
	delete(d.byRef, ref)
	return 1
}

// ends marks a delivery that a frame ends, and reports whether the answer to the frame returns
// its credit: only the answer to the first frame does.
func (d *deliveries) ends(ref wire.TaskRef) (hasCredit bool) {
	one := d.byRef[ref]
	if one == nil || one.ending {
		return false
	}
	one.ending = true
	return true
}

// confirmNamed confirms a delivery whose token the client has sent.
func (d *deliveries) confirmNamed(ref wire.TaskRef) {
	one := d.byRef[ref]
	if one == nil || one.confirmed {
		return
	}
	d.arrives(one)
	d.compact()
}

// arrives marks a delivery that the client has.
func (d *deliveries) arrives(one *delivery) {
	one.confirmed = true
	d.open--
	d.takenBytes += one.payloadBytes
	one.payloadBytes = 0
}

// compact removes confirmed deliveries once they are more than half of the list. Otherwise one
// delivery that is never confirmed would let the list grow without bound.
func (d *deliveries) compact() {
	const smallEnough = 64
	if len(d.unconfirmed) < smallEnough || d.open*2 > len(d.unconfirmed) {
		return
	}
	open := d.unconfirmed[:0]
	for _, one := range d.unconfirmed {
		if !one.confirmed {
			open = append(open, one)
		}
	}
	clear(d.unconfirmed[len(open):])
	d.unconfirmed = open
}

// through confirms every delivery up to a seq and returns those that were not confirmed
// before.
func (d *deliveries) through(seq uint64) []wire.TaskRef {
	d.confirmedSeq = max(d.confirmedSeq, seq)
	var confirmed []wire.TaskRef
	n := 0
	for n < len(d.unconfirmed) && d.unconfirmed[n].seq <= seq {
		if one := d.unconfirmed[n]; !one.confirmed {
			d.arrives(one)
			confirmed = append(confirmed, one.ref)
		}
		d.unconfirmed[n] = nil
		n++
	}
	d.unconfirmed = d.unconfirmed[n:]
	return confirmed
}

// granted sends a task to the client.
func (c *Conversation) granted(e *shard.Granted) {
	c.pace.sends(len(e.Task.Payload), e.LeaseForMs, c.nowMs)
	seq := c.tasks.add(wire.TaskRef{TaskID: e.Task.ID, Token: e.Token}, len(e.Task.Payload))
	c.out.Frames = append(c.out.Frames, Outgoing{
		Frame: &wire.TaskFrame{
			Seq: seq, Token: e.Token, LeaseForMs: e.LeaseForMs, LeaseUntilMs: e.LeaseUntilMs,
			RunForMs: e.RunForMs, RunUntilMs: e.RunUntilMs, Task: e.Task,
		},
		payloadBytes: len(e.Task.Payload),
	})
}

// revoked tells the client that it lost a delivery. Its credit comes back when the worker
// answers for it.
func (c *Conversation) revoked(e *shard.Revoked) {
	if c.greeting != nil {
		c.greeting.remove(e.TaskRef)
		c.tasks.remove(e.TaskRef)
		return
	}
	c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})
}

// answeredElsewhere removes a delivery for which the worker has answered over HTTP or another
// session.
func (c *Conversation) answeredElsewhere(e *shard.Answered) {
	c.tasks.confirmNamed(e.TaskRef)
	credits := c.tasks.remove(e.TaskRef)
	if c.greeting != nil {
		// It takes no credit yet.
		c.greeting.remove(e.TaskRef)
		return
	}
	c.out.Credit += credits
}

// received confirms the deliveries that the client has.
func (c *Conversation) received(f *wire.Received) {
	r := c.begin(f.Ref, messageBytes)
	if f.Through > c.tasks.lastSeq {
		c.refuse(r, wire.Refuse(wire.CodeInvalidArgument,
			"through must be the seq of a task frame of this session, the last of which was "+
				strconv.FormatUint(c.tasks.lastSeq, 10)+", got "+strconv.FormatUint(f.Through, 10)))
		return
	}
	c.confirm(c.tasks.through(f.Through))
	c.succeed(r, &wire.OK{})
}

// confirm tells the shards which deliveries the client has.
func (c *Conversation) confirm(tasks []wire.TaskRef) {
	if len(tasks) == 0 {
		return
	}
	for shardNo, tasks := range c.perShard(tasks) {
		if tasks != nil {
			c.post(shardNo, mailbox.ClassKeep, &shard.Received{Consumer: c.consumer, Tasks: tasks},
				messageBytes+len(tasks)*taskRefBytes)
		}
	}
}

// confirmLater keeps confirmations until their shard, which is full, is asked again. The worker
// can have answered for such a delivery meanwhile, in a frame that was refused as well.
func (c *Conversation) confirmLater(tasks []wire.TaskRef) {
	d := &c.tasks
	for _, ref := range tasks {
		if !d.isAgain[ref] {
			d.isAgain[ref] = true
			d.again = append(d.again, ref)
		}
	}
	c.clock.confirmAtMs = c.nowMs + confirmRetryForMs
}

// confirmAgain posts these confirmations again.
func (c *Conversation) confirmAgain() {
	tasks := c.tasks.again
	c.tasks.again = nil
	clear(c.tasks.isAgain)
	c.confirm(tasks)
}

// unconfirm makes deliveries unconfirmed whose frames did not reach their shard. A delivery that
// the client has also confirmed by seq is confirmed to the shard later; the others are
// confirmed by the next frame or pong.
func (c *Conversation) unconfirm(tasks []wire.TaskRef) {
	d := &c.tasks
	for _, ref := range tasks {
		one := d.byRef[ref]
		if one == nil || !one.confirmed {
			continue
		}
		if one.seq <= d.confirmedSeq {
			c.confirmLater([]wire.TaskRef{ref})
			continue
		}
		d.unconfirm(one)
	}
}

// unconfirm puts a delivery back into the unconfirmed ones, in the order of seq.
func (d *deliveries) unconfirm(one *delivery) {
	one.confirmed = false
	d.open++
	i, found := slices.BinarySearchFunc(d.unconfirmed, one.seq, func(at *delivery, seq uint64) int {
		return cmp.Compare(at.seq, seq)
	})
	if !found {
		d.unconfirmed = slices.Insert(d.unconfirmed, i, one)
	}
}

// pingAfterTasks sends a ping after written tasks that are not confirmed, unless one is under
// way: its pong confirms the tasks of a client that sends no received.
func (c *Conversation) pingAfterTasks() {
	d := &c.tasks
	if d.underWay || d.open == 0 || d.writtenSeq <= d.pingedSeq {
		return
	}
	c.ping()
}

// ping sends a ping with the seq of the last task frame that has left.
func (c *Conversation) ping() {
	c.tasks.pingedSeq, c.tasks.underWay = c.tasks.writtenSeq, true
	c.out.Ping = strconv.AppendUint(nil, c.tasks.pingedSeq, 10)
	c.profile.pingedAtMs = c.nowMs
}

// pong counts every pong as a sign of life. One with the payload of a ping confirms the tasks
// that were sent before that ping.
func (c *Conversation) pong(payload []byte) {
	c.clock.ponged = true
	d := &c.tasks
	seq, err := strconv.ParseUint(string(payload), 10, 64)
	if err != nil || seq > d.pingedSeq {
		// This is no payload of a ping. The client may leave payloads out, so the next message
		// with tasks gets its own ping.
		d.underWay = false
		return
	}
	c.confirm(d.through(seq))
	if seq == d.pingedSeq {
		d.underWay = false
		c.profile.roundTripMs = max(1, c.nowMs-c.profile.pingedAtMs)
		c.pingAfterTasks()
	}
}
