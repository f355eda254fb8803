package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"codeq/auth"
	"codeq/mailbox"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// postClaim hands out one task, and waits for one if asked to.
func (a *api) postClaim(c *call) answer {
	return a.claim(c, wire.ParseClaimRequest, func(granted []*shardactor.Granted) []byte {
		return wire.AppendClaimed(nil, granted[0].Task, granted[0].Token)
	})
}

// postClaimBatch hands out as many tasks as there are, up to what was asked for.
func (a *api) postClaimBatch(c *call) answer {
	return a.claim(c, wire.ParseClaimBatchRequest, func(granted []*shardactor.Granted) []byte {
		body := append([]byte(nil), `{"tasks":[`...)
		for i, g := range granted {
			if i > 0 {
				body = append(body, ',')
			}
			body = wire.AppendClaimed(body, g.Task, g.Token)
		}
		return append(body, "]}"...)
	})
}

// claim runs one of them.
func (a *api) claim(c *call, parse func([]byte) (*wire.ClaimRequest, *wire.Error), form func([]*shardactor.Granted) []byte) answer {
	body, refusal := c.readBody()
	if refusal != nil {
		return refuse(refusal)
	}
	req, refusal := parse(body)
	if refusal != nil {
		return refuse(refusal)
	}
	if req.Commands, refusal = allowedCommands(c.who, req.Commands); refusal != nil {
		return refuse(refusal)
	}
	select {
	case <-a.o.Draining:
		return refuse(drainingError())
	default:
	}
	k := a.newClaim(c, req, len(body))
	granted, refusal := k.take()
	if len(granted) > 0 && !mayStillHave(c.who, granted, a.o.NowMs()) {
		k.giveBack(granted)
		granted, refusal = nil, credentialGone()
	}
	switch {
	case len(granted) > 0:
		return answer{
			status: http.StatusOK, body: form(granted), unlessGone: func() { k.giveBack(granted) },
			keep: func() { k.keep(granted) }, keepEvery: keepEvery(granted),
			taken: func() { k.begin(granted) },
		}
	case refusal != nil:
		return refuse(refusal)
	case c.r.Context().Err() != nil:
		return answer{abort: true}
	case a.grantsStopped():
		return refuse(noGrantError())
	}
	return answer{status: http.StatusNoContent}
}

// grantsStopped says that nothing is handed out, because the disk is nearly full.
func (a *api) grantsStopped() bool { return a.o.Store.Guard().Level() >= store.NoGrant }

// allowedCommands is the list that a claim asks for with everything replaced by
// what the credential is good for, or forbidden.
func allowedCommands(who *auth.Principal, asked []string) ([]string, *wire.Error) {
	if len(asked) == 0 || slices.Contains(asked, wire.AllCommands) {
		if who.Commands == nil {
			return []string{wire.AllCommands}, nil
		}
		return who.Commands, nil
	}
	for _, command := range asked {
		if !who.MayUse(command) {
			return nil, notForCommand(command)
		}
	}
	return asked, nil
}

// mayStillHave looks again at the credential after a wait.
func mayStillHave(who *auth.Principal, granted []*shardactor.Granted, nowMs int64) bool {
	now := who.Current()
	if now == nil || now.ExpiredAt(nowMs) || !now.Has(auth.ScopeWorker) {
		return false
	}
	return !slices.ContainsFunc(granted, func(g *shardactor.Granted) bool { return !now.MayUse(g.Task.Command) })
}

// claim is one request for tasks: a seat for as long as it lasts, and what was
// put there. It belongs to the goroutine of the request.
type claim struct {
	api    *api
	call   *call
	req    *wire.ClaimRequest
	bytes  int
	seat   *shardactor.Seat
	basket *basket
	asked  int
}

func (a *api) newClaim(c *call, req *wire.ClaimRequest, bodyBytes int) *claim {
	k := &claim{api: a, call: c, req: req, bytes: bodyBytes, basket: newBasket(a.o.Engine.Shards())}
	k.seat = a.o.Engine.NewSeat(shardactor.SeatOptions{
		Tenant: c.who.Tenant, Subject: c.who.Subject, WorkerID: cmp.Or(req.WorkerID, c.who.Subject),
		OverHTTP: true, Sink: k.basket,
	})
	k.seat.SetWindow(req.Count)
	return k
}

// take asks the shard whose turn it is and looks into the others; if it has less
// than was asked for, those that have something are asked. What there is is the
// answer; only if that is nothing does it wait, for the first grant.
func (k *claim) take() ([]*shardactor.Granted, *wire.Error) {
	turn := k.api.turns.of(k)
	granted, refusal := k.ask(func(int) bool { return true }, func(shard int) bool { return turn >= 0 && shard != turn })
	ready := k.basket.ready
	k.api.turns.note(k, turn, ready)
	if turn >= 0 && len(granted) < k.req.Count {
		granted, refusal = k.ask(func(shard int) bool { return shard != turn && ready[shard] > 0 }, func(int) bool { return false })
	}
	if len(granted) > 0 || refusal != nil || k.req.WaitSeconds == 0 {
		return granted, refusal
	}
	return k.wait()
}

// ask posts to some shards, of which some are only looked into, and waits for all
// of them: an accepted message is answered within one sync. A shard that is too
// busy leaves a refusal, which counts if the others had nothing.
func (k *claim) ask(which, looks func(shard int) bool) (granted []*shardactor.Granted, refusal *wire.Error) {
	for shard := range k.api.o.Engine.Shards() {
		if !which(shard) {
			continue
		}
		err := k.api.post(shard, &shardactor.Claim{
			Asker: shardactor.Asker{Sink: k.basket, Ref: uint64(shard)}, Looks: looks(shard),
			Seat: k.seat, Commands: k.req.Commands, LeaseForMs: k.leaseForMs(),
		}, k.bytes, mailbox.ClassNew)
		if err != nil {
			refusal = err
			continue
		}
		k.asked++
	}
	granted = k.basket.wait(func(b *basket) bool { return b.answered == k.asked })
	return granted, refusal
}

