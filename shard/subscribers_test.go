package shard

import "testing"

// A consumer that subscribes to an empty queue and leaves, again and again, is removed
// each time; one that stays keeps its place.
func TestSubscribersKeepNobodyWhoHasLeft(t *testing.T) {
	c := &subscribers{}
	enter := func() *subscription {
		p := &subscription{subscriber: &subscriber{open: true}, to: c, listed: true}
		c.count++
		c.open = append(c.open, p)
		return p
	}
	stays := enter()
	for n := range 10_000 {
		c.leave(enter())
		if len(c.open) > 2*minEnded {
			t.Fatalf("%d places are kept after %d have come and gone, one has stayed", len(c.open), n+1)
		}
	}
	if c.count != 1 || c.open[0] != stays || !c.hasOpen() {
		t.Errorf("of %d members, %d listed, the one that stayed is lost", c.count, len(c.open))
	}
	c.leave(stays)
	for range 100 {
		p := enter()
		if best := c.better(nil, DefaultLimits.Compared); best != p.subscriber || len(c.open) != 1 || c.endedInOpen != 0 {
			t.Fatalf("of %d listed, %d left, the only member is not found", len(c.open), c.endedInOpen)
		}
		c.leave(p)
	}
}

// Where more wait than one grant compares, the next grant compares others too:
// all have been served once before anybody is served twice.
func TestEachOfManySubscribersHasItsTurn(t *testing.T) {
	c, members := &subscribers{}, 3*DefaultLimits.Compared+1
	for range members {
		consumer := newTestConsumer(members)
		p := &subscription{subscriber: &subscriber{consumer: consumer, open: true}, to: c, listed: true}
		c.count++
		c.open = append(c.open, p)
	}
	for grant := range 2 * members {
		if !c.hasOpen() {
			t.Fatal("nobody is open")
		}
		best := c.better(nil, DefaultLimits.Compared)
		if had := best.consumer.Credit.InFlight(); had != grant/members {
			t.Fatalf("grant %d of %d members goes to one that has %d", grant, members, had)
		}
		best.consumer.Credit.Take(0, 0)
		best.lastGrantNo = uint64(grant + 1)
	}
}

// A suspect finds who is idle behind places whose subscribers have left, and the
// subscriber that was made to wait for it wherever that stands.
func TestIdleOnesOfManySubscribersAreFound(t *testing.T) {
	s := &Shard{limits: DefaultLimits}
	q := &queue{tenant: &tenant{}}
	q.subscribers = &subscribers{tenant: q.tenant, queue: q}
	enter := func(untaken int) *subscriber {
		sub := &subscriber{consumer: newTestConsumer(2), open: true}
		sub.consumer.Credit.Take(0, untaken)
		p := &subscription{subscriber: sub, to: q.subscribers, listed: true}
		sub.subscriptions = append(sub.subscriptions, p)
		q.subscribers.count++
		q.subscribers.open = append(q.subscribers.open, p)
		return sub
	}
	for range DefaultLimits.Compared {
		q.subscribers.leave(enter(1).subscriptions[0])
	}
	idle := enter(0)
	if s.idle(q) != idle {
		t.Error("who is idle is not found behind those who have left")
	}
	idle.consumer.Credit.AddBytes(1)
	for range 2 * DefaultLimits.Compared {
		enter(1)
	}
	last := enter(0)
	if sub := s.idle(q); sub != nil {
		t.Errorf("of %d busy members one is idle", len(q.subscribers.open)-1)
	}
	if s.reserved = last; s.idle(q) != last {
		t.Error("the member that waits for a suspect is not found behind the others")
	}
}
