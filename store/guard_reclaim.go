package store

import (
	"context"
	"fmt"
	"time"
)

const (
	// reclaimEvery is how often space is given back while it is short. The statistics of a new
	// table, by which reclaim decides, are there after less.
	reclaimEvery = 10 * time.Second
	// reclaimAgain is the pause after tables were merged, whatever came of it.
	reclaimAgain = time.Minute
	// reclaimLeast is the number of bytes that are worth it.
	reclaimLeast = 1 << 20
)

// reclaimLoop gives back the space of removed keys while space is short, until stop.
func (s *Store) reclaimLoop(stop <-chan struct{}) {
	if !s.guard.supported {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-stop
		cancel()
	}()
	timer := time.NewTimer(reclaimEvery)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			<-ended
			return
		case <-timer.C:
		}
		merged, err := s.reclaim(ctx)
		if err != nil && ctx.Err() == nil {
			s.options.Log.Error().Err(err).Msg("the space of what was removed could not be given back; it is tried again")
		}
		pause := reclaimEvery
		if merged {
			pause = reclaimAgain
		}
		timer.Reset(pause)
	}
}

// reclaim does the next step to give back the space of removed keys, if the guard has another level
// than Ok. Pebble alone would wait: a removal is in a memtable, which nothing fills while new tasks
// are refused, and merges tables only when there are enough of them. The first step writes the
// memtable into a table. The second merges all tables, if they have as much to give back as is worth
// it, and if what stays has room beside them: above the reserve, or in a quarter of less than that.
// It reports whether tables were merged. One goroutine.
func (s *Store) reclaim(ctx context.Context) (merged bool, err error) {
	if s.guard.Level() == Ok {
		return false, nil
	}
	defer s.holdDatabase()()
	m := s.db.Metrics()
	removed := int64(m.Table.Garbage.PointDeletionsBytesEstimate)
	stays := max(m.Total().TablesSize-removed, 0)
	free := s.guard.FreeBytes()
	if removed >= max(reclaimLeast, stays/8) && stays <= max(free-s.guard.ReserveBytes(), free/4) {
		return true, s.Compact(ctx)
	}
	if _, err := s.db.AsyncFlush(); err != nil {
		return false, fmt.Errorf("flush: %w", err)
	}
	return false, nil
}
