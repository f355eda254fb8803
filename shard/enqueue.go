package shard

import (
	"cmp"

	"codeq/record"
	"codeq/wire"
)

// enqueue makes a task, or finds the one its idempotency key already made.
func (s *Shard) enqueue(m *Enqueue) {
	key := record.QueueKey{Command: m.Command, Tenant: m.Tenant}
	if !s.acceptsNew(m, key) {
		return
	}
	if m.IdempotencyKey != "" && s.replayed(m, key) {
		return
	}
	dueMs, expiresMs, refusal := m.Times(s.now, s.ttlSecondsOf(key))
	if refusal != nil {
		s.tell(m.Sink, &Refused{Ref: m.Ref, Err: refusal})
		return
	}
	if !s.hasSpace(m) {
		return
	}
	t := &record.Task{
		ID: m.ID, Command: m.Command, Tenant: m.Tenant, Priority: m.Priority,
		MaxAttempts: s.maxAttemptsOf(m, key), CreatedAtMs: s.now,
		ExpiresAtMs: expiresMs, TimeoutSeconds: m.TimeoutSeconds,
		IdempotencyKey: m.IdempotencyKey, TraceParent: m.TraceParent, TraceState: m.TraceState,
	}
	batch := s.span.Batch()
	if m.IdempotencyKey != "" {
		t.Fingerprint = m.Fingerprint
		batch.PutIdempotencyKey(key, m.IdempotencyKey, t.ID)
	}
	batch.GivePayload(t, m.Payload)
	s.transition(t, s.placeAt(dueMs, CauseEnqueue))
	answer := &Enqueued{Ref: m.Ref, TaskID: t.ID}
	if m.WantTask {
		answer.Task = view(t, m.Payload)
	}
	s.tell(m.Sink, answer)
}

// maxAttemptsOf is what the request says, or else its queue, or else the server.
func (s *Shard) maxAttemptsOf(m *Enqueue, key record.QueueKey) int {
	return cmp.Or(m.MaxAttempts, s.queueOf(key).settings.MaxAttempts, wire.DefaultMaxAttempts)
}

// ttlSecondsOf is after how long a new task of a queue expires that does not say so
// itself, 0 for never. A queue that is not known has no settings.
func (s *Shard) ttlSecondsOf(key record.QueueKey) int64 {
	if q := s.queues[key]; q != nil {
		return q.settings.TTLSeconds
	}
	return 0
}

// placeAt is the delayed set until a time, or the tail if it has passed.
func (s *Shard) placeAt(dueAtMs int64, cause Cause) move {
	if dueAtMs <= s.now {
		return move{to: wire.LocationPending, status: wire.StatusPending, cause: cause}
	}
	return move{to: wire.LocationDelayed, status: wire.StatusPending, cause: cause, dueAtMs: dueAtMs}
}

// replayed answers an enqueue whose key is taken: with the first task if the
// request is the same, with a conflict that names it if not.
func (s *Shard) replayed(m *Enqueue, key record.QueueKey) bool {
	id, found, err := s.span.IdempotencyKey(key, m.IdempotencyKey)
	s.mustRead(err)
	if !found {
		return false
	}
	t, e := s.find(id, m.Tenant)
	if t == nil {
		// The first task cannot be read any more; a new one takes its key.
		return false
	}
	if t.Fingerprint != m.Fingerprint {
		refusal := wire.Refuse(wire.CodeIdempotencyConflict,
			"idempotencyKey was used before for a task with other content; use another key or post the same content")
		refusal.TaskID = id
		s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: id, Err: refusal})
		return true
	}
	answer := &Enqueued{Ref: m.Ref, TaskID: id, Replayed: true}
	if m.WantTask {
		payload, err := s.span.PayloadOf(t)
		s.mustRead(err)
		answer.Task = view(t, payload)
		if e != nil {
			lend(answer.Task, e)
		}
	}
	s.tell(m.Sink, answer)
	return true
}
