package shard

// raiseFloors finds the first keys of orders that many have left and of which
// memory has none. Otherwise every listing, every replay of dead letters and the
// next start would go over what was deleted long ago. Like refill it may only be
// done at the start of a round.
func (s *Shard) raiseFloors() {
	for range s.limits.Floors {
		stale, ok := s.index.NextStale()
		if !ok {
			return
		}
		q := stale.Queue
		counters := q.Counters()
		if stale.Leased {
			rank, found, err := s.span.FirstLease(q.Key(), counters.LeaseFloor)
			s.mustRead(err)
			if found {
				q.RaiseLeaseFloor(rank)
			}
			continue
		}
		keys, err := s.span.ScanDead(q.Key(), justBefore(counters.DeadFloorMs), 1)
		s.mustRead(err)
		if len(keys) > 0 {
			q.RaiseDeadFloor(keys[0].AtMs)
		}
	}
}
