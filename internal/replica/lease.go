package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"codeq/store"
)

const (
	// maxEntryBytes is how large an entry of several batches gets; one batch may be larger.
	maxEntryBytes = 1 << 20
	// inFlight is how many entries may be on their way at once.
	inFlight = 3
)

// Lease is one time of this node as the leader, from the entry that opened its epoch until
// raft or an entry says that it leads no more. It implements store.Replicator; any goroutine.
type Lease struct {
	node  *Node
	term  uint64
	epoch uint64
	// nowMs is the clock of the engine, nil until it runs.
	nowMs atomic.Pointer[func() int64]

	// wake has room for one token: a batch waits.
	wake chan struct{}
	// room has a token for each entry that may be sent.
	room chan struct{}
	lost chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	queue []*waiting
	over  bool
}

// waiting is a batch whose shard waits for it.
type waiting struct {
	part
	done chan error
}

func newLease(n *Node, term, epoch uint64) *Lease {
	l := &Lease{
		node: n, term: term, epoch: epoch,
		wake: make(chan struct{}, 1), room: make(chan struct{}, inFlight), lost: make(chan struct{}),
	}
	for range inFlight {
		l.room <- struct{}{}
	}
	l.done.Go(l.gather)
	return l
}

// Lost is closed when this node leads no more.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// SetClock gives the clock of the engine, in Unix milliseconds: the next leader's begins no
// earlier.
func (l *Lease) SetClock(nowMs func() int64) { l.nowMs.Store(&nowMs) }

// LatestMs implements store.Replicator.
func (l *Lease) LatestMs() int64 { return l.node.machine.latest.Load().nowMs }

// Replicate implements store.Replicator.
func (l *Lease) Replicate(shard int, number uint64, batch []byte) error {
	w := &waiting{part: part{shard: shard, number: number, bytes: batch}, done: make(chan error, 1)}
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return store.ErrNotLeader
	}
	l.queue = append(l.queue, w)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // gather is already on its way
	}
	return <-w.done
}

// StillLeads implements store.Replicator.
func (l *Lease) StillLeads() error { return l.Verify(context.Background()) }

// Verify returns nil if the lease was good at a moment after the call, else ErrNotLeader or the
// error of ctx.
func (l *Lease) Verify(ctx context.Context) error {
	if err := l.node.VerifyLeader(ctx); err != nil {
		return err
	}
	select {
	case <-l.lost:
		return store.ErrNotLeader
	default:
	}
	if l.node.raft.CurrentTerm() != l.term {
		return store.ErrNotLeader // elected again, with another leader between
	}
	return nil
}

// End ends the lease: whoever waits for a batch is told that its outcome is unknown. It
// returns when nothing of the lease runs.
func (l *Lease) End() {
	l.end()
	l.done.Wait()
}

func (l *Lease) end() {
	l.mu.Lock()
	left, was := l.queue, l.over
	l.queue, l.over = nil, true
	l.mu.Unlock()
	if !was {
		close(l.lost)
	}
	for _, w := range left {
		w.done <- store.ErrNotLeader
	}
}

// gather makes entries of the batches that wait. While one is on its way further shards
// become ready, so that a slow network makes larger entries.
func (l *Lease) gather() {
	for {
		select {
		case <-l.wake:
		case <-l.lost:
			return
		}
		for {
			select {
			case <-l.room:
			case <-l.lost:
				return
			}
			parts := l.take()
			if len(parts) == 0 {
				l.room <- struct{}{}
				break
			}
			l.send(parts)
		}
	}
}

// take takes the batches of the next entry.
func (l *Lease) take() (parts []*waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bytes, n := 0, 0
	for n < len(l.queue) && (n == 0 || bytes+len(l.queue[n].bytes) <= maxEntryBytes) {
		bytes += len(l.queue[n].bytes)
		n++
	}
	parts = l.queue[:n:n]
	l.queue = l.queue[n:]
	return parts
}

// send hands an entry to raft, in the order of the entries, and waits for it beside.
func (l *Lease) send(parts []*waiting) {
	nowMs := int64(0)
	if clock := l.nowMs.Load(); clock != nil {
		nowMs = (*clock)()
	}
	future := l.node.raft.Apply(l.node.machine.entry(l.epoch, nowMs, parts), 0)
	l.done.Go(func() {
		answers, err := outcome(future)
		if err != nil {
			l.node.log.Info().Err(err).Uint64("epoch", l.epoch).Msg("an entry is not known to be in the log: this node leads no more")
			l.end()
		}
		l.room <- struct{}{}
		for i, p := range parts {
			if err == nil && answers[i] {
				p.done <- nil
			} else {
				l.end()
				p.done <- store.ErrNotLeader
			}
		}
	})
}

// outcome waits for an entry of batches, and says which of them the database has.
func outcome(future raft.ApplyFuture) ([]bool, error) {
	if err := future.Error(); err != nil {
		return nil, err
	}
	written, is := future.Response().([]bool)
	if !is {
		return nil, fmt.Errorf("an entry of batches was answered by %T", future.Response())
	}
	return written, nil
}

// open commits the entry that opens an epoch.
func (n *Node) open() (epoch uint64, err error) {
	future := n.raft.Apply(n.machine.opening(), 0)
	if err := future.Error(); err != nil {
		return 0, err
	}
	epoch, is := future.Response().(uint64)
	if !is {
		return 0, errors.New("the entry that opens an epoch was not applied")
	}
	return epoch, nil
}
