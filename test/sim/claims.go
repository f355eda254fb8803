package sim

import (
	"slices"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// claim is one request for tasks over HTTP: what its handler does, step by step,
// with the client behind it, which may leave.
type claim struct {
	world    *world
	worker   string
	commands []string
	leaseMs  int64
	waitMs   int64

	consumer *shardactor.Consumer
	known    *consumer
	state    claimState
	// asked shards have taken the question, answered ones have answered.
	asked, answered int
	// count is what it asked for, looks that it began with one shard and looked into
	// the others, ready what each has.
	count     int
	countOnly bool
	ready     []int
	refused   bool
	untilMs   int64
	got       []*shard.Granted
	left      bool
	last      []uint64
	// untake gives back to the door what it did not get.
	untake func(got int)
}

type claimState int

const (
	claimAsks claimState = iota
	claimSits
	claimCloses
	claimOver
)

// errand is a task in the hands of a worker over HTTP.
type errand struct {
	ref                     wire.TaskRef
	tenant, subject, worker string
}

// errandsMost is how many tasks workers over HTTP remember, answered or not.
const errandsMost = 24

// Deliver implements shard.Sink.
func (c *claim) Deliver(effects []shard.Effect) {
	c.world.delivered(effects, c.last)
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			c.got = append(c.got, e)
		case *shard.Claimed:
			c.answered++
			c.ready[e.Ref] = e.Ready
		}
	}
}

// claimSome is a worker that asks over HTTP, or one that gives up waiting.
func (w *world) claimSome() {
	if len(w.claims) > 0 && w.chance.oneIn(3) {
		c := pick(w.chance, w.claims)
		c.left = true
		w.trace.say("  the client of a claim by %s leaves", c.worker)
		return
	}
	n := w.chance.IntN(4)
	c := &claim{
		world: w, worker: []string{"curl0", "curl1"}[w.chance.IntN(2)], commands: w.someCommands(),
		leaseMs: int64(pick(w.chance, []int{1, 2, 5, 20, 60, 600})) * 1000,
		waitMs:  int64(pick(w.chance, []int{0, 0, 1, 5, 30})) * 1000, last: make([]uint64, w.shape.shards),
	}
	if w.chance.oneIn(4) {
		c.commands = []string{wire.AllCommands}
	}
	c.count = pick(w.chance, []int{1, 1, 1, 3, 20})
	tenant, subject := w.shape.tenants[n%len(w.shape.tenants)], subjects[n/2]
	untake, refused := w.enterClaim(tenant, subject, c.count)
	if refused {
		return
	}
	c.untake = untake
	c.consumer = w.server.engine.NewConsumer(shardactor.ConsumerOptions{
		Tenant: tenant, Subject: subject, WorkerID: c.worker, OverHTTP: true, Sink: c,
	})
	c.known = w.model.connected(c.consumer)
	c.known.resize(c.count)
	c.consumer.SetWindow(c.count)
	c.countOnly, c.ready = w.chance.oneIn(2), make([]int, w.shape.shards)
	first := w.chance.IntN(w.shape.shards)
	w.trace.say("  POST claim of %v by %s, %d for %d ms, waits %d ms, looks %v", c.commands, c.worker, c.count, c.leaseMs, c.waitMs, c.countOnly)
	for shard := range w.shape.shards {
		c.ask(shard, c.countOnly && shard != first)
	}
	w.claims = append(w.claims, c)
}

func (c *claim) ask(shardNo int, countOnly bool) {
	ok := c.post(shardNo, mailbox.ClassNew, &shard.Claim{
		Asker: shard.Asker{Sink: c, Ref: shard.Ref(shardNo)}, CountOnly: countOnly, Consumer: c.consumer.Consumer, Commands: c.commands, LeaseForMs: c.leaseMs,
	})
	if ok {
		c.asked++
	}
	c.refused = c.refused || !ok
}

func (c *claim) post(shardNo int, class mailbox.Class, m shard.Message) bool {
	return c.world.post(shardNo, []shard.Message{m}, 512, class) == mailbox.Accepted
}

// advance does what the handler can do now and reports whether that was
// anything.
func (c *claim) advance() bool {
	was := c.state
	if c.countOnly && c.answered == c.asked {
		c.countOnly = false
		for shard, n := range c.ready {
			if n > 0 && len(c.got) < c.count {
				c.ask(shard, false)
			}
		}
	}
	if c.state == claimAsks && c.answered == c.asked {
		c.state = claimOver
		if len(c.got) == 0 && !c.refused && c.waitMs > 0 {
			c.sitDown()
		}
	}
	if c.state == claimSits && (len(c.got) > 0 || c.left || c.world.nowMs >= c.untilMs) {
		c.state, c.known.closed = claimCloses, true
		c.consumer.Close(0)
	}
	if c.state == claimCloses && len(c.got) == c.consumer.InFlight() {
		c.state = claimOver
	}
	if c.state == claimOver {
		c.world.claims = slices.DeleteFunc(c.world.claims, func(o *claim) bool { return o == c })
		c.handOver()
	}
	return c.state != was
}

