package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"codeq/shardactor"
)

// Shards whose batches are on their way at once. A run of a shard is a coroutine, which stops where
// the cluster has not answered yet; meanwhile other shards run, effects leave, and clients act. The
// model judges a round when it is made, so in the order in which the shards took what they share.

// flight is a run of a shard.
type flight struct {
	beganMs int64
	sleep   time.Duration
	// made says that a round of it was made while others were on their way.
	made bool
	next func() (struct{}, bool)
	stop func()
	wait func(struct{}) bool
}

// fate is what became of a round that was made while others were on their way.
type fate int

const (
	fateApplied fate = iota
	// fateUnheard: its batch is in the log, and its node did not hear of it.
	fateUnheard
	fateDropped
	fates
)

// errStopped ends a flight in a world that goes on no more.
type errStopped struct{}

// broken is a panic of a flight, with where it was.
type broken struct {
	cause any
	stack []byte
}

// goOn begins a run of a shard or goes on with the one that waits, until it ends or waits.
func (w *world) goOn(shard int) *flight {
	s := w.server
	f := s.flights[shard]
	if f == nil {
		f = &flight{beganMs: w.nowMs}
		if !w.flies {
			f.sleep = s.engine.Run(shard)
			return f
		}
		s.flights[shard] = f
		f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
			defer rethrow()
			f.wait = yield
			f.sleep = s.engine.Run(shard)
		})
	}
	s.running = shard
	if _, waits := f.next(); !waits {
		s.flights[shard] = nil
	}
	return f
}

// rethrow passes a panic on to whoever runs the flight, with the stack that it would lose.
func rethrow() {
	switch p := recover().(type) {
	case nil, errStopped:
	case *violation, *death:
		panic(p)
	default:
		panic(&broken{p, debug.Stack()})
	}
}

// waits stops the run that asks, so that others go on, if that may be.
func (l *lease) waits() {
	w := l.cluster.world
	for f := w.server.flights[w.server.running]; f != nil && w.flies && w.chance.oneIn(2); {
		if !f.wait(struct{}{}) {
			panic(errStopped{})
		}
	}
}

// fly lets shards run while the batches of others are on their way. Some are at the end, see land.
func (w *world) fly() {
	w.flies = true
	for range 2 + w.chance.IntN(4*w.shape.shards) {
		switch w.chance.IntN(8) {
		case 0:
			w.letOutSome()
		case 1:
			w.carry()
		case 2:
			w.clientActs()
		default:
			if shard := w.chance.IntN(w.shape.shards); w.mustRun(shard) {
				w.run(shard)
			}
		}
	}
}

// land lets what is on its way come to its end.
func (w *world) land(run func(shard int)) {
	w.flies = false
	first := w.chance.IntN(w.shape.shards)
	for i := range w.shape.shards {
		if shard := (first + i) % w.shape.shards; w.server.flights[shard] != nil {
			run(shard)
		}
	}
}

// stop ends the flights of a world that goes on no more.
func (s *server) stop() {
	for _, f := range s.flights {
		if f != nil {
			f.stop()
		}
	}
}

// isMade notes a round that is on its way from now on.
func (l *lease) isMade(o *shardactor.Observed) {
	w := l.cluster.world
	l.over[o.Shard] = !l.leads()
	f := w.server.flights[o.Shard]
	if f == nil {
		return
	}
	f.made = false
	for shard, other := range w.server.flights {
		if other != nil && shard != o.Shard {
			f.made, other.made = true, true
		}
	}
}

// saysWhat says whether a round is judged that has come to its end.
func (l *lease) saysWhat(o *shardactor.Observed) bool {
	w, is := l.cluster.world, fateApplied
	switch {
	case !o.Unknown && l.over[o.Shard] && len(o.Outcome.Effects) > 0:
		violate("a node that leads no more says nothing", "shard %d: %s", o.Shard, describe(o.Outcome.Effects[0].Effect))
	case o.Unknown && l.landed[o.Shard]:
		is = fateUnheard
		w.server.events.made(o.Shard, o.Batch+1, o.Outcome.Events)
		w.model.isApplied(o.Shard)
	case o.Unknown:
		is = fateDropped
	}
	if f := w.server.flights[o.Shard]; f != nil && f.made {
		w.trace.say("  the round of shard %d beside others %s", o.Shard, is)
		w.together[is]++
	}
	return !o.Unknown
}

// String is what became of it.
func (f fate) String() string {
	return [...]string{"is applied", "is in the log, and it was not told", "is dropped"}[f]
}

// Error is the panic and where it was.
func (b *broken) Error() string { return fmt.Sprintf("%v\n%s", b.cause, where(b.stack)) }
