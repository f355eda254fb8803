package store

import (
	"cmp"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// The functions of this file serve everybody but the shards. Each reads one
// snapshot, so what it joins belongs together; what it returns may not be
// durable yet, which is what WaitDurable is for, called after the read.

// ReadTask is a task as its tenant sees it: record, lease, payload and
// history joined. It is nil when the task is unknown or another tenant's.
// A value that cannot be decoded is a *DamagedError.
func (s *Store) ReadTask(tenant string, id wire.TaskID) (task *wire.Task, err error) {
	err = s.withSnapshot(id, func(v *view) error {
		task, err = readTask(v, tenant, id)
		return err
	})
	return task, err
}

// ReadResult is a task and its outcome. The outcome is nil while there is
// none, both are nil when the task is unknown or another tenant's.
func (s *Store) ReadResult(tenant string, id wire.TaskID) (task *wire.Task, r *wire.ResultRecord, err error) {
	err = s.withSnapshot(id, func(v *view) error {
		record, err := readRecord(v, tenant, id)
		if err != nil || record == nil {
			return err
		}
		if task, err = joinTask(v, record); err != nil {
			return err
		}
		r, err = v.resultOf(record)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return task, r, nil
}

func (s *Store) withSnapshot(id wire.TaskID, read func(v *view) error) error {
	return s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		v := s.viewOf(snapshot, wire.ShardOfTask(id, s.shards))
		return read(&v)
	})
}

// atOneMoment lets somebody read a snapshot of the database.
func (s *Store) atOneMoment(read func(snapshot *pebble.Snapshot) error) error {
	defer s.holdDatabase()()
	snapshot := s.db.NewSnapshot()
	err := read(snapshot)
	if closeErr := snapshot.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close snapshot: %w", closeErr)
	}
	return err
}

func readTask(v *view, tenant string, id wire.TaskID) (*wire.Task, error) {
	r, err := readRecord(v, tenant, id)
	if err != nil || r == nil {
		return nil, err
	}
	return joinTask(v, r)
}

// readRecord is the record of a task, nil if it is unknown or another tenant's.
func readRecord(v *view, tenant string, id wire.TaskID) (*record.Task, error) {
	r, err := v.task(id)
	if err != nil || r == nil || r.Tenant != tenant {
		return nil, err
	}
	return r, nil
}

// joinTask adds to a record what is kept beside it.
func joinTask(v *view, r *record.Task) (*wire.Task, error) {
	id := r.ID
	payload, err := v.payloadOf(r)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		key := record.AppendIDKey(v.start(), record.FamilyPayload, id)
		return nil, &DamagedError{Key: append([]byte(nil), key...), Err: errMissing}
	}
	history, err := v.history(id)
	if err != nil {
		return nil, err
	}
	task := &wire.Task{}
	setTask(task, r)
	task.Payload, task.History = payload, history
	if r.Status.Terminal() {
		return task, nil
	}
	lease, err := v.lease(r.Queue(), id)
	if err != nil {
		return nil, err
	}
	if lease != nil {
		joinLease(task, lease)
	}
	return task, nil
}

// workerOf is who had a task when it ended. Whoever has one that goes on is in its
// lease.
func workerOf(r *record.Task) string {
	if r.Status.Terminal() {
		return r.LastWorkerID
	}
	return ""
}

// setTask sets what the record alone says.
func setTask(t *wire.Task, r *record.Task) {
	*t = wire.Task{
		ID:          r.ID,
		Command:     r.Command,
		Priority:    r.Priority,
		Status:      r.Status,
		Location:    r.Location,
		Attempts:    r.Attempts,
		MaxAttempts: r.MaxAttempts,
		Deliveries:  r.Deliveries,
		Error:       r.Error,
		DeadCause:   r.DeadCause,
		CancelCause: r.CancelCause(),
		ExpiresAtMs: r.ExpiresAtMs,
		Webhook:     r.Webhook,
		WorkerID:    workerOf(r),
		TenantID:    r.Tenant,
		TraceParent: r.TraceParent,
		TraceState:  r.TraceState,
		Progress:    wire.ReadProgress(r.Progress),
		Printed:     r.Printed,
		Labels:      r.Labels,
		CreatedAtMs: r.CreatedAtMs,
		UpdatedAtMs: r.UpdatedAtMs,

		TimeoutSeconds: r.TimeoutSeconds,
		ConcurrencyKey: r.ConcurrencyKey,
	}
	if r.Location == wire.LocationDelayed {
		t.VisibleAtMs = r.DueAtMs
	}
}

// joinLease adds what a grant decided: it does not rewrite the record. When the lease
// and the run end only the shard knows: the stored ends are not those.
func joinLease(t *wire.Task, l *record.Lease) {
	t.Status = wire.StatusInProgress
	t.Location = wire.LocationInProgress
	t.VisibleAtMs = 0
	t.Deliveries = l.Delivery
	t.WorkerID = l.WorkerID
	t.Progress, t.Printed = cmp.Or(wire.ReadProgress(l.Progress), t.Progress), t.Printed || l.Printed
	t.UpdatedAtMs = max(t.UpdatedAtMs, l.GrantedAtMs)
}