// sitDown waits in the rings.
func (c *claim) sitDown() {
	c.state, c.untilMs = claimSits, c.world.nowMs+c.waitMs
	for shardNo := range c.world.shape.shards {
		if !c.post(shardNo, mailbox.ClassKeep, &shard.Subscribe{Consumer: c.consumer.Consumer, Commands: c.commands, LeaseForMs: c.leaseMs}) {
			c.untilMs = c.world.nowMs
			return
		}
	}
}

// handOver gives the tasks to the client, or back if it has left.
func (c *claim) handOver() {
	w := c.world
	c.untake(len(c.got))
	w.trace.say("  claim by %s got %d, has left: %t", c.worker, len(c.got), c.left)
	for _, g := range c.got {
		ref := wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}
		if c.left {
			w.server.engine.Control(w.server.engine.ShardOf(ref.TaskID), nil,
				&shard.Undelivered{Consumer: c.consumer.Consumer, Tasks: []wire.TaskRef{ref}})
			continue
		}
		if g.RunForMs > 0 {
			w.server.engine.Control(w.server.engine.ShardOf(ref.TaskID), nil,
				&shard.Received{Consumer: c.consumer.Consumer, Tasks: []wire.TaskRef{ref}})
		}
		w.overhear(ref)
		if len(w.errands) == errandsMost {
			w.errands = slices.Delete(w.errands, 0, 1)
		}
		w.errands = append(w.errands, errand{ref, c.consumer.Tenant, c.consumer.Subject, c.worker})
	}
}

// advanceClaims wakes handlers.
func (w *world) advanceClaims() (moved bool) {
	for _, c := range slices.Clone(w.claims) {
		moved = c.advance() || moved
	}
	return moved
}

// answerSome is a worker that says something over HTTP about a task it has, or
// has had, with the token or without it, sometimes about one of somebody else.
func (w *world) answerSome() {
	w.advanceClaims()
	c := w.chance
	var e errand
	switch {
	case c.oneIn(5) && len(w.overheard) > 0:
		e.ref = pick(c, w.overheard)
		t := w.model.tasks[e.ref.TaskID]
		if t == nil {
			return
		}
		e.tenant, e.subject, e.worker = t.tenant, t.speaker(), t.worker
	case len(w.errands) > 0:
		i := c.IntN(len(w.errands))
		e = w.errands[i]
		if c.oneIn(3) {
			w.errands = slices.Delete(w.errands, i, i+1)
		}
	default:
		return
	}
	owner := shard.Owner{Tenant: e.tenant, Subject: e.subject}
	switch c.IntN(8) {
	case 0:
		owner.Subject = pick(c, subjects)
	case 1:
		owner.Tenant = pick(c, w.shape.tenants)
	}
	ref := e.ref
	if c.oneIn(2) {
		ref.Token = wire.Token{}
	}
	if c.oneIn(2) {
		owner.WorkerID = pick(c, []string{e.worker, e.worker, "curl1"})
	}
	w.say(c.IntN(20), owner, ref, e.ref)
}

// say posts one verb. The outcome is that of the delivery, whether its token is
// sent or not.
func (w *world) say(verb int, owner shard.Owner, ref, of wire.TaskRef) {
	c := w.chance
	outcome := w.outcome(of)
	delay, extend := pick(c, []int64{-1, 0, 1, 30}), int64(pick(c, []int{0, 1, 30, 300}))*1000
	why := w.handsBack()
	call := func(to shard.Asker) shard.Message {
		switch {
		case verb < 7:
			return &shard.Extend{Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, ExtendForMs: extend}
		case verb < 14:
			return &shard.Result{Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, ResultRequest: outcome}
		case verb < 16:
			return &shard.End{How: shard.Nack, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{DelaySeconds: delay}}
		case verb < 18:
			return &shard.End{How: shard.Abandon, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}}
		}
		return &shard.End{How: shard.Release, Holder: shard.Holder{Asker: to, Owner: owner, TaskRef: ref}, ReleaseRequest: why}
	}
	w.trace.say("  POST about %s by %s, worker %q, with its token: %t", w.name(ref.TaskID), owner.Subject, owner.WorkerID, !ref.Token.IsZero())
	(&request{world: w, call: call, about: ref.TaskID}).post()
}
