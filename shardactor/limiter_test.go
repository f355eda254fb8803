package shardactor

import (
	"fmt"
	"testing"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// A limit goes round the shards, though each may use its places again: no shard with
// work waits for long, whatever the limit. With fewer places and credits than shards
// none of them has one while it waits for the other.
func TestPlacesOfALimitGoRound(t *testing.T) {
	const shards, perShard = 4, 150
	for _, c := range []struct{ limit, window int }{{1, 4 * perShard}, {2, 4 * perShard}, {5, 4 * perShard}, {64, 4 * perShard}, {1, 1}, {2, 1}, {1, 2}, {3, 3}} {
		limit := c.limit
		t.Run(fmt.Sprint(limit, " places, window ", c.window), func(t *testing.T) {
			e, s := steppedEngine(t, shards)
			fill(t, e, s, perShard)
			e.Configure(&Change{
				Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true, MaxInProgress: limit}},
				Done: func(record.Settings, *wire.Error) {},
			})
			runAll(t, e, s) // the home
			runAll(t, e, s) // the copies
			k := &keeper{engine: e}
			k.subscribe(c.window, "a")
			k.workAll(t, s)
			if len(k.served) != shards*perShard {
				t.Fatalf("%d tasks were handed out of %d", len(k.served), shards*perShard)
			}
			// Each shard uses a place nine times at most before the next has it.
			if got := longestWait(k.served, shards, perShard); got > 4*9*limit {
				t.Errorf("a shard with work waited for %d grants to others", got)
			}
			if n := e.limiters.of(queueA).InFlight(); n != 0 {
				t.Errorf("%d places are taken when all has ended", n)
			}
		})
	}
}

// A shard that has a place keeps it while it waits for a credit, and one without a place
// takes no credit: else both would go round the shards and never meet.
func TestPlaceAndCreditMeet(t *testing.T) {
	for before := range 24 {
		e, s := steppedEngine(t, 4)
		fill(t, e, s, 3)
		e.Configure(&Change{
			Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true, MaxInProgress: 1}},
			Done: func(record.Settings, *wire.Error) {},
		})
		runAll(t, e, s) // the home
		runAll(t, e, s) // the copies
		k := &keeper{engine: e}
		k.subscribe(0, "a")
		for range before / 4 {
			runAll(t, e, s)
		}
		for shardNo := range before % 4 {
			e.Run(shardNo)
		}
		k.consumer.SetWindow(1)
		for range 200 {
			runAll(t, e, s)
		}
		if len(k.served) != 12 {
			t.Errorf("after %d rounds: %d tasks were handed out of 12", before, len(k.served))
		}
	}
}
