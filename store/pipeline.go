package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
)

// errClosed is what waits and barriers return once the store is closed.
var errClosed = errors.New("store is closed")

// pipeline is what joins the shards: one sync makes the batches of all of
// them durable. Shards apply without waiting; whoever runs the barrier syncs
// the log once and publishes how far each shard has got.
type pipeline struct {
	// barrier is held by whoever syncs, so that Synced is called in order.
	barrier sync.Mutex
	watch   *watchdog
	// shardsSync is true between StartSyncer and StopSyncer: a shard may run the barrier.
	shardsSync atomic.Bool

	// failed is set before Fatal is called; nothing is published after it.
	failed atomic.Bool
	// misused is what Pebble found that this package did wrong, nil for nothing.
	misused atomic.Pointer[error]
	// wake has room for one token: something was applied.
	wake chan struct{}

	// moved is closed and replaced whenever synced moved or the store ended.
	waiting sync.Mutex
	moved   chan struct{}
	ended   error

	// syncer guards the start and stop of the goroutines.
	syncer sync.Mutex
	stop   chan struct{}
	done   sync.WaitGroup
}

func (p *pipeline) init(s *Store) {
	p.watch = newWatchdog("sync of the log", &s.pipe.failed, s.die)
	p.wake = make(chan struct{}, 1)
	p.moved = make(chan struct{})
}

// Apply commits the open batch without waiting for the disk and returns its
// number; an empty batch commits nothing and returns the current one. What
// was applied is readable at once and durable when Synced has reached the
// number. A batch that cannot be applied ends the process through Fatal:
// memory is ahead of the disk and nobody was promised anything.
func (sp *Span) Apply() (uint64, error) {
	before := sp.submitted.Load()
	number, err := sp.commit(pebble.NoSync)
	if number > before {
		select {
		case sp.store.pipe.wake <- struct{}{}:
		default: // the syncer is already on its way
		}
	}
	return number, err
}

// ApplyAndSync is Apply, and the batch is durable when it returns, unless another goroutine
// syncs the log: then it does not wait, as Apply. A shard with nothing else to do calls it: it
// saves the way to the syncer and back, and writes the log once instead of twice.
func (sp *Span) ApplyAndSync() (uint64, error) {
	p := &sp.store.pipe
	if sp.batch.Empty() || !p.shardsSync.Load() || !p.barrier.TryLock() {
		return sp.Apply()
	}
	defer p.barrier.Unlock()
	err := sp.store.sync(sp, func() error {
		_, err := sp.commit(pebble.Sync)
		return err
	})
	return sp.submitted.Load(), err
}

// commit is Apply without the word to the syncer; how says whether the log is synced with it.
func (sp *Span) commit(how *pebble.WriteOptions) (uint64, error) {
	s, b := sp.store, sp.batch
	if s.pipe.failed.Load() {
		return 0, errors.New("apply batch: the store has failed")
	}
	if err := s.pipe.misused.Load(); err != nil {
		s.die(*err)
	}
	if b.err != nil {
		s.die(fmt.Errorf("apply batch of shard %d: %w", sp.shard, b.err))
	}
	if b.Empty() {
		return sp.submitted.Load(), nil
	}
	b.close()
	number := sp.submitted.Add(1)
	if s.replicator != nil {
		return sp.replicate(number)
	}
	s.guard.committed(b.Bytes())
	s.figures.committed(b.Bytes())
	sp.watch.begin()
	err := b.pebble.Commit(how)
	sp.watch.end()
	if err != nil {
		s.die(fmt.Errorf("apply batch of shard %d: %w", sp.shard, err))
	}
	sp.done(number)
	return number, nil
}

// done publishes what the batch of that number, which is in the database now, has changed.
func (sp *Span) done(number uint64) {
	b := sp.batch
	sp.published.set(b.counters)
	sp.published.forget(b.maybeEmptyQueues)
	sp.applied.Store(number)
	b.reset()
}

// Barrier makes every batch applied so far durable with one sync of the log,
// publishes that, and calls Synced for each shard that moved. It may be
// called from any goroutine; calls take turns. A failed sync ends the process
// through Fatal.
func (s *Store) Barrier() error {
	s.pipe.barrier.Lock()
	defer s.pipe.barrier.Unlock()
	return s.sync(nil, func() error { return s.db.LogData(nil, pebble.Sync) })
}

// sync runs commit, which syncs the log and, if own is set, commits one batch of that shard with
// it. The barrier is held.
func (s *Store) sync(own *Span, commit func() error) error {
	p := &s.pipe
	if _, err := p.next(); err != nil {
		return err
	}
	var target [record.MaxShards]uint64
	var commits uint64
	for i, sp := range s.spans {
		target[i] = sp.applied.Load()
		commits += target[i] - sp.synced.Load()
	}
	if own != nil {
		target[own.shard]++
		commits++
	}
	if commits == 0 {
		return nil
	}
	p.watch.begin()
	startedAt := time.Now()
	err := commit()
	took := time.Since(startedAt)
	p.watch.end()
	if err != nil {
		s.die(fmt.Errorf("sync the log: %w", err))
	}
	if p.failed.Load() {
		return errors.New("sync the log: the store has failed")
	}
	s.figures.synced(took, commits)
	s.publish(&target)
	return nil
}

