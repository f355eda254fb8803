package shardactor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/mailbox"
	"codeq/store"
	"codeq/wire"
)

func (e *testEngine) order(t *testing.T) {
	t.Helper()
	if now := e.configure(t, SettingsChange{Settings: &wire.QueueSettings{Ordered: true}}); !now.Ordered {
		t.Fatalf("an empty queue was set to %+v", now)
	}
}

// payloadsOf are the payloads of what a worker was given, in order.
func (w *idleWorker) payloads() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.effects {
		if g, ok := e.(*Granted); ok {
			all = append(all, string(g.Task.Payload))
		}
	}
	return all
}

// Hundreds of tasks with and without keys, of three priorities, in a queue that
// is ordered: they come out by priority, then as they went in, over a restart.
func TestOrderedQueueHasOneOrderOverAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		e.order(t)
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
		w.seat.Close(0)
		synctest.Wait()
		e.stop()
	})
}

// A crash comes when only the home of a queue knows that it is ordered. After the
// start a task that is sent to another shard, as it would have been before, ends
// at home all the same.
func TestOrderReachesEveryShardAfterACrashHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		home := wire.ShardOfQueue("default", "a", 4)
		ordered := &wire.QueueSettings{Ordered: true}
		e.Post(home, []Message{&Configure{Queue: queueA, Change: SettingsChange{Settings: ordered}}}, 1, mailbox.ClassKeep)
		synctest.Wait()
		e.stop()

		e = startTestEngine(t, 4, disk, noFatal)
		defer e.stop()
		answers := &collector{}
		for shard := range e.Shards() {
			e.postTo(shard, answers, uint64(shard))
		}
		synctest.Wait()
		if len(answers.effects) != 4 {
			t.Fatalf("%d answers to 4 tasks", len(answers.effects))
		}
		for _, effect := range answers.effects {
			made, ok := effect.(*Enqueued)
			if !ok || e.ShardOf(made.TaskID) != home {
				t.Errorf("%s, want a task in shard %d", describeEffect(effect), home)
			}
		}
		mustFindNothing(t, e)
	})
}

// postTo sends a task of the queue a to a shard, whoever that should go to.
func (e *testEngine) postTo(shard int, sink Sink, ref uint64) {
	id, of := e.Route("default", "other", "")
	for of != shard {
		id, of = e.Route("default", "other", "")
	}
	m := &Enqueue{
		Asker: Asker{Sink: sink, Ref: ref}, ID: id, Tenant: "default",
		EnqueueRequest: wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 3},
	}
	e.Post(shard, []Message{m}, 1, mailbox.ClassNew)
}

// The engine stops in the middle of a change. Every task that waited for it is
// answered, and so is each that was one too many to wait.
func TestStopAnswersWhoWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 2, vfs.NewMem(), noFatal)
		away := 1 - wire.ShardOfQueue("default", "a", 2)
		e.Post(away, []Message{&Freeze{Queue: queueA}}, 1, mailbox.ClassKeep)
		answers := &collector{}
		for i := range DefaultLimits.Parked + 7 {
			e.postTo(away, answers, uint64(i))
		}
		synctest.Wait()
		e.stop()
		said := map[wire.Code]int{}
		for _, effect := range answers.effects {
			if r, ok := effect.(*Refused); ok {
				said[r.Err.Code]++
			}
		}
		if said[wire.CodeDraining] != DefaultLimits.Parked || said[wire.CodeOverloaded] != 7 || len(answers.effects) != DefaultLimits.Parked+7 {
			t.Errorf("%d answers to %d tasks: %v", len(answers.effects), DefaultLimits.Parked+7, said)
		}
	})
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
	late    []*racer
	racers  []*racer
	strayed int
	parked  int
}

// racer is one task that is posted, and its answer.
type racer struct {
	race     *race
	message  *Enqueue
	shard    int
	routedAt int
	doneAt   int
	id       wire.TaskID
	answers  int
}

// Deliver implements Sink.
func (r *racer) Deliver(effects []Effect) {
	for _, e := range effects {
		made, ok := e.(*Enqueued)
		if !ok {
			r.race.t.Fatalf("a task on its way was answered %s", describeEffect(e))
		}
		r.answers++
		r.id, r.doneAt = made.TaskID, r.race.step
	}
}

