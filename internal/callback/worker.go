package callback

import (
	"maps"
	"slices"
	"sync"

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
	// subject owns the deliveries. No credential has it: it is not trimmed.
	subject = " codeq"
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
}

// Call is one request to an endpoint.
type Call struct {
	wire.Callback
	Tenant string
	// Secrets sign it, the newest first; none is that of the tenant.
	Secrets                 []string
	Attempt                 int
	TraceParent, TraceState string
}

// Worker takes callbacks and has them posted. Its methods may be called from any goroutine,
// and none blocks.
type Worker struct {
	o Options

	mu sync.Mutex
	// engine is nil before Start.
	engine  Engine
	tenants map[string]*tenant
	stopped bool
}

// New makes a worker, which takes nothing before Start.
func New(o Options) *Worker { return &Worker{o: o, tenants: make(map[string]*tenant)} }

// tenant is the consumer of one tenant, and the endpoints that it calls.
type tenant struct {
	worker    *Worker
	name      string
	consumer  *shardactor.Consumer
	endpoints map[string]*endpoint
	// busy counts the callbacks that are ready or in progress.
	busy int64
}

// delivery is a callback in flight or held.
type delivery struct {
	*shard.Granted
	tenant   *tenant
	endpoint *endpoint
	call     *Call
	// heldAtMs is since when it waits for a place of its endpoint.
	heldAtMs int64
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
		t = &tenant{worker: w, name: name, endpoints: make(map[string]*endpoint)}
		w.tenants[name] = t
		if w.engine != nil {
			t.subscribe()
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
	maps.DeleteFunc(w.tenants, func(_ string, t *tenant) bool {
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
		w.tenants[name].subscribe()
	}
}

func (t *tenant) subscribe() {
	e := t.worker.engine
	t.consumer = e.NewConsumer(shardactor.ConsumerOptions{
		Tenant: t.name, Subject: subject, WorkerID: workerID, OverHTTP: true, Sink: t,
	})
	t.consumer.SetWindow(window)
	for shardNo := range e.Shards() {
		// A shard that has stopped needs no subscription.
		_ = e.Control(shardNo, nil, &shard.Subscribe{Consumer: t.consumer.Consumer, Commands: []string{wire.CallbackQueue}})
	}
}

// Stop takes nothing more, and gives back what is held. Calls in flight may still end, and
// are noted then.
func (w *Worker) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
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
func (t *tenant) Deliver(effects []shard.Effect) {
	t.worker.mu.Lock()
	defer t.worker.mu.Unlock()
	for _, e := range effects {
		if g, ok := e.(*shard.Granted); ok {
			t.take(g)
		}
	}
}

// take decides what becomes of a callback that has just been granted.
func (t *tenant) take(g *shard.Granted) {
	d := &delivery{Granted: g, tenant: t}
	k, err := wire.ParseCallback(g.Task.Payload)
	switch {
	case t.worker.stopped:
		d.giveBack()
		return
	case err != nil:
		d.fail("it cannot be read: " + err.Error())
		return
	}
	d.call = &Call{
		Callback: *k, Tenant: t.name, Attempt: g.Task.Attempts + 1, TraceParent: g.Task.TraceParent, TraceState: g.Task.TraceState,
	}
	d.endpoint = t.endpointOf(k)
	d.heldAtMs = t.worker.o.NowMs()
	if k.Endpoint == "" || d.address() {
		d.place()
	}
}

// place sends a callback, holds it until its endpoint has a place, or puts it off. Nothing goes
// out for a delivery that is over.
func (d *delivery) place() {
	w, e := d.tenant.worker, d.endpoint
	now := w.o.NowMs()
	if now >= d.LeaseUntilMs {
		d.giveBack()
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
	w, e := d.tenant.worker, d.endpoint
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
	d.tenant.forget(e)
}

func (d *delivery) holder() shard.Holder {
	return shard.Holder{
		Owner: shard.Owner{Tenant: d.tenant.name, Subject: subject}, TaskRef: wire.TaskRef{TaskID: d.Task.ID, Token: d.Token},
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
	_ = d.tenant.worker.engine.Control(d.tenant.worker.engine.ShardOf(d.Task.ID), nil, m)
	d.tenant.consumer.Taken(len(d.Task.Payload), shard.MaxUntakenBytes)
	d.tenant.consumer.Return(1)
}