// publish is called with the barrier held.
func (s *Store) publish(target *[record.MaxShards]uint64) {
	var moved [record.MaxShards]bool
	for i, sp := range s.spans {
		moved[i] = target[i] > sp.synced.Load()
		sp.synced.Store(target[i])
	}
	s.pipe.broadcast(nil)
	if s.options.Synced == nil {
		return
	}
	for i := range s.spans {
		if moved[i] {
			s.options.Synced(i, target[i])
		}
	}
}

// broadcast wakes everybody who waits. A cause ends the waiting for good.
func (p *pipeline) broadcast(cause error) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.ended == nil {
		p.ended = cause
	}
	close(p.moved)
	p.moved = make(chan struct{})
}

// next is closed at the next broadcast.
func (p *pipeline) next() (moved <-chan struct{}, ended error) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	return p.moved, p.ended
}

// WaitDurable returns when everything that could be read of the shard before
// the call is durable. Readers call it after they have read. It ends early
// with the error of ctx, or when the store ends.
func (s *Store) WaitDurable(ctx context.Context, shard int) error {
	sp := s.spans[shard]
	want := sp.submitted.Load()
	for {
		moved, ended := s.pipe.next()
		if sp.synced.Load() >= want {
			return nil
		}
		if ended != nil {
			return ended
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for shard %d to be durable: %w", shard, ctx.Err())
		}
	}
}

// Submitted is the number of the last batch the shard began to apply.
func (s *Store) Submitted(shard int) uint64 { return s.spans[shard].submitted.Load() }

// Synced is the number of the last batch of the shard that is durable.
func (s *Store) Synced(shard int) uint64 { return s.spans[shard].synced.Load() }

// StartSyncer starts the goroutine that runs Barrier whenever a batch was
// applied, the one that asks every second for the free space, the one that gives
// space back while it is short, and the one that writes the files of coming logs.
// At a node of a cluster, whose database has no log, it is those for the space
// alone. A second start does nothing.
func (s *Store) StartSyncer() {
	p := &s.pipe
	p.syncer.Lock()
	defer p.syncer.Unlock()
	if p.stop != nil {
		return
	}
	stop := make(chan struct{})
	p.stop = stop
	p.done.Go(func() { s.guard.loop(stop) })
	p.done.Go(func() { s.reclaimLoop(stop) })
	if s.unlogged() {
		return
	}
	p.shardsSync.Store(true)
	p.done.Go(func() { s.syncLoop(stop) })
	p.done.Go(func() { s.logs.loop(stop) })
}

// syncing reports whether these goroutines run.
func (s *Store) syncing() bool {
	s.pipe.syncer.Lock()
	defer s.pipe.syncer.Unlock()
	return s.pipe.stop != nil
}

// StopSyncer stops these goroutines and returns when they have ended. What was
// applied last may not be durable yet; Barrier by hand makes it so.
func (s *Store) StopSyncer() {
	p := &s.pipe
	p.syncer.Lock()
	defer p.syncer.Unlock()
	if p.stop == nil {
		return
	}
	p.shardsSync.Store(false)
	close(p.stop)
	p.done.Wait()
	p.stop = nil
}

func (s *Store) syncLoop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.pipe.wake:
		}
		s.gather()
		if err := s.Barrier(); err != nil {
			s.options.Log.Error().Err(err).Msg("the log of the database could not be synced; the syncer ends")
			return
		}
	}
}

// gatherYields is how often the syncer steps back at most. Without, four syncs in ten
// were for a single batch; with it HTTP creates rose from 17,000/s to 19,000/s.
const gatherYields = 4

// gather lets goroutines that can run go first, for as long as that brings another
// batch: a sync costs the same for one batch and for one of each shard, and what
// comes just too late waits for two. With nothing to run it costs nothing.
func (s *Store) gather() {
	before := s.applied()
	for range gatherYields {
		runtime.Gosched()
		now := s.applied()
		if now == before {
			return
		}
		before = now
	}
}

// applied is how many batches all shards have applied.
func (s *Store) applied() (total uint64) {
	for _, sp := range s.spans {
		total += sp.applied.Load()
	}
	return total
}

// die ends the process through Options.Fatal. Nothing is published from here
// on, whoever waits is told, and it never returns.
func (s *Store) die(cause error) {
	s.pipe.failed.Store(true)
	s.pipe.broadcast(fmt.Errorf("store failed: %w", cause))
	s.options.Fatal(cause)
	panic(fmt.Sprintf("store: Fatal returned after: %v", cause))
}
