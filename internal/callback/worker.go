package callback

import (
	"maps"
	"slices"
	"sync"
	"time"

	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

const (
	// window is how many callbacks of one tenant are in flight or held.
	window = 64
	// maxTenants is how many tenants have a consumer; those beyond it that have nothing to do
	// lose theirs when another one needs one.
	maxTenants = 256
	// workerID is the name of the worker in histories.
	workerID = "codeq"
)

// Engine is what a Worker needs of a shardactor.Engine.
type Engine interface {
	NewConsumer(o shardactor.ConsumerOptions) *shardactor.Consumer
	Control(shardNo int, slot *mailbox.Slot[shard.Message], m shard.Message) bool
	Shards() int
	ShardOf(id wire.TaskID) int
	Named(tenant string, kind record.Kind) record.NamedList
	Name(n *shardactor.Naming)
}

// Options configure a Worker. All fields are required.
type Options struct {
	// Next gets every event that the worker gets.
	Next shardactor.Observer
	// Send posts a callback and calls done once, from any goroutine, after Send has
	// returned. It must not block.
	Send func(call *Call, done func(Answer))
	// NowMs is the time in Unix milliseconds, Random a number from 0 to below 1.
	NowMs  func() int64
	Random func() float64
	// Disabled is told of each endpoint that the worker has disabled. It must not block.
	Disabled func(tenant, name, reason string)
	// After calls do once, a time from now, from any goroutine and not before After has returned.
	After func(ms int64, do func())
}

// Call is one request to an endpoint.
type Call struct {
	wire.Callback
	Tenant string
	// Secrets sign it, the newest first; none is that of the tenant.
	Secrets                 []string
	Attempt                 int
	TraceParent, TraceState string
	// Within bounds the call; 0 is answerFor. Keep is how much of the body of the answer is kept.
	Within time.Duration
	Keep   int
}

// to is what the call goes to, for people: only of the answer of a target anything is kept.
func (c *Call) to() string {
	if c.Keep > 0 {
		return "target"
	}
	return "endpoint"
}

// Worker takes callbacks and has them posted. Its methods may be called from any goroutine,
// and none blocks.
type Worker struct {
	o Options

	mu sync.Mutex
	// engine is nil before Start.
	engine  Engine
	tenants map[string]*queue
	// targets are the queues that have a target.
	targets map[record.QueueKey]*queue
	stopped bool
}

// New makes a worker, which takes nothing before Start.
func New(o Options) *Worker {
	return &Worker{o: o, tenants: make(map[string]*queue), targets: make(map[record.QueueKey]*queue)}
}

// queue is the consumer of one queue: the callbacks of a tenant, or a queue with a target.
type queue struct {
	worker   *Worker
	key      record.QueueKey
	consumer *shardactor.Consumer
	// endpoints are those that callbacks go to.
	endpoints map[string]*endpoint
	// busy counts the callbacks that are ready or in progress.
	busy int64
	// target is nil for callbacks.
	target *target
}

// delivery is a callback, or a task for a target, in flight or held.
type delivery struct {
	*shard.Granted
	queue    *queue
	endpoint *endpoint
	call     *Call
	// heldAtMs is since when it waits for a place of its endpoint, version that of the named endpoint
	// to which its call goes.
	heldAtMs, version int64
	// posted: its payload counts no more as on its way.
	posted bool
}

// Load implements shardactor.Observer: a tenant with callbacks needs a consumer.
func (w *Worker) Load(shardNo int, number uint64, queues []store.QueueState) {
	w.o.Next.Load(shardNo, number, queues)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range queues {
		if q := &queues[i]; q.Key.Command == wire.CallbackQueue {
			w.serve(q.Key.Tenant, q.Counters.InProgress)
			for _, ready := range q.Counters.Ready {
				w.serve(q.Key.Tenant, ready)
			}
		}
	}
}

// Observe implements shardactor.Observer.
func (w *Worker) Observe(shardNo int, events []shard.Event) {
	w.o.Next.Observe(shardNo, events)
	for i := range events {
		if e := &events[i]; e.Command == wire.CallbackQueue {
			w.note(e.Tenant, keepsBusy(e.To)-keepsBusy(e.From))
		}
	}
}

func keepsBusy(at wire.Location) int64 {
	if at == wire.LocationPending || at == wire.LocationInProgress {
		return 1
	}
	return 0
}

func (w *Worker) note(name string, more int64) {
	if more == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve(name, more)
}

// serve counts more busy callbacks of a tenant, and gives it a consumer if it has none.
func (w *Worker) serve(name string, more int64) {
	t := w.tenants[name]
	if t == nil && (w.stopped || more <= 0) {
		return
	}
	if t == nil {
		w.makeRoom()
		t = &queue{worker: w, key: record.QueueKey{Command: wire.CallbackQueue, Tenant: name}, endpoints: make(map[string]*endpoint)}
		w.tenants[name] = t
		if w.engine != nil {
			t.begin()
		}
	}
	t.busy += more
}

// makeRoom takes the consumers of tenants that have nothing to do, and forgets how their
// endpoints fare.
func (w *Worker) makeRoom() {
	if len(w.tenants) < maxTenants || w.engine == nil {
		return
	}
	maps.DeleteFunc(w.tenants, func(_ string, t *queue) bool {
		if t.busy == 0 {
			t.consumer.Close(0)
		}
		return t.busy == 0
	})
}

// Start begins to take callbacks, once the engine takes messages.
func (w *Worker) Start(e Engine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine = e
	for _, name := range slices.Sorted(maps.Keys(w.tenants)) {
		w.tenants[name].begin()
	}
	for _, q := range slices.SortedFunc(maps.Keys(w.targets), record.QueueKey.Compare) {
		w.targets[q].serve()
	}
}

// begin takes the callbacks of a tenant.
func (s *queue) begin() {
	s.subscribe()
	s.consumer.SetWindow(window)
}

// subscribe makes the consumer, which has no window yet.
func (s *queue) subscribe() {
	e := s.worker.engine
	s.consumer = e.NewConsumer(shardactor.ConsumerOptions{
		Tenant: s.key.Tenant, Subject: shard.OwnSubject, WorkerID: workerID, OverHTTP: true, Sink: s,
	})
	for shardNo := range e.Shards() {
		// A shard that has stopped needs no subscription.
		_ = e.Control(shardNo, nil, &shard.Subscribe{Consumer: s.consumer.Consumer, Commands: []string{s.key.Command}})
	}
}

// Stop takes nothing more, and gives back what is held. Calls in flight may still end, and
// are noted then.
func (w *Worker) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, s := range w.targets {
		if s.consumer != nil {
			s.consumer.Close(0)
		}
	}
	for _, t := range w.tenants {
		if t.consumer == nil {
			continue
		}
		t.consumer.Close(0)
		for _, e := range t.endpoints {
			for _, d := range e.held {
				d.giveBack()
			}
			e.held = nil
		}
	}
}

