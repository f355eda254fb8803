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
	// confirmed: the shard was told, or need not be, that the frame arrived.
	confirmed bool
	// ending: a frame that ends it is on its way to the shard.
	ending bool
}

// deliveries are what the client was given. A delivery is in hand until the
// worker has answered for it, whatever became of its lease: so long its unit
// of room is out.
type deliveries struct {
	byRef map[wire.TaskRef]*delivery
	// unconfirmed are in the order of seq. Some of them may have been confirmed
	// by their own frame meanwhile; those are left out when they come up, or
	// when they are more than half.
	unconfirmed []*delivery
	open        int
	// again are confirmed by the client, but their shard was full; isAgain has
	// the same ones.
	again   []wire.TaskRef
	isAgain map[wire.TaskRef]bool

	lastSeq    uint64
	writtenSeq uint64
	// confirmedSeq is the highest seq the client has confirmed everything to.
	confirmedSeq uint64
	// pingedSeq is what the last ping carries, underWay that it has no pong.
	pingedSeq uint64
	underWay  bool
	// takenBytes of payload were confirmed in this step.
	takenBytes int
}

func newDeliveries() deliveries {
	return deliveries{byRef: make(map[wire.TaskRef]*delivery), isAgain: make(map[wire.TaskRef]bool)}
}

func (d *deliveries) inHand() int { return len(d.byRef) }

// arrived is how many of those in hand are confirmed.
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

// hold takes a delivery in hand that an earlier socket of the session got. Its
// frame is not one of this socket.
func (d *deliveries) hold(ref wire.TaskRef) {
	d.byRef[ref] = &delivery{ref: ref, confirmed: true}
}

// answered takes a delivery out of hand and says how many units of room come
// back for it: one, the first time.
func (d *deliveries) answered(ref wire.TaskRef) int {
	if d.byRef[ref] == nil {
		return 0
	}
	delete(d.byRef, ref)
	return 1
}

// ends notes that a frame which ends a delivery goes to the shard, and says
// whether a unit of room will come back for it: for the first one.
func (d *deliveries) ends(ref wire.TaskRef) (hasUnit bool) {
	one := d.byRef[ref]
	if one == nil || one.ending {
		return false
	}
	one.ending = true
	return true
}

// named notes that the client sent the token of a delivery, which confirms it.
func (d *deliveries) named(ref wire.TaskRef) {
	one := d.byRef[ref]
	if one == nil || one.confirmed {
		return
	}
	d.arrives(one)
	d.compact()
}

// arrives notes that the client has a delivery.
func (d *deliveries) arrives(one *delivery) {
	one.confirmed = true
	d.open--
	d.takenBytes += one.payloadBytes
	one.payloadBytes = 0
}

// compact drops confirmed deliveries once they are most of the list, so that
// one that is never confirmed cannot make it grow for ever.
func (d *deliveries) compact() {
	const smallEnough = 64
	if len(d.unconfirmed) < smallEnough || d.open*2 > len(d.unconfirmed) {
		return
	}
	kept := d.unconfirmed[:0]
	for _, one := range d.unconfirmed {
		if !one.confirmed {
			kept = append(kept, one)
		}
	}
	clear(d.unconfirmed[len(kept):])
	d.unconfirmed = kept
}

// through confirms every delivery up to a seq and returns those whose shard
// does not know it yet.
func (d *deliveries) through(seq uint64) []wire.TaskRef {
	d.confirmedSeq = max(d.confirmedSeq, seq)
	var fresh []wire.TaskRef
	n := 0
	for n < len(d.unconfirmed) && d.unconfirmed[n].seq <= seq {
		if one := d.unconfirmed[n]; !one.confirmed {
			d.arrives(one)
			fresh = append(fresh, one.ref)
		}
		d.unconfirmed[n] = nil
		n++
	}
	d.unconfirmed = d.unconfirmed[n:]
	return fresh
}

