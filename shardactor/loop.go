package shardactor

import (
	"errors"
	"sync/atomic"
	"time"

	"codeq/actor"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/store"
)

// loop is the actor of one shard: it drains the mailbox, runs rounds of the core,
// applies one batch for each, and puts the effects into the effect gate. Everything
// in it but box, effect gate and rounds is owned by the actor's goroutine.
type loop struct {
	box    *mailbox.Mailbox[shard.Message]
	gate   effectGate
	space  mailbox.Slot[shard.Message]
	rounds atomic.Uint64 // whose batch is applied

	core    *shard.Shard
	span    *store.Span
	guard   *store.Guard
	nowMs   func() int64
	fatal   func(error)
	made    func(*Observed)
	observe func(*Observed)
	figures shardFigures

	// applied is the number of the last batch. deposed is set when this node leads its cluster
	// no more: what its shards would do is another node's to decide.
	applied uint64
	deposed bool
}

// handle runs rounds over a whole backlog, and returns how long the actor may
// sleep.
func (l *loop) handle(batch []shard.Message) time.Duration {
	if l.deposed {
		clear(batch)
		return actor.Forever
	}
	l.figures.drained(l.box, len(batch))
	rest := batch
	for {
		now := l.nowMs()
		space := l.guard.Level()
		l.core.SetSpace(space)
		out := l.core.Round(now, rest)
		round := Observed{
			Shard: l.span.Shard(), NowMs: now, Space: space, Messages: rest[:out.Taken], Behind: rest[out.Taken:],
			Outcome: &out, Batch: l.applied,
		}
		show(l.made, round)
		apply := l.span.ApplyAndSync
		if len(rest) > out.Taken || out.Again || !l.box.Empty() {
			apply = l.span.Apply // the next round goes on while the disk syncs
		}
		applied, err := apply()
		if err == nil && applied == l.applied && len(out.Effects) > 0 {
			err = l.span.StillLeads()
		}
		if errors.Is(err, store.ErrNotLeader) {
			l.deposed = true
			round.Unknown = true
			show(l.observe, round)
			clear(batch)
			return actor.Forever
		}
		if err != nil {
			l.fatal(err)
			return actor.Forever
		}
		l.applied = applied
		l.rounds.Add(1)
		l.figures.round(&out)
		round.Batch = applied
		show(l.observe, round)
		rest = rest[out.Taken:]
		if free := l.gate.put(applied, &out); free != nil {
			l.core.ReuseEvents(free)
		}
		for _, u := range out.CreditReturns {
			u.Consumer.Credit.Return(u.Credits)
		}
		if len(rest) > 0 || out.Again {
			continue
		}
		clear(batch)
		if out.NextAtMs == 0 {
			return actor.Forever
		}
		// The commit may have taken its time: in a cluster it waits for other nodes.
		return time.Duration(max(out.NextAtMs-l.nowMs(), 1)) * time.Millisecond
	}
}

// show tells who observes of a round, if anybody does.
func show(to func(*Observed), round Observed) {
	if to != nil {
		told := round // without an observer nothing of it is allocated
		to(&told)
	}
}
