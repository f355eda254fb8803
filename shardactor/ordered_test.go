package shardactor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/audit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// spread lets the tasks of the queue a lie on all shards.
func (e *testEngine) spread(t *testing.T) {
	t.Helper()
	if now := e.configure(t, shard.SettingsChange{Settings: &wire.QueueSettings{Spread: true}}); !now.Spread {
		t.Fatalf("a queue was set to %+v", now)
	}
}

// payloads are the payloads of what a worker was given, in order.
func (w *idleWorker) payloads() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.effects {
		if g, ok := e.(*shard.Granted); ok {
			all = append(all, string(g.Task.Payload))
		}
	}
	return all
}

// Hundreds of tasks with and without keys, of three priorities, in a queue that
// nobody set: they come out by priority, then as they went in, over a restart.
func TestU02QueueHasOneOrderWithoutBeingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		const tasks = 300
		var want []string
		for i := range tasks {
			r := wire.EnqueueRequest{Command: "a", Payload: fmt.Appendf(nil, "%d", i), Priority: i % 3, MaxAttempts: 3}
			if i%4 == 0 {
				r.IdempotencyKey = fmt.Sprint("key", i)
			}
			e.enqueue(t, nil, 1, r)
			if i == tasks/2 {
				synctest.Wait()
				e.stop()
				e = startTestEngine(t, 4, disk, noFatal)
			}
		}
		for priority := 2; priority >= 0; priority-- {
			for i := priority; i < tasks; i += 3 {
				want = append(want, fmt.Sprint(i))
			}
		}
		synctest.Wait() // a worker that comes goes before new tasks
		w := newIdleWorker(e, 1, tasks)
		synctest.Wait()
		if got := w.payloads(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("tasks came out as\n%v, want\n%v", got, want)
		}
		mustFindNothing(t, e)
		w.consumer.Close(0)
		synctest.Wait()
		e.stop()
	})
}

// A crash comes when only the home of a queue knows that it is spread no more.
// After the start no other shard takes a task of it.
func TestU02OneOrderReachesEveryShardAfterACrashHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		e.spread(t)
		home := wire.ShardOfQueue("default", "a", 4)
		e.Post(home, []shard.Message{&shard.Configure{Queue: queueA, Change: shard.SettingsChange{Settings: &wire.QueueSettings{}}}}, 1, mailbox.ClassKeep)
		synctest.Wait()
		e.stop()

		e = startTestEngine(t, 4, disk, noFatal)
		defer e.stop()
		for shardNo := range e.Shards() {
			answers := &collector{}
			e.postTo(shardNo, answers, shard.Ref(shardNo))
			synctest.Wait()
			said := fmt.Sprintf("%T %+v", answers.effects[0], answers.effects[0])
			if refused, isOne := answers.effects[0].(*shard.Refused); len(answers.effects) != 1 || isOne == (shardNo == home) ||
				isOne && (refused.Err.Code != wire.CodeOverloaded || !refused.Err.Code.Retryable()) {
				t.Errorf("shard %d, the home is %d, answers %s", shardNo, home, said)
			}
		}
		mustFindNothing(t, e)
	})
}

