package sim

import (
	"codeq/record"
	"codeq/wire"
)

const (
	// secondMs is the least time that figures of a second are of, windowMs half of the most that
	// percentiles are of.
	secondMs = 1000
	windowMs = 30_000
)

// paces are what a board must show of queues beside the numbers of tasks: what happened in the last
// second, how long tasks waited and ran, since when the first one is ready, and whether they are
// paused.
type paces struct {
	world  *world
	queues map[record.QueueKey]*pace
	// secondAtMs and windowAtMs are when the last second and window ended, tablesAtMs when the
	// store is read again.
	secondAtMs, windowAtMs, tablesAtMs int64
}

type pace struct {
	row wire.Figures
	// second is what had happened by the end of the last second, half by the end of the last
	// window, and window by that of the one before. began says that none of them is known.
	second, half, window sums
	began                bool
	// started, unreadable and suspect count deliveries of the window and tasks set aside.
	started, unreadable, suspect int64
}

// sums are what has happened in a queue, and how often tasks had waited and run.
type sums struct {
	per       wire.Figures
	wait, run int
}

// sums are those of a queue as of the last event that was observed.
func (v *watcher) sums(q record.QueueKey) sums {
	h := v.happened[q]
	if h == nil {
		return sums{}
	}
	return sums{h.per, len(h.wait), len(h.run)}
}

// refreshed is what a board that was just refreshed must show of each queue.
func (p *paces) refreshed() {
	v, nowMs := p.world.server.events, p.world.nowMs
	for q := range p.queues {
		if v.queues[q] == nil {
			delete(p.queues, q)
		}
	}
	for q, f := range v.queues {
		x, now := p.queues[q], v.sums(q)
		if x == nil {
			x = &pace{}
			p.queues[q] = x
		}
		if f.Moves == [record.Causes]uint64{} {
			x.began = false
		} else if !x.began {
			x.began, x.second, x.half, x.window = true, now, now, now
		}
	}
	if tookMs := nowMs - p.secondAtMs; tookMs >= secondMs {
		turns := nowMs-p.windowAtMs >= windowMs
		if p.secondAtMs = nowMs; turns {
			p.windowAtMs = nowMs
		}
		for q, x := range p.queues {
			x.endsSecond(v, q, tookMs, turns)
		}
	}
	for q, x := range p.queues {
		if x.started, x.unreadable, x.suspect = 0, 0, 0; x.began {
			moves := &v.queues[q].Moves
			x.started = int64(v.sums(q).wait - x.window.wait)
			x.unreadable, x.suspect = int64(moves[record.CauseUnreadable]), int64(moves[record.CauseSuspect])
		}
	}
	if nowMs >= p.tablesAtMs {
		p.tablesAtMs = nowMs + secondMs
		for q, x := range p.queues {
			x.row[wire.FigureOldestReadyAt], x.row[wire.FigurePaused] = p.world.oldestReady(q), 0
			if p.world.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, p.world.shape.shards)][q].Paused {
				x.row[wire.FigurePaused] = 1
			}
		}
	}
}

// endsSecond sets the figures of the last second. After a time without a look there is none, and
// percentiles begin anew.
func (x *pace) endsSecond(v *watcher, q record.QueueKey, tookMs int64, turns bool) {
	now := v.sums(q)
	clear(x.row[wire.FigureInPer:wire.FigureOldestReadyAt])
	clear(x.row[wire.FigureWaitP50:wire.FigurePaused])
	if !x.began {
		return
	}
	if tookMs >= 2*secondMs {
		x.half, x.window = now, now
	} else {
		for i := wire.FigureInPer; i < wire.FigureOldestReadyAt; i++ {
			x.row[i] = ((now.per[i]-x.second.per[i])*1000 + tookMs/2) / tookMs
		}
	}
	h := v.happened[q]
	wait, run := h.wait[x.window.wait:], h.run[x.window.run:]
	x.row[wire.FigureWaitP50], x.row[wire.FigureWaitP99] = percentile(wait, 50), percentile(wait, 99)
	x.row[wire.FigureRunP50], x.row[wire.FigureRunP99] = percentile(run, 50), percentile(run, 99)
	if x.second = now; turns {
		x.window, x.half = x.half, now
	}
}

// oldestReady is since when the first ready task of a queue is ready, of those that each shard
// would hand out first of a priority; 0 if none is.
func (w *world) oldestReady(q record.QueueKey) (ms int64) {
	for shard := range w.shape.shards {
		for prio := range record.Priorities {
			tasks := w.model.pending[orderName{shard, q.Tenant, q.Command, prio}]
			if len(tasks) > 0 && (ms == 0 || tasks[0].sinceMs < ms) {
				ms = tasks[0].sinceMs
			}
		}
	}
	return ms
}
