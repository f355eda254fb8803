package shard

import (
	"codeq/record"
	"codeq/wire"
)

// waits reports a place from which a task is handed out, sooner or later.
func waits(place wire.Location) bool {
	return place == wire.LocationPending || place == wire.LocationDelayed
}

// expired is the move in place of one that would let a task wait though its time is
// over, or of none: it ends. What a delivery leaves in the history is that of the
// move which ended it.
func (s *Shard) expired(t *record.Task, instead move) move {
	endedByWorker(t)
	t.Expired = true
	return move{
		to: wire.LocationNone, status: wire.StatusCancelled, cause: CauseTaskExpired,
		ended: instead.cause, closeCode: instead.closeCode, reason: instead.reason, exit: instead.exit,
		result: &wire.ResultRecord{
			TaskID: t.ID, Status: wire.StatusCancelled, Error: t.Error, CancelCause: wire.CancelExpired, CompletedAtMs: s.now,
		},
	}
}

// moveExpiring gives a task that expires an entry for that when it begins to wait,
// and takes it away when it no longer does.
func (s *Shard) moveExpiring(t *record.Task, from, to wire.Location) {
	if t.ExpiresAtMs == 0 || waits(from) == waits(to) {
		return
	}
	q, k := s.queueOf(t.Queue()), record.TimedKey{AtMs: t.ExpiresAtMs, ID: t.ID}
	if waits(to) {
		q.index.AddExpiring(k)
		s.span.Batch().PutExpiring(q.key, k)
		return
	}
	q.index.RemoveExpiring(k)
	s.span.Batch().DeleteExpiring(q.key, k)
}