// granted sends a task.
func (c *Conversation) granted(e *shard.Granted) {
	c.pace.gives(len(e.Task.Payload), e.LeaseForMs, c.nowMs)
	seq := c.tasks.add(wire.TaskRef{TaskID: e.Task.ID, Token: e.Token}, len(e.Task.Payload))
	c.out.Frames = append(c.out.Frames, Outgoing{
		Frame: &wire.TaskFrame{
			Seq: seq, Token: e.Token, LeaseForMs: e.LeaseForMs, LeaseUntilMs: e.LeaseUntilMs,
			RunForMs: e.RunForMs, RunUntilMs: e.RunUntilMs, Task: e.Task,
		},
		payloadBytes: len(e.Task.Payload),
	})
}

// revoked tells the client that a delivery is lost. The unit of room stays out
// until the worker answers for it.
func (c *Conversation) revoked(e *shard.Revoked) {
	if c.greeting != nil {
		c.greeting.lose(e.TaskRef)
		c.tasks.answered(e.TaskRef)
		return
	}
	c.send(&wire.Revoked{TaskRef: e.TaskRef, Reason: e.Reason})
}

// answeredElsewhere takes a delivery out of hand for which the worker has
// answered by another way.
func (c *Conversation) answeredElsewhere(e *shard.Answered) {
	c.tasks.named(e.TaskRef)
	units := c.tasks.answered(e.TaskRef)
	if c.greeting != nil {
		// Nothing of the room has been taken for what is held.
		c.greeting.lose(e.TaskRef)
		return
	}
	c.out.Give += units
}

// received confirms what the client says has arrived.
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

// confirm tells the shards which deliveries have arrived.
func (c *Conversation) confirm(tasks []wire.TaskRef) {
	if len(tasks) == 0 {
		return
	}
	for shardNo, tasks := range c.perShard(tasks) {
		if tasks != nil {
			c.post(shardNo, mailbox.ClassKeep, &shard.Received{Seat: c.seat, Tasks: tasks},
				messageBytes+len(tasks)*taskRefBytes)
		}
	}
}

// confirmLater keeps confirmations for a shard that is full. The worker may
// have answered for such a delivery since, in a frame that did not get through
// either.
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

// confirmAgain offers them again.
func (c *Conversation) confirmAgain() {
	tasks := c.tasks.again
	c.tasks.again = nil
	clear(c.tasks.isAgain)
	c.confirm(tasks)
}

// unconfirm takes back that frames confirmed the deliveries they named: the
// shard never saw those frames. What the client has confirmed by seq as well is
// told to the shard later; the rest waits for its next frame or pong.
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
		d.unnamed(one)
	}
}

// unnamed makes a delivery unconfirmed again, at its place in the order.
func (d *deliveries) unnamed(one *delivery) {
	one.confirmed = false
	d.open++
	i, found := slices.BinarySearchFunc(d.unconfirmed, one.seq, func(at *delivery, seq uint64) int {
		return cmp.Compare(at.seq, seq)
	})
	if !found {
		d.unconfirmed = slices.Insert(d.unconfirmed, i, one)
	}
}

// pingBehindTasks sends a ping behind written tasks that are not confirmed,
// unless one is under way: its pong confirms them for clients that do not do
// so themselves.
func (c *Conversation) pingBehindTasks() {
	d := &c.tasks
	if d.underWay || d.open == 0 || d.writtenSeq <= d.pingedSeq {
		return
	}
	c.ping()
}

// ping sends the seq of the last task frame that has left.
func (c *Conversation) ping() {
	c.tasks.pingedSeq, c.tasks.underWay = c.tasks.writtenSeq, true
	c.out.Ping = strconv.AppendUint(nil, c.tasks.pingedSeq, 10)
}

// pong is a sign of life, whatever it carries. What it carries confirms the
// tasks in front of its ping.
func (c *Conversation) pong(payload []byte) {
	c.clock.ponged = true
	d := &c.tasks
	seq, err := strconv.ParseUint(string(payload), 10, 64)
	if err != nil || seq > d.pingedSeq {
		// Not the echo of a ping of ours. It may come from a client that leaves
		// the payload out, so the next message with tasks has its own ping.
		d.underWay = false
		return
	}
	c.confirm(d.through(seq))
	if seq == d.pingedSeq {
		d.underWay = false
		c.pingBehindTasks()
	}
}