// A queue is spread over the tasks that it has, and has one order again only when
// no shard but its home holds one, ended ones included.
func TestU02SpreadHoldsAtOnceAndEndsOverOneShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		home := wire.ShardOfQueue("default", "a", 4)
		made := func(key string) (shards [4]int) {
			answers := &collector{}
			for n := range 40 {
				r := wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 3}
				if key != "" {
					r.IdempotencyKey = fmt.Sprint(key, n)
				}
				e.enqueue(t, answers, 1, r)
			}
			synctest.Wait()
			for _, effect := range answers.effects {
				shards[e.ShardOf(effect.(*shard.Enqueued).TaskID)]++
			}
			return shards
		}
		if got := made(""); got[home] != 40 {
			t.Errorf("40 tasks lie in shards %v, the home is %d", got, home)
		}
		e.spread(t)
		got := made("")
		for shardNo, n := range got {
			if n == 0 {
				t.Errorf("40 tasks of a spread queue lie in shards %v: none in %d", got, shardNo)
			}
		}
		if got := made("k"); got[home] != 40 {
			t.Errorf("40 tasks with keys lie in shards %v, the home is %d", got, home)
		}
		var refusal *wire.Error
		e.Configure(&Change{
			Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{}},
			Done: func(_ record.Settings, r *wire.Error) { refusal = r },
		})
		synctest.Wait()
		if refusal == nil || refusal.Code != wire.CodeQueueNotEmpty {
			t.Errorf("one order over tasks in all shards: %v", refusal)
		}
		if got := made(""); got[home] == 40 {
			t.Errorf("after the refusal all 40 tasks lie in shard %d", home)
		}
		mustFindNothing(t, e)
	})
}

// postTo sends a task of the queue a to a shard, whoever that should go to.
func (e *testEngine) postTo(shardNo int, sink shard.Sink, ref shard.Ref) {
	id, _ := e.Route("default", "a", "")
	m := &shard.Enqueue{
		Asker: shard.Asker{Sink: sink, Ref: ref}, ID: id.MovedTo(shardNo, e.Shards()), Tenant: "default",
		EnqueueRequest: wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 3},
	}
	e.Post(shardNo, []shard.Message{m}, 1, mailbox.ClassNew)
}

// race is an engine that a test steps by hand, so that every step of a change can
// meet every step of tasks that are on their way.
type race struct {
	t      *testing.T
	engine *Engine
	store  *store.Store
	chance *rand.Rand
	nowMs  int64
	step   int
	// late are tasks that were routed and not posted yet.
	late   []*racer
	racers []*racer
	// refused counts tasks that a change met, wentBack queues that were spread and
	// got one order again.
	refused, wentBack int
}

// racer is one task that is posted, and its answer.
type racer struct {
	race     *race
	message  *shard.Enqueue
	shard    int
	routedAt int
	doneAt   int
	id       wire.TaskID
	answers  int
}

// Deliver implements Sink.
func (r *racer) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		if refused, ok := e.(*shard.Refused); ok && refused.Err.Code == wire.CodeOverloaded {
			r.race.refused++
			r.race.draw(r)
			r.race.late = append(r.race.late, r)
			continue
		}
		made, ok := e.(*shard.Enqueued)
		if !ok {
			r.race.t.Fatalf("a task on its way was answered %T %+v", e, e)
		}
		r.answers++
		r.id, r.doneAt = made.TaskID, r.race.step
	}
}