// wait stands in the rings of all shards like a session with room for that many
// tasks, until the first of them comes, the time is over, the client leaves or
// the server is about to. Then the seat is closed, and what was on its way to it
// by that moment belongs to the answer.
func (k *claim) wait() ([]*shardactor.Granted, *wire.Error) {
	timer := time.NewTimer(time.Duration(k.req.WaitSeconds) * time.Second)
	defer timer.Stop()
	refusal := k.sitDown()
	for waiting := refusal == nil && k.basket.empty(); waiting; waiting = waiting && k.basket.empty() {
		select {
		case <-k.basket.changed:
		case <-timer.C:
			waiting = false
		case <-k.call.r.Context().Done():
			waiting = false
		case <-k.api.o.Draining:
			refusal, waiting = drainingError(), false
		}
	}
	k.seat.Close(0)
	granted := k.basket.wait(func(b *basket) bool { return len(b.granted) == k.seat.InHand() })
	return granted, refusal
}

// sitDown takes a seat in every shard. It is not new work, because the message
// by which a closed seat leaves must never overtake it.
func (k *claim) sitDown() *wire.Error {
	for shard := range k.api.o.Engine.Shards() {
		refusal := k.api.post(shard, &shardactor.Subscribe{
			Seat: k.seat, Commands: k.req.Commands, LeaseForMs: k.leaseForMs(),
		}, k.bytes, mailbox.ClassKeep)
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

func (k *claim) leaseForMs() int64 { return int64(k.req.LeaseSeconds) * 1000 }

// keep extends the leases of tasks whose answer is being written: a lease is for
// the work, and the client takes what it is sent. A shard that is too busy is
// asked again.
func (k *claim) keep(granted []*shardactor.Granted) {
	owner := shardactor.Owner{Tenant: k.call.who.Tenant, Subject: k.call.who.Subject}
	for _, g := range granted {
		// One that is refused is asked for again.
		_ = k.api.post(k.api.o.Engine.ShardOf(g.Task.ID), &shardactor.Extend{
			Owner: owner, TaskRef: wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}, OnItsWay: true,
		}, keepBytes, mailbox.ClassKeep)
	}
}

// keepBytes is what such a message keeps in memory.
const keepBytes = 256

// keepEvery is a third of the shortest lease.
func keepEvery(granted []*shardactor.Granted) time.Duration {
	least := granted[0].LeaseForMs
	for _, g := range granted {
		least = min(least, g.LeaseForMs)
	}
	return time.Duration(least) * time.Millisecond / 3
}

// giveBack returns tasks that the client never got.
func (k *claim) giveBack(granted []*shardactor.Granted) {
	for shard, refs := range k.perShard(granted) {
		if len(refs) > 0 {
			var slot mailbox.Slot[shardactor.Message]
			k.api.o.Engine.Undeliver(shard, &slot, &shardactor.Undelivered{Seat: k.seat, Tasks: refs})
		}
	}
}

// begin says that the answer was written, from when on those tasks run that may do
// so for some time only. Without any, nobody needs to know.
func (k *claim) begin(granted []*shardactor.Granted) {
	if !slices.ContainsFunc(granted, func(g *shardactor.Granted) bool { return g.RunForMs != 0 }) {
		return
	}
	for shard, refs := range k.perShard(granted) {
		if len(refs) > 0 {
			var slot mailbox.Slot[shardactor.Message]
			k.api.o.Engine.Confirm(shard, &slot, &shardactor.Received{Seat: k.seat, Tasks: refs})
		}
	}
}

// perShard splits deliveries by the shard of their task.
func (k *claim) perShard(granted []*shardactor.Granted) [][]wire.TaskRef {
	engine := k.api.o.Engine
	split := make([][]wire.TaskRef, engine.Shards())
	for _, g := range granted {
		shard := engine.ShardOf(g.Task.ID)
		split[shard] = append(split[shard], wire.TaskRef{TaskID: g.Task.ID, Token: g.Token})
	}
	return split
}

// basket is the Sink of one claim. Shards fill it, the request waits for it.
type basket struct {
	mu       sync.Mutex
	granted  []*shardactor.Granted
	answered int
	// ready is how many ready queues each shard said it has for the claim.
	ready []int
	// changed has a token after every delivery since the last look.
	changed chan struct{}
}

func newBasket(shards int) *basket {
	return &basket{changed: make(chan struct{}, 1), ready: make([]int, shards)}
}

// Deliver implements shardactor.Sink.
func (b *basket) Deliver(effects []shardactor.Effect) {
	b.mu.Lock()
	for _, e := range effects {
		switch e := e.(type) {
		case *shardactor.Granted:
			b.granted = append(b.granted, e)
		case *shardactor.Claimed:
			b.answered++
			b.ready[e.Ref] = e.Ready
		}
	}
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default: // a look is due already
	}
}

func (b *basket) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.granted) == 0
}

// wait returns what was granted once everything that is on its way has come.
func (b *basket) wait(complete func(b *basket) bool) []*shardactor.Granted {
	for {
		b.mu.Lock()
		done, granted := complete(b), b.granted
		b.mu.Unlock()
		if done {
			return granted
		}
		<-b.changed
	}
}
