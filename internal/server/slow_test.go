package server

import (
	"testing"

	"codeq/internal/needs"
	"codeq/wire"
)

// TestASlowDeliveryBeganBeforeATime: only deliveries of the queue that are with a worker count, and
// the first of them is told.
func TestASlowDeliveryBeganBeforeATime(t *testing.T) {
	t.Parallel()
	x := openSite(t, t.TempDir())
	for range 4 {
		x.post(`{"command":"held","payload":1}`)
		x.post(`{"command":"other","payload":1}`)
	}
	var last int64
	for range 3 {
		a := x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["held"],"leaseSeconds":600}`)
		task, err := wire.ParseTask([]byte(a.body))
		if err != nil {
			t.Fatalf("%d %s: %v", a.status, a.body, err)
		}
		last = x.read(task.ID).UpdatedAtMs
	}
	name := wire.SlotName{Tenant: x.post(`{"command":"held","payload":1}`).TenantID, Command: "held"}
	all := x.server.slow(name, last)
	if all.Count != 3 || all.SinceMs == 0 || all.SinceMs > last {
		t.Errorf("up to %d began %+v", last, all)
	}
	if none := x.server.slow(name, all.SinceMs-1); none != (needs.Slow{}) {
		t.Errorf("before the first one began %+v", none)
	}
}