func newRace(t *testing.T, seed uint64) *race {
	t.Helper()
	x := &race{t: t, chance: rand.New(rand.NewPCG(seed, 1)), nowMs: scriptEpochMs}
	outlets, random := new(Outlets), rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	s, err := store.Open(store.Options{
		FS: vfs.NewMem(), Dir: "data", Shards: 3, Log: zerolog.Nop(), Random: random, Synced: outlets.Synced, Fatal: noFatal,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.store = s
	x.engine, err = NewEngine(EngineOptions{
		Store: s, Outlets: outlets, Random: random, Log: zerolog.Nop(), Fatal: noFatal,
		StartClock: func(int64) func() int64 { return func() int64 { return x.nowMs } },
		Strayed:    func(effects []Effect) { x.strayed += len(effects) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *race) route(q store.QueueKey) *racer {
	r := &racer{race: x, routedAt: x.step}
	request := wire.EnqueueRequest{Command: q.Command, Payload: fmt.Appendf(nil, "%d", len(x.racers)), MaxAttempts: 3}
	if x.chance.IntN(2) == 0 {
		request.IdempotencyKey = fmt.Sprint("key", x.chance.IntN(3))
		request.Payload = []byte("0")
	}
	r.message = &Enqueue{Asker: Asker{Sink: r}, Tenant: q.Tenant, EnqueueRequest: request}
	r.message.ID, r.shard = x.engine.Route(q.Tenant, q.Command, request.IdempotencyKey)
	r.message.Fingerprint = FingerprintOf(&request)
	x.racers = append(x.racers, r)
	return r
}

func (x *race) post(r *racer) {
	if v := x.engine.Post(r.shard, []Message{r.message}, 1, mailbox.ClassNew); v != mailbox.Accepted {
		x.t.Fatalf("post: %v", v)
	}
}

func (x *race) runSome() {
	shard := x.chance.IntN(x.engine.Shards())
	x.engine.Run(shard)
	x.parked += len(x.engine.loops[shard].core.parked)
}

func (x *race) sync() {
	if err := x.store.Barrier(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *race) settle() {
	for _, r := range x.late {
		x.post(r)
	}
	x.late = nil
	for busy := true; busy; {
		busy = false
		for shard := range x.engine.Shards() {
			x.engine.Run(shard)
		}
		x.sync()
		for shard := range x.engine.Shards() {
			busy = busy || x.engine.MailboxFigures(shard).Depth > 0
		}
	}
}

// change begins a change of the order and says how it ended, once it has.
func (x *race) change(q store.QueueKey, ordered bool) *changed {
	c := &changed{}
	x.engine.Configure(&Change{
		Queue: q, What: SettingsChange{Settings: &wire.QueueSettings{Ordered: ordered}},
		Done: func(now store.Settings, refusal *wire.Error) {
			c.answers++
			c.now, c.refusal, c.doneAt = now, refusal, x.step
		},
	})
	return c
}

type changed struct {
	answers int
	now     store.Settings
	refusal *wire.Error
	doneAt  int
}

// story lets one queue live through a change or two, with tasks that were routed
// before, meanwhile and after.
func (x *race) story(q store.QueueKey) (orderedAt int) {
	x.racers = nil
	var changes []*changed
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
			if len(changes) < 3 {
				changes = append(changes, x.change(q, x.chance.IntN(4) > 0))
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
			orderedAt = max(orderedAt, c.doneAt)
		}
	}
	return orderedAt
}

// judge looks at a queue after its story.
func (x *race) judge(q store.QueueKey, orderedAt int) (ordered bool) {
	figures, err := x.store.ReadQueue(q)
	if err != nil {
		x.t.Fatal(err)
	}
	home, keys := wire.ShardOfQueue(q.Tenant, q.Command, 3), map[string]wire.TaskID{}
	for _, r := range x.racers {
		if r.answers != 1 {
			x.t.Fatalf("task %s of %v was answered %d times", r.message.Payload, q, r.answers)
		}
		if shard := x.engine.ShardOf(r.id); figures.Settings.Ordered && shard != home {
			x.t.Errorf("task %v of the ordered queue %v is in shard %d, not %d", r.id, q, shard, home)
		}
		key := r.message.IdempotencyKey
		if first, known := keys[key]; key != "" && known && first != r.id {
			x.t.Errorf("key %s of %v made %v and %v", key, q, first, r.id)
		}
		keys[key] = r.id
	}
	if figures.Settings.Ordered {
		x.comesInOrder(q, orderedAt)
	}
	return figures.Settings.Ordered
}

// comesInOrder hands out the tasks of a queue: of two that were posted after the
// answer of the change, one that was answered before the other was routed is the
// first.
func (x *race) comesInOrder(q store.QueueKey, orderedAt int) {
	place := map[wire.TaskID]int{}
	w := &collector{}
	seat := x.engine.NewSeat(SeatOptions{ID: wire.SessionID{1}, Tenant: q.Tenant, Subject: "anonymous", Sink: w})
	seat.SetWindow(1000)
	for shard := range x.engine.Shards() {
		x.engine.Post(shard, []Message{&Subscribe{Seat: seat, Commands: []string{q.Command}}}, 0, mailbox.ClassKeep)
	}
	x.settle()
	for i, e := range w.effects {
		if g, ok := e.(*Granted); ok {
			place[g.Task.ID] = i
		}
	}
	seat.Close(0)
	x.settle()
	for _, a := range x.racers {
		for _, b := range x.racers {
			if a.routedAt > orderedAt && b.routedAt > a.doneAt && a.id != b.id && b.message.IdempotencyKey == "" && place[a.id] > place[b.id] {
				x.t.Errorf("of %v, %v was answered in step %d and comes behind %v of step %d", q, a.id, a.doneAt, b.id, b.routedAt)
			}
		}
	}
}

// Whatever step of a change a task meets on its way, it is answered once, has its
// place, and keeps its key to itself.
func TestTasksOnTheirWayMeetChangesOfTheOrder(t *testing.T) {
	var ordered, strayed, parked int
	for seed := range uint64(60) {
		x := newRace(t, seed)
		for n := range 8 {
			q := store.QueueKey{Command: fmt.Sprint("q", n), Tenant: "default"}
			if x.judge(q, x.story(q)) {
				ordered++
			}
		}
		findings, err := x.store.Check()
		if err != nil || len(findings) > 0 {
			t.Errorf("check: %v, %v", findings, err)
		}
		strayed, parked = strayed+x.strayed, parked+x.parked
		if err := x.store.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if ordered < 20 || strayed < 20 || parked < 20 {
		t.Errorf("in all stories %d queues became ordered, %d tasks strayed and %d waited: they tell nothing", ordered, strayed, parked)
	}
}

// Under load and with real goroutines: producers that never stop while an admin
// asks for the order again and again.
func TestProducersNeverStopWhileTheOrderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		const queues, producers, each = 12, 4, 6
		home := make(map[string]int)
		answers := &collector{}
		for n := range queues {
			command := fmt.Sprint("q", n)
			home[command] = wire.ShardOfQueue("default", command, 4)
			for p := range producers {
				go func() {
					for i := range each {
						e.enqueue(t, answers, 1, wire.EnqueueRequest{
							Command: command, Payload: []byte("1"), MaxAttempts: 3, IdempotencyKey: fmt.Sprint(p, "/", i),
						})
						time.Sleep(time.Duration(p) * time.Microsecond) // synctest
					}
				}()
			}
			q := store.QueueKey{Command: command, Tenant: "default"}
			go e.Configure(&Change{
				Queue: q, What: SettingsChange{Settings: &wire.QueueSettings{Ordered: true}},
				Done: func(store.Settings, *wire.Error) {},
			})
		}
		synctest.Wait()
		time.Sleep(time.Second) // synctest: whatever is still to be posted
		synctest.Wait()
		if n := len(answers.effects); n != queues*producers*each {
			t.Errorf("%d answers to %d tasks", n, queues*producers*each)
		}
		for _, effect := range answers.effects {
			if made, ok := effect.(*Enqueued); !ok || made.Replayed {
				t.Errorf("a task was answered %s", describeEffect(effect))
			}
		}
		mustFindNothing(t, e)
	})
}
