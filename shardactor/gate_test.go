package shardactor

import (
	"fmt"
	"slices"
	"testing"

	"codeq/shard"
	"codeq/store"
)

// notes writes down, in order, what an observer and a sink get.
type notes []string

func (n *notes) Load(int, uint64, []store.QueueState) {}

func (n *notes) Observe(_ int, events []shard.Event) {
	for i := range events {
		*n = append(*n, fmt.Sprint("event ", events[i].Number))
	}
}

func (n *notes) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		*n = append(*n, fmt.Sprint("effect ", e.(*shard.Drained).Ref))
	}
}

// eventsOf are events with consecutive numbers.
func eventsOf(from, to uint64) (events []shard.Event) {
	for n := from; n <= to; n++ {
		events = append(events, shard.Event{Number: n})
	}
	return events
}

func TestEventsLeaveAfterTheirSyncInOrderAndBeforeTheEffectsOfTheirRound(t *testing.T) {
	var got notes
	gate := effectGate{events: &got}
	effect := func(ref shard.Ref) []shard.Addressed {
		return []shard.Addressed{{Sink: &got, Effect: &shard.Drained{Ref: ref}}}
	}
	check := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, []string(got), want)
		}
		got = nil
	}
	gate.put(1, &shard.Outcome{Effects: effect(1), Events: eventsOf(1, 2)})
	gate.put(2, &shard.Outcome{Effects: nil, Events: eventsOf(3, 3)}) // a round without effects
	gate.put(3, &shard.Outcome{Effects: effect(3), Events: eventsOf(4, 4)})
	check("before any sync")
	gate.release(2)
	check("batches 1 and 2 are durable", "event 1", "event 2", "event 3", "effect 1")
	gate.put(2, &shard.Outcome{Effects: effect(2), Events: nil}) // a round that wrote nothing waits behind one that did
	check("batch 3 is not durable")
	gate.release(3)
	check("batch 3 is durable", "event 4", "effect 3", "effect 2")
	gate.put(3, &shard.Outcome{Effects: effect(4), Events: eventsOf(5, 5)})
	check("nothing waits and the batch is durable", "event 5", "effect 4")
	gate.put(4, &shard.Outcome{Effects: nil, Events: eventsOf(6, 6)})
	check("batch 4 is not durable")
	gate.release(4)
	check("batch 4 is durable", "event 6")
}

func TestAGateWithoutObserverKeepsNoEvents(t *testing.T) {
	var gate effectGate
	events := eventsOf(1, 3)
	if free := gate.put(1, &shard.Outcome{Effects: nil, Events: events}); len(free) != 3 || &free[0] != &events[0] || len(gate.pending) != 0 {
		t.Errorf("the gate keeps %d rounds and returns %d of 3 events", len(gate.pending), len(free))
	}
}

// counter counts events and keeps nothing.
type counter int

func (c *counter) Load(int, uint64, []store.QueueState) {}

func (c *counter) Observe(_ int, events []shard.Event) { *c += counter(len(events)) }

func TestEventsCostNoAllocationInTheGate(t *testing.T) {
	var observed counter
	gate := effectGate{events: &observed}
	var batch uint64
	spare := eventsOf(1, 100)
	round := func() {
		for range 4 {
			batch++
			if spare = gate.put(batch, &shard.Outcome{Effects: nil, Events: spare}); spare == nil {
				spare = eventsOf(1, 100)
			}
		}
		gate.release(batch)
	}
	round()
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 || observed < 40_000 {
		t.Errorf("%v allocations for four rounds of 100 events, %d events observed", n, observed)
	}
}
