package shard

import (
	"cmp"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// view is the task as a client sees it, a copy that may leave the shard. It owns
// payload from then on.
func view(t *record.Task, payload []byte) *wire.Task {
	return &wire.Task{
		ID: t.ID, Command: t.Command, TenantID: t.Tenant, Payload: payload,
		Priority: t.Priority, Status: t.Status, Location: t.Location,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Deliveries: t.Deliveries,
		Webhook: t.Webhook, VisibleAtMs: t.DueAtMs, TimeoutSeconds: t.TimeoutSeconds, ExpiresAtMs: t.ExpiresAtMs, Error: t.Error,
		TraceParent: t.TraceParent, TraceState: t.TraceState, Labels: t.Labels, ConcurrencyKey: t.ConcurrencyKey,
		Progress: wire.ReadProgress(t.Progress), Printed: t.Printed,
		CreatedAtMs: t.CreatedAtMs, UpdatedAtMs: t.UpdatedAtMs,
	}
}

// addLeaseFields adds to a view what only the lease of a task in progress has.
func addLeaseFields(v *wire.Task, e *lease.Entry) {
	v.WorkerID = e.Lease.WorkerID
	v.Deliveries = e.Lease.Delivery
	v.LeaseUntilMs, v.RunUntilMs = e.Promise()
	v.Progress, v.Printed = cmp.Or(wire.ReadProgress(e.Lease.Progress), v.Progress), v.Printed || e.Lease.Printed
}

// find returns a task: from memory if it is in progress, else from the store. It is
// nil for an unknown task and for one of another tenant, so that a caller cannot
// tell them apart. The record may be changed; its entry is nil unless the task is
// in progress.
func (s *Shard) find(id wire.TaskID, tenant string) (*record.Task, *lease.Entry) {
	if e := s.leases.Get(id); e != nil {
		if e.Task.Tenant != tenant {
			return nil, nil
		}
		return e.Task, e
	}
	t, err := s.span.Task(id)
	if t == nil || s.unreadable(err) || t.Tenant != tenant {
		return nil, nil
	}
	return t, nil
}