// Deliver implements shard.Sink.
func (s *queue) Deliver(effects []shard.Effect) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	for _, e := range effects {
		if g, ok := e.(*shard.Granted); ok {
			s.take(&delivery{Granted: g, queue: s})
		}
	}
}

// take decides what becomes of a task that has just been granted.
func (s *queue) take(d *delivery) {
	switch {
	case s.worker.stopped:
		d.giveBack()
	case s.target != nil:
		d.push()
	default:
		d.callBack()
	}
}

// callBack decides what becomes of a callback.
func (d *delivery) callBack() {
	s, g := d.queue, d.Granted
	k, err := wire.ParseCallback(g.Task.Payload)
	if err != nil {
		d.fail("it cannot be read: " + err.Error())
		return
	}
	d.call = &Call{
		Callback: *k, Tenant: s.key.Tenant, Attempt: g.Task.Attempts + 1, TraceParent: g.Task.TraceParent, TraceState: g.Task.TraceState,
	}
	d.endpoint = s.endpointOf(k)
	d.heldAtMs = s.worker.o.NowMs()
	d.place()
}

// place sends a callback, holds it until its endpoint has a place, or puts it off. Nothing goes
// out for a delivery that is over.
func (d *delivery) place() {
	w, e := d.queue.worker, d.endpoint
	now := w.o.NowMs()
	if now >= d.LeaseUntilMs {
		d.giveBack()
		return
	}
	if d.call.Endpoint != "" && !d.address() {
		return
	}
	switch e.admits(now) {
	case admitted:
		e.inFlight++
		w.o.Send(d.call, func(a Answer) { d.answered(a) })
	case full:
		if now-d.heldAtMs < holdForMs {
			e.held = append(e.held, d)
			return
		}
		d.putOff(holdForMs + int64(w.o.Random()*holdForMs))
	default:
		d.putOff(e.waitMs(now, w.o.Random()))
	}
}

