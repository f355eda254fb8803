package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// books looks through all that a shard keeps in memory after a round and says what
// does not agree, "" for nothing. What is kept too long, counted twice or not begun
// anew changes no answer for a long time, so scripts and worlds do not see it. ids are
// the tasks that there have been.
func (s *Shard) books(ids []wire.TaskID) string {
	for _, wrong := range []string{s.roundBooks(), s.subscriberBooks(), s.queueBooks(), s.leakedBooks(), s.leaseBooks(ids), s.suspectBooks()} {
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

// roundBooks: what belongs to a round is over with it.
func (s *Shard) roundBooks() string {
	if n := len(s.reuses) + len(s.credited) + len(s.emptied) + len(s.explains); n > 0 {
		return fmt.Sprintf("%d reused credits, %d credited subscribers, %d emptied queues and %d questions are left",
			len(s.reuses), len(s.credited), len(s.emptied), len(s.explains))
	}
	for _, sub := range s.byConsumer {
		if sub.reused != 0 || sub.credit != 0 || sub.reusedInRow > s.limits.ReusedInRow {
			return fmt.Sprintf("%s has %d credits reused, %d in a row, and a credit of %d", sub.consumer.WorkerID, sub.reused, sub.reusedInRow, sub.credit)
		}
	}
	return ""
}

// subscriberBooks: who stands in a subscribers is in its list, or not open.
func (s *Shard) subscriberBooks() string {
	members := map[*subscribers]int{}
	for _, sub := range s.byConsumer {
		for _, p := range sub.subscriptions {
			members[p.to]++
			if p.subscriber != sub || p.ended || sub.open && !p.listed {
				return fmt.Sprintf("%s, open %t, has the subscription %+v", sub.consumer.WorkerID, sub.open, p)
			}
		}
	}
	for _, c := range s.allSubscribers() {
		left := 0
		for _, p := range c.open {
			if p.ended {
				left++
			} else if s.byConsumer[p.subscriber.consumer.ID] != p.subscriber {
				return fmt.Sprintf("%s is gone and still in a list", p.subscriber.consumer.WorkerID)
			}
			if !p.listed || p.to != c {
				return fmt.Sprintf("a list of subscriptions has %+v", p)
			}
		}
		if left != c.endedInOpen || members[c] != c.count {
			return fmt.Sprintf("a list counts %d subscriptions and %d ended ones, and has %d and %d", c.count, c.endedInOpen, members[c], left)
		}
	}
	return ""
}

func (s *Shard) allSubscribers() (all []*subscribers) {
	for _, q := range s.queues {
		all = append(all, q.subscribers)
	}
	for _, t := range s.tenants {
		all = append(all, &t.wildcard)
	}
	return all
}

// queueBooks: the rings have each queue that could be served, once, and no other
// queue is kept without a reason.
func (s *Shard) queueBooks() string {
	for name, t := range s.tenants {
		n := 0
		for _, in := range s.turns.tenants {
			if in == t {
				n++
			}
		}
		if n > 1 || (n == 1) != t.inTurns {
			return fmt.Sprintf("tenant %s, in turns %t, is there %d times", name, t.inTurns, n)
		}
	}
	for key, q := range s.queues {
		inReady, inRunnable := countOf(q.tenant.ready.queues, q), countOf(q.tenant.runnable.queues, q)
		if inReady > 1 || inRunnable > 1 || (inReady == 1) != q.inReady || (inRunnable == 1) != q.inRunnable || q.stalled {
			return fmt.Sprintf("queue %v is in its rings %d and %d times; ready %t, runnable %t, stalled %t", key, inReady, inRunnable, q.inReady, q.inRunnable, q.stalled)
		}
		if q.hasTurns() && !q.inReady {
			return fmt.Sprintf("queue %v has tasks and no turn", key)
		}
		counters := q.index.Counters()
		if counters.IsZero() && q.settings.Version == 0 && !q.inReady && !q.inRunnable && q.subscribers.count == 0 && q.freezes == 0 {
			return fmt.Sprintf("queue %v is empty and kept", key)
		}
	}
	return ""
}

func countOf(some []*queue, q *queue) (n int) {
	for _, o := range some {
		if o == q {
			n++
		}
	}
	return n
}

// leakedBooks: a credit that is out beyond a lease is one of a session that is here.
func (s *Shard) leakedBooks() string {
	credits := 0
	for ref, all := range s.leaked {
		for _, o := range all {
			credits++
			if s.byConsumer[o.subscriber.consumer.ID] != o.subscriber || o.at.Value.(wire.TaskRef) != ref {
				return fmt.Sprintf("%s is gone and has leaked credit for %v", o.subscriber.consumer.WorkerID, ref)
			}
		}
		if len(all) == 0 {
			return fmt.Sprintf("the leaked credit of %v is listed and nobody has it", ref)
		}
	}
	for _, sub := range s.byConsumer {
		if sub.leaked != nil {
			credits -= sub.leaked.Len()
		}
	}
	if credits != 0 {
		return fmt.Sprintf("%d more credits are leaked than subscribers know of", credits)
	}
	return ""
}

func (s *Shard) leaseBooks(ids []wire.TaskID) string {
	for _, id := range ids {
		e := s.leases.Get(id)
		if e == nil || !e.HasCredit {
			continue
		}
		if e.Gone || e.Lease.OverHTTP || s.byConsumer[e.Lease.Session] == nil {
			return fmt.Sprintf("a unit is out for %v, whose session is gone", id)
		}
		ref := wire.TaskRef{TaskID: id, Token: e.Lease.Token}
		if slices.ContainsFunc(s.leaked[ref], func(o leaked) bool { return o.subscriber.consumer.ID == e.Lease.Session }) {
			return fmt.Sprintf("%v is in progress and its credit is also leaked", id)
		}
	}
	return ""
}

// suspectBooks: who stands aside does so for a while, and one subscriber at most waits
// for that.
func (s *Shard) suspectBooks() string {
	for _, a := range s.aside {
		if a.untilMs <= s.now && s.space < store.NoGrant {
			return fmt.Sprintf("%v has fallen due at %d and stands aside, it is %d", a.id, a.untilMs, s.now)
		}
		t, err := s.span.Task(a.id)
		if err != nil || t == nil || s.space < store.NoGrant && (t.Location != wire.LocationDelayed || t.DueAtMs != a.untilMs) {
			return fmt.Sprintf("%v stands aside until %d and is %+v, %v", a.id, a.untilMs, t, err)
		}
	}
	sub := s.reserved
	if sub != nil && (s.byConsumer[sub.consumer.ID] != sub || !sub.ownsWindow || s.reservedUntilMs <= s.now) {
		return fmt.Sprintf("%s, alone %t, is reserved until %d, it is %d", sub.consumer.WorkerID, sub.ownsWindow, s.reservedUntilMs, s.now)
	}
	return ""
}

// clerk is a subscribers of workers, played at random, that do what their consumers demand
// and nothing sensible.
type clerk struct {
	*scriptWorld
	random *rand.Rand
	tasks  int
	epoch  uint64
	held   []heldRef
	// asked are the consumers that wait for an answer to a word that ends a delivery of
	// theirs.
	asked map[Ref]*scriptConsumer
	ref   Ref
	seen  map[string]int
}

type heldRef struct {
	wire.TaskRef
	consumer *scriptConsumer
}

func (c *clerk) consumerName() string {
	return []string{"ada", "bob", "eve", "fay", "curl"}[c.random.IntN(5)]
}

func (c *clerk) command() string { return []string{"a", "b"}[c.random.IntN(2)] }

// message is one that a worker, a producer or an admin may send.
func (c *clerk) message() Message {
	c.ref++
	asker := Asker{Sink: c.producer("p"), Ref: c.ref}
	switch c.random.IntN(12) {
	case 0, 1, 2:
		c.tasks++
		return &Enqueue{Asker: asker, ID: c.taskID(c.tasks), Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
			Command: c.command(), Payload: []byte("1"), MaxAttempts: 3, DelaySeconds: int64(c.random.IntN(8) / 6),
		}}
	case 3:
		return &Manage{Do: Cancel, Asker: asker, Tenant: "default", TaskID: c.taskID(1 + c.random.IntN(c.tasks+1))}
	case 4:
		paused := c.random.IntN(2) == 0
		return &Configure{Asker: asker, Queue: record.QueueKey{Command: c.command(), Tenant: "default"}, Change: SettingsChange{Paused: &paused}}
	case 5, 6, 7:
		return c.subscribes(c.consumerOf(c.consumerName()))
	case 8:
		consumer := c.consumerOf(c.consumerName())
		return &Heartbeat{Asker: Asker{Sink: consumer.Sink, Ref: c.ref}, Owner: Owner{Tenant: "default", Subject: "anonymous"}, Consumer: consumer.Consumer}
	}
	return c.answers()
}

func (c *clerk) subscribes(consumer *scriptConsumer) Message {
	consumer.SetWindow(1 + c.random.IntN(3))
	commands := []string{[]string{"a", "b", wire.AllCommands}[c.random.IntN(3)]}
	if consumer.OverHTTP {
		return &Claim{Asker: Asker{Sink: consumer.Sink}, Consumer: consumer.Consumer, Commands: commands, LeaseForMs: 5000}
	}
	return &Subscribe{Consumer: consumer.Consumer, Commands: commands, LeaseForMs: 5000}
}

// answers is a word about a delivery, by who got it or by somebody else of the same
// subject.
func (c *clerk) answers() Message {
	if len(c.held) == 0 {
		return &SpaceChanged{}
	}
	i := c.random.IntN(len(c.held))
	h := c.held[i]
	if c.random.IntN(3) == 0 {
		h.consumer.Taken(1, MaxUntakenBytes)
		return &Received{Consumer: h.consumer.Consumer, Tasks: []wire.TaskRef{h.TaskRef}}
	}
	c.held = slices.Delete(c.held, i, i+1)
	asker, own := Asker{Sink: c.producer("q"), Ref: c.ref}, c.random.IntN(4) > 0
	if own {
		asker.Sink = h.consumer.Sink
		c.asked[c.ref] = h.consumer
	}
	owner := Owner{Tenant: "default", Subject: "anonymous"}
	switch c.random.IntN(4) {
	case 0:
		return &End{How: Nack, Holder: Holder{Asker: asker, Owner: owner, TaskRef: h.TaskRef}}
	case 1:
		return &End{How: Release, Holder: Holder{Asker: asker, Owner: owner, TaskRef: h.TaskRef}}
	}
	return &Result{Holder: Holder{Asker: asker, Owner: owner, TaskRef: h.TaskRef}, HasCredit: own && !h.consumer.OverHTTP, ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted}}
}