func newRace(t *testing.T, seed uint64) *race {
	t.Helper()
	x := &race{t: t, chance: rand.New(rand.NewPCG(seed, 1)), nowMs: testEpochMs}
	gates, random := new(Gates), rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	s, err := store.Open(store.Options{
		FS: vfs.NewMem(), Dir: "data", Shards: 3, Log: zerolog.Nop(), Random: random, Synced: gates.Synced, Fatal: noFatal,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.store = s
	x.engine, err = NewEngine(EngineOptions{
		Store: s, Gates: gates, Random: random, Log: zerolog.Nop(), Fatal: noFatal,
		StartClock: func(int64) func() int64 { return func() int64 { return x.nowMs } },
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *race) route(q record.QueueKey) *racer {
	r := &racer{race: x}
	request := wire.EnqueueRequest{Command: q.Command, Payload: fmt.Appendf(nil, "%d", len(x.racers)), MaxAttempts: 3}
	if x.chance.IntN(2) == 0 {
		request.IdempotencyKey = fmt.Sprint("key", x.chance.IntN(3))
		request.Payload = []byte("0")
	}
	r.message = &shard.Enqueue{Asker: shard.Asker{Sink: r}, Tenant: q.Tenant, EnqueueRequest: request, Fingerprint: shard.FingerprintOf(&request)}
	x.draw(r)
	x.racers = append(x.racers, r)
	return r
}

// draw draws an id, anew after a refusal.
func (x *race) draw(r *racer) {
	m := *r.message
	m.ID, r.shard = x.engine.Route(m.Tenant, m.Command, m.IdempotencyKey)
	r.message, r.routedAt = &m, x.step
}

func (x *race) post(r *racer) {
	if v := x.engine.Post(r.shard, []shard.Message{r.message}, 1, mailbox.ClassNew); v != mailbox.Accepted {
		x.t.Fatalf("post: %v", v)
	}
}

func (x *race) runSome() {
	x.engine.Run(x.chance.IntN(x.engine.Shards()))
}

func (x *race) sync() {
	if err := x.store.Barrier(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *race) settle() {
	for busy := true; busy; {
		late := x.late
		x.late, busy = nil, len(late) > 0
		for _, r := range late {
			x.post(r)
		}
		for shard := range x.engine.Shards() {
			x.engine.Run(shard)
		}
		x.sync()
		for shard := range x.engine.Shards() {
			busy = busy || x.engine.MailboxFigures(shard).Depth > 0 || len(x.late) > 0
		}
	}
}

// change begins a change of the order and says how it ended, once it has.
func (x *race) change(q record.QueueKey, spread bool) *changed {
	c := &changed{}
	x.engine.Configure(&Change{
		Queue: q, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: spread}},
		Done: func(now record.Settings, refusal *wire.Error) {
			c.answers++
			c.now, c.refusal, c.doneAt = now, refusal, x.step
		},
	})
	return c
}

type changed struct {
	answers int
	now     record.Settings
	refusal *wire.Error
	doneAt  int
}

// story lets one queue live through a change or two, with tasks that were routed
// before, meanwhile and after.
func (x *race) story(q record.QueueKey) (settledAt int) {
	x.racers = nil
	changes := []*changed{x.change(q, x.chance.IntN(4) > 0)}
	for range 40 {
		x.step++
		switch x.chance.IntN(8) {
		case 0:
			x.post(x.route(q))
		case 1:
			x.late = append(x.late, x.route(q))
		case 2:
			if n := len(x.late); n > 0 {
				i := x.chance.IntN(n)
				x.post(x.late[i])
				x.late = append(x.late[:i], x.late[i+1:]...)
			}
		case 3:
			if len(changes) < 4 {
				changes = append(changes, x.change(q, x.chance.IntN(3) == 0))
			}
		case 4, 5, 6:
			x.runSome()
		case 7:
			x.sync()
		}
	}
	x.settle()
	for _, c := range changes {
		if c.answers != 1 {
			x.t.Fatalf("a change of %v was answered %d times", q, c.answers)
		}
		if c.refusal != nil && c.refusal.Code != wire.CodeQueueNotEmpty {
			x.t.Fatalf("a change of %v was refused: %v", q, c.refusal)
		}
		if c.refusal == nil {
			settledAt = max(settledAt, c.doneAt)
			if c.now.Version > 1 && !c.now.Spread {
				x.wentBack++
			}
		}
	}
	return settledAt
}

// check looks at a queue after its story.
func (x *race) check(q record.QueueKey, settledAt int) {
	figures, err := x.store.ReadQueue(q)
	if err != nil {
		x.t.Fatal(err)
	}
	home, keys := wire.ShardOfQueue(q.Tenant, q.Command, 3), map[string]wire.TaskID{}
	for _, r := range x.racers {
		if r.answers != 1 {
			x.t.Fatalf("task %s of %v was answered %d times", r.message.Payload, q, r.answers)
		}
		key := r.message.IdempotencyKey
		if shard := x.engine.ShardOf(r.id); (key != "" || !figures.Settings.Spread) && shard != home {
			x.t.Errorf("task %v of %v with key %q, spread %t, is in shard %d, not %d", r.id, q, key, figures.Settings.Spread, shard, home)
		}
		if first, known := keys[key]; key != "" && known && first != r.id {
			x.t.Errorf("key %s of %v made %v and %v", key, q, first, r.id)
		}
		keys[key] = r.id
	}
	if !figures.Settings.Spread {
		x.comesInOrder(q, settledAt)
	}
}

// comesInOrder hands out the tasks of a queue: of two that were posted after the
// answer of the change, one that was answered before the other was routed is the
// first.
func (x *race) comesInOrder(q record.QueueKey, settledAt int) {
	place := map[wire.TaskID]int{}
	w := &collector{}
	consumer := x.engine.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: q.Tenant, Subject: "anonymous", Sink: w})
	consumer.SetWindow(1000)
	for shardNo := range x.engine.Shards() {
		x.engine.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: consumer.Consumer, Commands: []string{q.Command}}}, 0, mailbox.ClassKeep)
	}
	x.settle()
	for i, e := range w.effects {
		if g, ok := e.(*shard.Granted); ok {
			place[g.Task.ID] = i
		}
	}
	consumer.Close(0)
	x.settle()
	for _, a := range x.racers {
		for _, b := range x.racers {
			if a.routedAt > settledAt && b.routedAt > a.doneAt && a.id != b.id && b.message.IdempotencyKey == "" && place[a.id] > place[b.id] {
				x.t.Errorf("of %v, %v was answered in step %d and comes behind %v of step %d", q, a.id, a.doneAt, b.id, b.routedAt)
			}
		}
	}
}

