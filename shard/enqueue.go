package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// enqueue makes a task, or finds the one its idempotency key already made.
func (s *Shard) enqueue(m *Enqueue) {
	key := record.QueueKey{Command: m.Command, Tenant: m.Tenant}
	q := s.queues[key] // nil for an unknown queue: a refused task makes none
	if !s.acceptsNew(m, key, q) || m.IdempotencyKey != "" && s.replayed(m, key) {
		m.GiveBack()
		return
	}
	var set wire.QueueSettings
	if q != nil {
		set = q.settings.QueueSettings
	}
	dueMs, expiresMs, refusal := m.Times(s.now, set.TTLSeconds)
	if refusal == nil && s.space >= store.NoEnqueue {
		refusal = wire.Refuse(wire.CodeStorageFull, storageFull)
	}
	if refusal != nil {
		s.tell(m.Sink, &Refused{Ref: m.Ref, Err: refusal})
		m.GiveBack()
		return
	}
	t := &s.scratch
	*t = record.Task{
		ID: m.ID, Command: m.Command, Tenant: m.Tenant, Priority: m.Priority,
		MaxAttempts: cmp.Or(m.MaxAttempts, set.MaxAttempts, wire.DefaultMaxAttempts), CreatedAtMs: s.now,
		ExpiresAtMs: expiresMs, TimeoutSeconds: m.TimeoutSeconds,
		IdempotencyKey: m.IdempotencyKey, TraceParent: m.TraceParent, TraceState: m.TraceState, Labels: m.Labels, ConcurrencyKey: m.ConcurrencyKey, Webhook: m.Webhook,
	}
	batch := s.span.Batch()
	if m.IdempotencyKey != "" {
		t.Fingerprint = m.Fingerprint
		batch.PutIdempotencyKey(key, m.IdempotencyKey, t.ID)
	}
	batch.PutLabels(t)
	batch.GivePayload(t, m.Payload)
	to := s.placeAt(dueMs, record.CauseEnqueue)
	to.held = m.Counted
	s.transition(t, to)
	answer := &Enqueued{Ref: m.Ref, TaskID: t.ID}
	if m.WantTask {
		answer.Task = view(t, m.Payload)
	}
	s.tell(m.Sink, answer)
}

// placeAt is the move to the delayed tasks until a time, or to the tail if that has
// passed.
func (s *Shard) placeAt(dueAtMs int64, cause record.Cause) move {
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
		// The record of the first task cannot be read; a new task takes its key.
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
			addLeaseFields(answer.Task, e)
		}
	}
	s.tell(m.Sink, answer)
	return true
}

// FingerprintOf is equal for two requests with one idempotency key if they are the
// same request: SHA-256 over command, payload bytes, priority and maxAttempts, and
// timeoutSeconds, labels and webhook if they were posted, each behind its length. Times, the
// expiry, the concurrency key and trace do not count.
func FingerprintOf(r *wire.EnqueueRequest) [32]byte {
	h := sha256.New()
	var length [8]byte
	part := func(data []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		// hash.Hash documents that Write never fails.
		_, _ = h.Write(length[:])
		_, _ = h.Write(data)
	}
	part([]byte(r.Command))
	part(r.Payload)
	part([]byte{byte(r.Priority)})
	// The setting of the queue may change between two equal requests.
	part(binary.BigEndian.AppendUint64(nil, uint64(cmp.Or(r.MaxAttempts, wire.DefaultMaxAttempts))))
	if r.TimeoutSeconds != 0 {
		part(binary.BigEndian.AppendUint64(nil, uint64(r.TimeoutSeconds)))
	}
	if r.Labels != "" { // no label has the zero bytes that a timeout begins with
		part([]byte(r.Labels))
	}
	if r.Webhook != "" { // no label is without a sign of equality
		part([]byte("webhook"))
		part([]byte(r.Webhook))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