// moves does something to a socket, to the disk or to the time.
func (c *clerk) moves() {
	name := c.consumerName()
	switch n := c.random.IntN(16); {
	case n < 3:
		if consumer := c.consumers[name]; consumer != nil {
			consumer.close(0)
			delete(c.consumers, name)
		}
	case n < 5 && c.consumers[name] != nil && !c.consumers[name].OverHTTP:
		c.epoch++
		c.resume(name, c.epoch)
	case n < 6:
		c.core.SetSpace([]store.Level{store.Ok, store.Ok, store.NoGrant, store.OnlyDelete}[c.random.IntN(4)])
	case n < 9:
		c.nowMs += []int64{1, 300, 900, 2500, 6000, 12_000, 40_000}[c.random.IntN(7)]
	}
}

// hears is what sessions do about the effects of a round.
func (c *clerk) hears(effects []Addressed) {
	for _, a := range effects {
		switch e := a.Effect.(type) {
		case *Granted:
			for _, consumer := range c.consumers {
				if consumer.Sink == a.Sink {
					c.held = append(c.held, heldRef{wire.TaskRef{TaskID: e.Task.ID, Token: e.Token}, consumer})
				}
			}
		case *Completed:
			c.gives(e.Ref, e.CreditReused)
		case *Requeued:
			c.gives(e.Ref, false)
		case *Refused:
			c.gives(e.Ref, false)
		}
	}
}