// answered notes what a call came to, and goes on with what its endpoint holds.
func (d *delivery) answered(a Answer) {
	w, e := d.queue.worker, d.endpoint
	w.mu.Lock()
	defer w.mu.Unlock()
	e.inFlight--
	if a.Stopped {
		d.giveBack()
		return
	}
	e.note(a, w.o.NowMs())
	gone := d.call.Endpoint != "" && e.isGone(a, w.o.NowMs())
	switch v := judge(a, d.Task.Attempts, w.o.Random()); {
	case v.done:
		d.end(&shard.Result{Holder: d.holder(), ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: a.result()}})
	case v.dead && !gone:
		d.fail(v.reason)
	default:
		d.end(&shard.End{How: shard.Nack, Holder: d.holder(), NackRequest: wire.NackRequest{DelaySeconds: v.afterSeconds, Reason: v.reason}})
	}
	if gone {
		d.disable(a)
	}
	held := e.held
	e.held = nil
	for _, next := range held {
		next.place()
	}
	d.queue.forget(e)
}

func (d *delivery) holder() shard.Holder {
	return shard.Holder{
		Owner: shard.Owner{Tenant: d.queue.key.Tenant, Subject: shard.OwnSubject}, TaskRef: wire.TaskRef{TaskID: d.Task.ID, Token: d.Token},
	}
}

// fail ends the callback as a dead letter.
func (d *delivery) fail(reason string) {
	d.end(&shard.Result{Holder: d.holder(), ResultRequest: wire.ResultRequest{Status: wire.StatusFailed, Error: reason}})
}

// putOff has the callback wait without a failed attempt.
func (d *delivery) putOff(ms int64) {
	d.end(&shard.End{How: shard.PutOff, Holder: d.holder(), NackRequest: wire.NackRequest{DelaySeconds: (ms + 999) / 1000}})
}

// giveBack returns the callback to its place, because the server stops or its lease has run
// out.
func (d *delivery) giveBack() {
	d.end(&shard.End{How: shard.Release, Holder: d.holder(), ReleaseRequest: wire.ReleaseRequest{Stopping: true}})
}

// end tells the shard how the delivery ends, and frees its place in the window. Of an answer
// that says that the delivery is over already nothing follows.
func (d *delivery) end(m shard.Message) {
	// A shard that has stopped leaves the delivery to its lease.
	_ = d.queue.worker.engine.Control(d.queue.worker.engine.ShardOf(d.Task.ID), nil, m)
	d.free()
}

// free gives back the place of the delivery in the window.
func (d *delivery) free() {
	d.arrive()
	d.queue.consumer.Return(1)
}

// arrive counts the payload as taken by whom it goes to.
func (d *delivery) arrive() {
	if !d.posted {
		d.posted = true
		d.queue.consumer.Taken(len(d.Task.Payload), shard.MaxUntakenBytes)
	}
}
