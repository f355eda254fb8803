package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// postClaim delivers one task, and waits for one up to waitSeconds.
func (a *api) postClaim(c *call, req *wire.ClaimRequest) answer {
	return a.claim(c, req, func(granted []*shard.Granted) []byte {
		return wire.AppendClaimed(nil, granted[0].Task, granted[0].Token)
	})
}

// postClaimBatch delivers up to as many tasks as the request asks for.
func (a *api) postClaimBatch(c *call, req *wire.ClaimRequest) answer {
	return a.claim(c, req, func(granted []*shard.Granted) []byte {
		body := appendList([]byte(`{"tasks":[`), len(granted), func(dst []byte, i int) []byte {
			return wire.AppendClaimed(dst, granted[i].Task, granted[i].Token)
		})
		return append(body, "]}"...)
	})
}

// claim runs a claim; form makes the body of its answer.
func (a *api) claim(c *call, req *wire.ClaimRequest, form func([]*shard.Granted) []byte) answer {
	if len(req.Commands) == 0 {
		req.Commands = []string{wire.AllCommands}
	}
	var refusal *wire.Error
	if req.Commands, refusal = c.who.Allowed(req.Commands); refusal != nil {
		return refuse(refusal)
	}
	if refusal := a.leaving(); refusal != nil {
		return refuse(refusal)
	}
	untake, refusal := a.enterClaim(c, req)
	if refusal != nil {
		return refuse(refusal)
	}
	k := &claim{api: a, call: c, req: req, sink: &claimSink{lost: a.o.Lost, changed: make(chan struct{}, 1), ready: make([]int, a.o.Engine.Shards())}}
	k.consumer = a.o.Engine.NewConsumer(shardactor.ConsumerOptions{
		Tenant: c.who.Tenant, Subject: c.who.Subject, WorkerID: cmp.Or(req.WorkerID, c.who.Subject),
		OverHTTP: true, Sink: k.sink,
	})
	k.consumer.SetWindow(req.Count)
	granted, refusal := k.run()
	settleClaim(untake, req.Count, len(granted))
	if len(granted) > 0 && !stillAllowed(c.who, granted, a.o.NowMs()) {
		k.undeliver(granted)
		granted, refusal = nil, credentialRevoked
	}
	switch {
	case len(granted) > 0:
		return answer{
			status: http.StatusOK, body: form(granted), undelivered: func() { k.undeliver(granted) },
			extend: func() { k.extendLeases(granted) }, extendEvery: extendEvery(granted),
			written: func() { k.confirm(granted) },
		}
	case refusal != nil || a.lost():
		return refuse(cmp.Or(refusal, notLeaderError))
	case c.r.Context().Err() != nil:
		return answer{abort: true}
	}
	if full := a.grantsStopped(); full != nil {
		return refuse(full)
	}
	return answer{status: http.StatusNoContent}
}

// grantsStopped is the refusal while the disk guard lets no task be delivered, which says what else it
// refuses, and nil while tasks are delivered.
func (a *api) grantsStopped() *wire.Error {
	switch level := a.o.Store.Guard().Level(); {
	case level >= store.OnlyDelete:
		return onlyDeleteError
	case level >= store.NoGrant:
		return noGrantError
	}
	return nil
}

// stillAllowed checks the credential again after a wait.
func stillAllowed(who *auth.Principal, granted []*shard.Granted, nowMs int64) bool {
	now := who.Current()
	if now == nil || now.ExpiredAt(nowMs) || !now.Has(auth.ScopeClaim) {
		return false
	}
	return !slices.ContainsFunc(granted, func(g *shard.Granted) bool { return !now.MayUse(g.Task.Command) })
}

// claim is one request for tasks: a consumer that exists as long as the request, and the sink
// of its grants. It belongs to the goroutine of the request.
type claim struct {
	api      *api
	call     *call
	req      *wire.ClaimRequest
	consumer *shardactor.Consumer
	sink     *claimSink
	asked    int
}

// run asks the shard whose turn it is for tasks and the others how many ready queues they
// have. If that shard has fewer tasks than the request asks for, run asks the others that
// have ready queues. Only without any task it waits, for the first one.
func (k *claim) run() ([]*shard.Granted, *wire.Error) {
	turn := k.api.turns.of(k)
	granted, refusal := k.ask(func(int) bool { return true }, func(shardNo int) bool { return turn >= 0 && shardNo != turn })
	ready := k.sink.ready
	k.api.turns.note(k, turn, ready)
	if turn >= 0 && len(granted) < k.req.Count {
		granted, refusal = k.ask(func(shardNo int) bool { return shardNo != turn && ready[shardNo] > 0 }, func(int) bool { return false })
	}
	if len(granted) > 0 || refusal != nil || k.req.WaitSeconds == 0 {
		return granted, refusal
	}
	return k.wait()
}

// ask posts to some shards and waits for the answers of all; those of looks only say how many
// ready queues they have. A shard answers an accepted message within one sync. The refusal
// of a shard whose mailbox is full counts if the others had no task.
func (k *claim) ask(which, looks func(shardNo int) bool) (granted []*shard.Granted, refusal *wire.Error) {
	for shardNo := range k.api.o.Engine.Shards() {
		if !which(shardNo) {
			continue
		}
		err := k.api.post(shardNo, &shard.Claim{
			Asker: shard.Asker{Sink: k.sink, Ref: shard.Ref(shardNo)}, CountOnly: looks(shardNo),
			Consumer: k.consumer.Consumer, Commands: k.req.Commands, LeaseForMs: k.leaseForMs(),
		}, k.call.bodyBytes, mailbox.ClassNew)
		if err != nil {
			refusal = err
			continue
		}
		k.asked++
	}
	granted = k.sink.wait(func(b *claimSink) bool { return b.answered == k.asked })
	return granted, refusal
}