func (c *clerk) gives(ref Ref, left bool) {
	if consumer := c.asked[ref]; consumer != nil && !left {
		consumer.Return(1)
	}
	delete(c.asked, ref)
}

func (c *clerk) rounds() {
	messages := c.control
	c.control = nil
	for range c.random.IntN(5) {
		messages = append(messages, c.message())
	}
	for again := true; again; {
		out := c.core.Round(c.nowMs, messages)
		if wrong := c.core.books(c.allTasks(c.tasks)); wrong != "" {
			c.t.Fatalf("the books of a shard do not agree: %s", wrong)
		}
		messages = messages[out.Taken:]
		if _, err := c.store.Span(c.shard).Apply(); err != nil {
			c.t.Fatal(err)
		}
		c.hears(out.Effects)
		for _, u := range out.CreditReturns {
			u.Consumer.Credit.Return(u.Credits)
		}
		again = len(messages) > 0 || out.Again
	}
	c.seen["stand aside"] += min(len(c.core.aside), 1)
	c.seen["are leaked"] += min(len(c.core.leaked), 1)
	c.seen["wait in turns"] += min(len(c.core.turns.tenants), 1)
	if c.core.reserved != nil {
		c.seen["is reserved"]++
	}
}

// Whatever comes, in whatever order, the books agree after every round.
func TestBooksOfAShardAgreeAfterEveryRound(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(20) {
		c := &clerk{
			scriptWorld: newScriptWorld(t), random: rand.New(rand.NewPCG(seed, 1)), asked: map[Ref]*scriptConsumer{}, seen: seen,
		}
		for range 300 {
			c.moves()
			c.rounds()
		}
	}
	// A run that never comes to the hard places proves nothing.
	for _, what := range []string{"stand aside", "are leaked", "wait in turns", "is reserved"} {
		t.Logf("%s: %d", what, seen[what])
		if seen[what] < 20 {
			t.Errorf("%s: only %d times", what, seen[what])
		}
	}
}
