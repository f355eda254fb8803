package shard

// advanceWatermarks finds the first keys of orders that many have left and of which
// memory has none. Otherwise every listing, every replay of dead letters and the
// next start would go over what was deleted long ago. Like refill it may only be
// done at the start of a round.
func (s *Shard) advanceWatermarks() {
	for range s.limits.Watermarks {
		order, ok := s.index.NextStale()
		if !ok {
			return
		}
		q := order.Queue
		counters := q.Counters()
		if order.Leased {
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