// wait subscribes to all shards like a session with that window, until the first task comes,
// the time is over, the client leaves or the server begins to stop. Then it closes the
// consumer; tasks that were granted by that moment belong to the answer.
func (k *claim) wait() ([]*shard.Granted, *wire.Error) {
	timer := time.NewTimer(time.Duration(k.req.WaitSeconds) * time.Second)
	defer timer.Stop()
	refusal := k.subscribe()
	for waiting := refusal == nil && k.sink.empty(); waiting; waiting = waiting && k.sink.empty() {
		select {
		case <-k.sink.changed:
		case <-timer.C:
			waiting = false
		case <-k.call.r.Context().Done():
			waiting = false
		case <-k.api.o.Draining:
			refusal, waiting = k.api.leaving(), false
		}
	}
	k.consumer.Close(0)
	granted := k.sink.wait(func(b *claimSink) bool { return len(b.granted) == k.consumer.InFlight() })
	return granted, refusal
}

// subscribe subscribes the consumer in every shard. Its class is ClassKeep, because the message
// by which a closed consumer leaves must not overtake it.
func (k *claim) subscribe() *wire.Error {
	for shardNo := range k.api.o.Engine.Shards() {
		refusal := k.api.post(shardNo, &shard.Subscribe{
			Consumer: k.consumer.Consumer, Commands: k.req.Commands, LeaseForMs: k.leaseForMs(),
		}, k.call.bodyBytes, mailbox.ClassKeep)
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

func (k *claim) leaseForMs() int64 { return int64(k.req.LeaseSeconds) * 1000 }

// extendLeases extends the leases of tasks whose answer is being written, so that a slow client
// has the whole lease for the work.
func (k *claim) extendLeases(granted []*shard.Granted) {
	owner := shard.Owner{Tenant: k.call.who.Tenant, Subject: k.call.who.Subject}
	for _, g := range granted {
		// After a refusal the next call of this function asks again.
		_ = k.api.post(k.api.o.Engine.ShardOf(g.Task.ID), &shard.Extend{
			Holder: shard.Holder{Owner: owner, TaskRef: wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}}, OnItsWay: true,
		}, extendBytes, mailbox.ClassKeep)
	}
}

// extendBytes is the size of such a message in memory.
const extendBytes = 256

// extendEvery is a third of the shortest lease.
func extendEvery(granted []*shard.Granted) time.Duration {
	least := granted[0].LeaseForMs
	for _, g := range granted {
		least = min(least, g.LeaseForMs)
	}
	return time.Duration(least) * time.Millisecond / 3
}

// undeliver gives back tasks that the client did not get.
func (k *claim) undeliver(granted []*shard.Granted) {
	for shardNo, refs := range k.perShard(granted) {
		k.api.o.Engine.Control(shardNo, nil, &shard.Undelivered{Consumer: k.consumer.Consumer, Tasks: refs})
	}
}

// confirm tells the shards that the answer was written. The runs of tasks with a run limit
// begin then; without such a task no shard needs to know it.
func (k *claim) confirm(granted []*shard.Granted) {
	if !slices.ContainsFunc(granted, func(g *shard.Granted) bool { return g.RunForMs != 0 }) {
		return
	}
	for shardNo, refs := range k.perShard(granted) {
		k.api.o.Engine.Control(shardNo, nil, &shard.Received{Consumer: k.consumer.Consumer, Tasks: refs})
	}
}

// perShard splits deliveries by the shard of their task.
func (k *claim) perShard(granted []*shard.Granted) map[int][]wire.TaskRef {
	split := make(map[int][]wire.TaskRef)
	for _, g := range granted {
		shardNo := k.api.o.Engine.ShardOf(g.Task.ID)
		split[shardNo] = append(split[shardNo], wire.TaskRef{TaskID: g.Task.ID, Token: g.Token})
	}
	return split
}

// claimSink is the Sink of one claim. The shards add to it, and the request waits for it.
type claimSink struct {
	mu       sync.Mutex
	granted  []*shard.Granted
	answered int
	// ready is how many ready queues each shard has for the claim.
	ready []int
	// changed has a token if effects have come since the last receive.
	changed chan struct{}
	lost    <-chan struct{}
}

// Deliver implements shard.Sink.
func (b *claimSink) Deliver(effects []shard.Effect) {
	b.mu.Lock()
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			b.granted = append(b.granted, e)
		case *shard.Claimed:
			b.answered++
			b.ready[e.Ref] = e.Ready
		}
	}
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default: // it has a token already
	}
}

func (b *claimSink) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.granted) == 0
}

// wait returns the granted tasks once complete reports that no more are on their way.
func (b *claimSink) wait(complete func(b *claimSink) bool) []*shard.Granted {
	for {
		b.mu.Lock()
		done, granted := complete(b), b.granted
		b.mu.Unlock()
		if done {
			return granted
		}
		select {
		case <-b.changed:
		case <-b.lost:
			return granted
		}
	}
}
