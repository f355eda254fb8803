package sim

import (
	"bytes"
	"hash/crc32"
	"slices"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// labels are all labels of the tasks of a run.
var labels = []wire.Labels{"customer=acme", "run=7"}

// labelsOf are the labels that a task is posted with. They follow from its payload, so that a
// repeated request has the same and no number is drawn for them.
func labelsOf(payload []byte) wire.Labels {
	if bytes.HasPrefix(payload, []byte(`{"id":`)) { // that of a callback
		if _, name, is := bytes.Cut(payload, []byte(`","endpoint":"`)); is {
			name, _, _ = bytes.Cut(name, []byte(`"`))
			return wire.Labels("endpoint=" + string(name))
		}
		return ""
	}
	switch crc32.ChecksumIEEE(payload) % 4 {
	case 0:
		return labels[0]
	case 1:
		return labels[0] + "\n" + labels[1]
	}
	return ""
}

func labelled(r wire.EnqueueRequest) wire.EnqueueRequest {
	r.Labels = labelsOf(r.Payload)
	trace := traceOf(r.Payload)
	r.TraceParent, r.TraceState = trace.Parent, trace.State
	return r
}

// compareLabels wants a label to find the tasks of a tenant that have it, and no other.
func (w *world) compareLabels() {
	for _, tenant := range tenants {
		for _, label := range slices.Concat(labels, w.shape.endpointLabels()) {
			want := map[wire.TaskID]bool{}
			for _, t := range w.model.all {
				if t.tenant == tenant && !t.removed && labelsOf([]byte(t.payload)).Have(label) {
					want[t.id] = true
				}
			}
			w.findLabelled(tenant, label, want)
			if len(want) > 0 {
				violate("a label finds the tasks that have it", "%s of %s does not find %d tasks", label, tenant, len(want))
			}
		}
	}
}

// findLabelled takes the tasks that a label finds out of those that are wanted, page by page.
func (w *world) findLabelled(tenant string, label wire.Labels, want map[wire.TaskID]bool) {
	q := &store.ListQuery{Queue: record.QueueKey{Tenant: tenant}, State: store.ListLabelled, Limit: 100, MostRead: 1000}
	for q.Filter.Labels = label; ; {
		page, err := w.server.store.ListTasks(q)
		if err != nil {
			violate("a label finds the tasks that have it", "%v", err)
		}
		for _, seen := range page.Tasks {
			if !want[seen.ID] {
				violate("a label finds the tasks that have it", "%s of %s finds %v of %s", label, tenant, seen.ID, seen.TenantID)
			}
			delete(want, seen.ID)
		}
		if q.After = page.Places; q.After == nil {
			return
		}
	}
}
