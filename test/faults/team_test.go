package faults

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// ledger is what all workers of a test saw. Any goroutine.
type ledger struct {
	x *site

	mu sync.Mutex
	// handed counts how often each delivery came, completed how often each task
	// was accepted as done.
	handed    map[wire.TaskRef]int
	completed map[wire.TaskID]int
	// last is the number of the last delivery that anybody saw of a task, ended of
	// the one that completed it. Workers are told in any order, and a frame can lie
	// in a socket that is cut while another worker does its task: the numbers say
	// what came first.
	last, ended map[wire.TaskID]int
	// stale counts completions that came too late, most the attempts of any
	// task that was delivered.
	stale int
	most  int
	// seen is shown every delivery, if it is set before there is any.
	seen func(f *wire.TaskFrame)
}

func newLedger(x *site) *ledger {
	return &ledger{
		x: x, handed: make(map[wire.TaskRef]int), completed: make(map[wire.TaskID]int),
		last: make(map[wire.TaskID]int), ended: make(map[wire.TaskID]int),
	}
}

func (l *ledger) delivered(f *wire.TaskFrame) {
	if l.seen != nil {
		l.seen(f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := blackbox.RefOf(f)
	if l.handed[ref]++; l.handed[ref] > 1 {
		l.x.t.Errorf("delivery %v of task %v was made twice", f.Token, f.Task.ID)
	}
	l.last[ref.TaskID] = max(l.last[ref.TaskID], f.Task.Deliveries)
	l.checkEnd(ref.TaskID)
	l.most = max(l.most, f.Task.Attempts)
}

// checkEnd wants the delivery that completed a task to be its last.
func (l *ledger) checkEnd(id wire.TaskID) {
	if l.completed[id] > 0 && l.last[id] > l.ended[id] {
		l.x.t.Errorf("task %v was completed by delivery %d, and delivery %d came after it", id, l.ended[id], l.last[id])
	}
}

// answered notes what became of the completion of a delivery.
func (l *ledger) answered(f *wire.TaskFrame, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := f.Task.ID
	var refusal *wire.Error
	switch {
	case err == nil:
		if l.completed[id]++; l.completed[id] > 1 {
			l.x.t.Errorf("task %v was completed by two deliveries", id)
		}
		l.ended[id] = f.Task.Deliveries
		l.checkEnd(id)
	case errors.Is(err, blackbox.ErrNoAnswer):
	case errors.As(err, &refusal) && (refusal.Code == wire.CodeLeaseLost || refusal.Code == wire.CodeNotInProgress):
		l.stale++
	case errors.As(err, &refusal) && refusal.Code.Retryable():
	default:
		l.x.t.Errorf("complete %v: %v", id, err)
	}
}

// counts are how many tasks were completed, and how many answers were stale.
func (l *ledger) counts() (completed, stale int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.completed), l.stale
}

// hand is a worker of a team: a session that completes each task after a while
// and, when the session ends, opens another.
type hand struct {
	ledger   *ledger
	addr     string
	name     string
	commands []string
	window   int
	lease    int // seconds
	takes    time.Duration

	// seated is set while it waits for tasks.
	seated atomic.Bool

	mu   sync.Mutex
	peer *blackbox.Peer
}

// run works until ctx ends. What it holds then is dropped without a word.
func (h *hand) run(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := blackbox.Dial(ctx, h.addr, &wire.Hello{WorkerID: h.name})
		if err != nil {
			pause(ctx, lookAgain)
			continue
		}
		h.mu.Lock()
		h.peer = p
		h.mu.Unlock()
		h.serve(ctx, p)
		p.Close()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// kill breaks the session off; a hand that runs opens another.
func (h *hand) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peer != nil {
		h.peer.Close()
	}
}

func (h *hand) serve(ctx context.Context, p *blackbox.Peer) {
	commands := h.commands
	if commands == nil {
		commands = []string{command}
	}
	var working sync.WaitGroup
	defer working.Wait()
	_, err := p.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Subscribe{Ref: ref, Commands: commands, Window: h.window, LeaseSeconds: h.lease}
	})
	if err != nil {
		return
	}
	h.seated.Store(true)
	defer h.seated.Store(false)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Gone():
			return
		case f := <-p.Tasks:
			h.ledger.delivered(f)
			working.Go(func() { h.finish(ctx, p, f) })
		}
	}
}

func (h *hand) finish(ctx context.Context, p *blackbox.Peer, f *wire.TaskFrame) {
	select {
	case <-time.After(h.takes):
	case <-p.Gone():
		return // the process is gone, as it were
	case <-ctx.Done():
		return
	}
	h.ledger.answered(f, p.Complete(ctx, blackbox.RefOf(f), `{}`))
}
