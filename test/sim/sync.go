package sim

import "context"

// What makes things durable, and who hears of it.

// sync makes everything durable and lets effects out.
func (w *world) sync() {
	w.syncOnly()
	w.letOut()
}

// letOut tells the effect gates how far the disk has got. The goroutine that does so
// may be slow: rounds go on meanwhile.
func (w *world) letOut() {
	s := w.server
	w.isInTheLog()
	for _, news := range s.untold {
		w.synced(news)
	}
	s.untold = s.untold[:0]
}

// letOutSome is a goroutine that has told the effect gates of some shards and not yet
// of the others.
func (w *world) letOutSome() {
	s := w.server
	w.isInTheLog()
	for n := w.chance.IntN(len(s.untold) + 1); n > 0; n-- {
		news := s.untold[0]
		s.untold = s.untold[1:]
		w.synced(news)
	}
}

// isInTheLog tells the model that in a cluster rounds are durable when they end.
func (w *world) isInTheLog() {
	if w.cluster != nil && len(w.server.untold) > 0 {
		w.model.durable()
	}
}

func (w *world) synced(news syncedShard) {
	s := w.server
	w.doors.told(news.shard, news.upTo)
	s.events.shards[news.shard].told = max(s.events.shards[news.shard].told, news.upTo)
	s.gates.Synced(news.shard, news.upTo)
}

func (w *world) syncOnly() {
	s := w.server
	w.letOut()
	if !s.unsynced {
		return
	}
	if !s.failSyncs.Load() {
		copy(s.durable, s.applied)
		w.model.durable()
	}
	if err := s.store.Barrier(); err != nil {
		violate("a sync that can succeed does", "%v", err)
	}
	s.unsynced = false
	w.syncs++
}

// flush writes tables. What they hold is durable, though nobody is told.
func (w *world) flush() {
	s := w.server
	w.trace.say("  tables are written")
	if err := s.store.Flush(); err != nil {
		violate("tables can be written", "%v", err)
	}
	s.failTables.Store(0)
	s.nextLog.Store(false)
	w.model.durable()
	w.tableWritten()
	s.flushedAt = s.store.Guard().FreeBytes()
}

// tableWritten merges tables before there are too many.
func (w *world) tableWritten() {
	m := w.server.machine
	if m.tables++; m.tables < tablesMost {
		return
	}
	m.tables = 0
	if err := w.server.store.Compact(context.Background()); err != nil {
		violate("tables can be merged", "%v", err)
	}
}