// Whatever step of a change a task meets on its way, it is made once, has its
// place, and keeps its key to itself.
func TestTasksOnTheirWayMeetChangesOfTheOrder(t *testing.T) {
	var refused, wentBack int
	for seed := range uint64(60) {
		x := newRace(t, seed)
		for n := range 8 {
			q := record.QueueKey{Command: fmt.Sprint("q", n), Tenant: "default"}
			x.check(q, x.story(q))
		}
		findings, err := audit.Check(x.store)
		if err != nil || len(findings) > 0 {
			t.Errorf("check: %v, %v", findings, err)
		}
		refused, wentBack = refused+x.refused, wentBack+x.wentBack
		if err := x.store.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if refused < 20 || wentBack < 20 {
		t.Errorf("in all stories %d tasks met a change and %d queues went back to one order: they tell nothing", refused, wentBack)
	}
}

// Under load and with real goroutines: producers that never stop while an admin
// spreads their queues and asks for one order again.
func TestProducersNeverStopWhileTheOrderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		const queues, producers, each = 12, 4, 6
		answers := &collector{}
		for n := range queues {
			q := record.QueueKey{Command: fmt.Sprint("q", n), Tenant: "default"}
			for p := range producers {
				go func() {
					for i := range each {
						r := wire.EnqueueRequest{Command: q.Command, Payload: []byte("1"), MaxAttempts: 3}
						if i%2 == 0 {
							r.IdempotencyKey = fmt.Sprint(p, "/", i)
						}
						e.enqueue(t, answers, 1, r)
						time.Sleep(time.Duration(p) * time.Microsecond) // synctest
					}
				}()
			}
			for _, spread := range []bool{true, false} {
				go e.Configure(&Change{
					Queue: q, What: shard.SettingsChange{Settings: &wire.QueueSettings{Spread: spread}},
					Done: func(record.Settings, *wire.Error) {},
				})
			}
		}
		synctest.Wait()
		time.Sleep(time.Second) // synctest: whatever is still to be posted
		synctest.Wait()
		if n := len(answers.effects); n != queues*producers*each {
			t.Errorf("%d answers to %d tasks", n, queues*producers*each)
		}
		for _, effect := range answers.effects {
			made, ok := effect.(*shard.Enqueued)
			if refused, met := effect.(*shard.Refused); ok && made.Replayed || !ok && (!met || refused.Err.Code != wire.CodeOverloaded) {
				t.Errorf("a task was answered %T %+v", effect, effect)
			}
		}
		mustFindNothing(t, e)
	})
}
