package shardactor

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// keeper is the session of a worker that answers at once, except for the tasks
// it got first: those stay in its hand for ever.
type keeper struct {
	engine   *Engine
	consumer *Consumer
	stuck    int
	served   []int    // the shard of each grant
	queues   []string // the queue of each
	left     int
}

// Deliver implements Sink.
func (k *keeper) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			k.granted(e)
		case *shard.Completed:
			if e.CreditReused {
				k.left++
			} else {
				k.consumer.Return(1)
			}
		}
	}
}

// subscribe opens the session with a window, and subscribes it to queues in every shard.
func (k *keeper) subscribe(window int, commands ...string) {
	k.consumer = k.engine.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "anonymous", Sink: k})
	k.consumer.SetWindow(window)
	for shardNo := range k.engine.Shards() {
		k.engine.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: k.consumer.Consumer, Commands: commands, LeaseForMs: 3_600_000}}, 0, mailbox.ClassKeep)
	}
}

// workAll lets the session work until it gets nothing more.
func (k *keeper) workAll(t *testing.T, s *store.Store) {
	t.Helper()
	for done := -1; done < len(k.served); {
		done = len(k.served)
		for range 4 {
			runAll(t, k.engine, s)
		}
	}
}

func (k *keeper) granted(e *shard.Granted) {
	k.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
	shardNo := k.engine.ShardOf(e.Task.ID)
	k.served = append(k.served, shardNo)
	k.queues = append(k.queues, e.Task.Command)
	if k.stuck > 0 {
		k.stuck--
		return
	}
	k.engine.Post(shardNo, []shard.Message{&shard.Result{
		Holder: shard.Holder{
			Asker: shard.Asker{Sink: k}, Owner: shard.Owner{Tenant: "default", Subject: "anonymous"},
			TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token},
		},
		ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
		HasCredit:     true,
	}}, 2, mailbox.ClassKeep)
}

// Shards that keep credits for themselves must not leave one without: while all
// of them have work, none waits for long, whatever the window and however much
// of it is stuck.
func TestShardsThatReuseCreditStarveNone(t *testing.T) {
	const shards, perShard = 4, 150
	for _, test := range []struct {
		name          string
		window, stuck int
		longest       int // grants to others while a shard with work gets none
		keeps         bool
	}{
		{"window of one", 1, 0, 8, false},
		{"window of the shards", 4, 0, 60, true},
		{"a wide window", 64, 0, 4 * 64, true},
		{"half of it stuck", 8, 4, 60, true},
		{"all but one stuck", 5, 4, 60, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, s := steppedEngine(t, shards)
			k := &keeper{engine: e, stuck: test.stuck}
			fill(t, e, s, perShard)
			k.subscribe(test.window, "a")
			k.workAll(t, s)
			if len(k.served) != shards*perShard {
				t.Fatalf("%d tasks were handed out of %d", len(k.served), shards*perShard)
			}
			if got := longestWait(k.served, shards, perShard); got > test.longest {
				t.Errorf("a shard with work waited for %d grants to others, want at most %d", got, test.longest)
			}
			if (k.left > 0) != test.keeps {
				t.Errorf("%d units were kept", k.left)
			}
		})
	}
}

// Three queues of one shard, or two, and one of another, full all the time: each
// has as much of the session, however it names them. (A wide window goes over from
// the shard that took it first bit by bit, which takes longer than this test.)
func TestU02QueuesOfAllShardsShareASession(t *testing.T) {
	for _, c := range []struct{ ofOne, window int }{{3, 1}, {3, 4}, {2, 1}} {
		names := queuesAtHome(map[int]int{1: c.ofOne, 2: 1}, 4)
		for what, commands := range map[string][]string{"all": {wire.AllCommands}, "by name": names} {
			t.Run(fmt.Sprint(c.ofOne, " and 1, window ", c.window, ", ", what), func(t *testing.T) {
				shareASession(t, names, c.window, commands)
			})
		}
	}
}

func shareASession(t *testing.T, names []string, window int, commands []string) {
	t.Helper()
	// The first to run takes the whole window; after settled grants that is over.
	const shards, perQueue, settled, seen = 4, 600, 400, 1000
	e, s := steppedEngine(t, shards)
	for range perQueue {
		for _, command := range names {
			id, shardNo := e.Route("default", command, "")
			m := &shard.Enqueue{ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{Command: command, Payload: []byte("1"), MaxAttempts: 3}}
			e.Post(shardNo, []shard.Message{m}, 1, mailbox.ClassKeep)
		}
		runAll(t, e, s)
	}
	k := &keeper{engine: e}
	k.subscribe(window, commands...)
	for len(k.served) < settled+seen {
		runAll(t, e, s)
	}
	of := make(map[string]int)
	for _, command := range k.queues[settled:][:seen] {
		of[command]++
	}
	for _, command := range names {
		if off := float64(100*of[command])/seen - 100/float64(len(names)); off < -3 || off > 3 {
			t.Errorf("%s had %d of %d grants, of %d queues: %v", command, of[command], seen, len(names), of)
		}
	}
}

// queuesAtHome are names of queues, as many at home in each shard as asked for.
func queuesAtHome(perShard map[int]int, shards int) (names []string) {
	for n, left := 0, perShard; len(left) > 0; n++ {
		name := fmt.Sprint("queue", n)
		home := wire.ShardOfQueue("default", name, shards)
		if left[home] > 0 {
			names = append(names, name)
			left[home]--
		}
		if left[home] == 0 {
			delete(left, home)
		}
	}
	return names
}

// longestWait is the longest run of grants in which some shard that still had
// tasks got none.
func longestWait(served []int, shards, perShard int) (longest int) {
	last, left := make([]int, shards), make([]int, shards)
	for shard := range left {
		left[shard] = perShard
	}
	for i, shard := range served {
		longest = max(longest, i-last[shard])
		last[shard] = i
		left[shard]--
	}
	return longest
}

// steppedEngine is an engine whose every step is the test's.
func steppedEngine(t *testing.T, shards int) (*Engine, *store.Store) {
	t.Helper()
	e := newTestEngine(t, shards, vfs.NewMem(), noFatal)
	t.Cleanup(func() {
		if err := e.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.Engine, e.store
}

func runAll(t *testing.T, e *Engine, s *store.Store) {
	t.Helper()
	for shard := range e.Shards() {
		e.Run(shard)
	}
	if err := s.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// fill gives every shard as many tasks of a queue that is spread.
func fill(t *testing.T, e *Engine, s *store.Store, perShard int) {
	t.Helper()
	e.Configure(&Change{
		Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true}}, Done: func(record.Settings, *wire.Error) {},
	})
	runAll(t, e, s) // the home
	runAll(t, e, s) // the copies
	left := make([]int, e.Shards())
	for shardNo := range left {
		left[shardNo] = perShard
	}
	for n := e.Shards() * perShard; n > 0; {
		id, shardNo := e.Route("default", "a", "")
		if left[shardNo] == 0 {
			continue
		}
		m := &shard.Enqueue{ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 3}}
		if v := e.Post(shardNo, []shard.Message{m}, 1, mailbox.ClassNew); v != mailbox.Accepted {
			t.Fatalf("enqueue: %v", v)
		}
		left[shardNo]--
		n--
	}
}
