package shardactor

import (
	"fmt"
	"testing"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// A limit goes round the shards, though each may use its places again: no shard with
// work waits for long, whatever the limit.
func TestPlacesOfALimitGoRound(t *testing.T) {
	const shards, perShard = 4, 150
	for _, limit := range []int{1, 2, 5, 64} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			e, s := steppedEngine(t, shards)
			fill(t, e, s, perShard)
			e.Configure(&Change{
				Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true, MaxInProgress: limit}},
				Done: func(record.Settings, *wire.Error) {},
			})
			runAll(t, e, s) // the home
			runAll(t, e, s) // the copies
			k := &keeper{engine: e}
			k.consumer = e.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "anonymous", Sink: k})
			k.consumer.SetWindow(4 * perShard)
			for shardNo := range shards {
				e.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: k.consumer.Consumer, Commands: []string{"a"}, LeaseForMs: 3_600_000}}, 0, mailbox.ClassKeep)
			}
			for done := -1; done < len(k.served); {
				done = len(k.served)
				for range 4 {
					runAll(t, e, s)
				}
			}
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
