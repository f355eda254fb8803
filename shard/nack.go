package shard

// nack ends a delivery that failed. Without a delay the backoff policy
// decides; 0 is at once at the tail; beyond the policy's maximum is capped.
func (s *Shard) nack(m *Nack) {
	e := s.holderEnding(m.Asker, m.Owner, m.TaskRef)
	if e == nil {
		return
	}
	t := e.Task
	policy := s.backoffOf(t)
	delayMs := min(m.DelaySeconds*1000, policy.maxMs)
	if m.DelaySeconds < 0 {
		delayMs = policy.delayMs(t.Attempts+1, s.chance)
	}
	endedByWorker(t)
	place := s.placeAt(s.now+delayMs, CauseNack)
	place.reason, place.exit = m.Reason, m.Exit
	s.retry(t, place, m.Reason)
	s.requeued(m.Asker, t, wholeSeconds(delayMs))
}
