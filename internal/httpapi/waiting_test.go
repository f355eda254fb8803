package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// waits reads why a task waits.
func (b *bench) waits(id wire.TaskID) wire.Waiting {
	b.t.Helper()
	g := b.do("GET", tasksPath+"/"+id.String(), "")
	task, err := wire.ParseTask([]byte(g.body))
	if err != nil || g.status != http.StatusOK {
		b.t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	if task.Waiting == nil {
		return wire.Waiting{}
	}
	return *task.Waiting
}

func TestTaskSaysWhyItWaits(t *testing.T) {
	b := newBench(t, setup{})
	delayed := b.post(`{"command":"c","payload":1,"delaySeconds":60}`)
	if w := b.waits(delayed.ID); w.Reason != wire.WaitingDelayed || w.UntilMs != delayed.VisibleAtMs || w.BehindKnown {
		t.Errorf("delayed until %d: %+v", delayed.VisibleAtMs, w)
	}
	// Tasks with one key of a queue are of one shard only by chance; the priority
	// puts this one before whatever its shard has.
	first := b.post(`{"command":"c","payload":1,"priority":9}`)
	if w := b.waits(first.ID); w != (wire.Waiting{Reason: wire.WaitingNoWorker, BehindKnown: true}) {
		t.Errorf("nobody takes it: %+v", w)
	}
	b.do("POST", "/v1/codeq/admin/queues/c/pause", "")
	if w := b.waits(first.ID); w != (wire.Waiting{Reason: wire.WaitingPaused, BehindKnown: true}) {
		t.Errorf("paused: %+v", w)
	}
	b.do("POST", "/v1/codeq/admin/queues/c/resume", "")
	if got := b.claim(`{"commands":["c"]}`); got.ID != first.ID {
		t.Fatalf("claimed %v", got.ID)
	}
	if w := b.waits(first.ID); w != (wire.Waiting{}) {
		t.Errorf("in progress: %+v", w)
	}
	// A list does not ask the shards why.
	if g := b.do("GET", listPath+"?state=delayed", ""); strings.Contains(g.body, "waiting") {
		t.Errorf("a list says %s", g.body)
	}
}

// Everybody is told the end of a lease that its worker was told, and not the stored
// one, which runs ahead of it.
func TestReadersAreToldTheEndOfALeaseThatItsWorkerWasTold(t *testing.T) {
	b := newBench(t, setup{})
	b.post(`{"command":"c","payload":1,"timeoutSeconds":600}`)
	b.post(okBody)
	ready := b.post(okBody)
	got := b.do("POST", claimBatchPath, `{"count":2,"leaseSeconds":30}`).claimedAll(t)
	ends := make(map[wire.TaskID]int64)
	hold := func(when string) {
		t.Helper()
		listed, _, err := wire.ParseTaskPage([]byte(b.do("GET", listPath+"?state=inProgress", "").body))
		if err != nil || len(listed) != len(ends) {
			t.Fatalf("%s: %d in progress, %v", when, len(listed), err)
		}
		for _, task := range listed {
			if seen := b.read(task.ID); task.LeaseUntilMs != ends[task.ID] || seen.LeaseUntilMs != ends[task.ID] || seen.RunUntilMs != task.RunUntilMs {
				t.Errorf("%s: %v until %d, listed until %d, read until %d", when, task.ID, ends[task.ID], task.LeaseUntilMs, seen.LeaseUntilMs)
			}
		}
	}
	for _, task := range got {
		ends[task.ID] = task.LeaseUntilMs
	}
	hold("claimed")
	for _, seconds := range []int64{31, 600} { // the first is not stored, the second is
		for _, task := range got {
			g := b.do("POST", tasksPath+"/"+task.ID.String()+"/heartbeat", fmt.Sprintf(`{"leaseToken":%q,"extendSeconds":%d}`, task.token, seconds))
			var said struct{ LeaseUntil time.Time }
			if err := json.Unmarshal([]byte(g.body), &said); err != nil {
				t.Fatalf("%d %s: %v", g.status, g.body, err)
			}
			ends[task.ID] = said.LeaseUntil.UnixMilli()
		}
		hold(fmt.Sprintf("extended by %d s", seconds))
	}
	sample := b.do("POST", listPath+"/cancel", `{"state":"inProgress","dryRun":true}`).body
	for id, end := range ends {
		if at := string(wire.AppendTimeMs(nil, end)); !strings.Contains(sample, `"leaseUntil":`+at) {
			t.Errorf("a dry run says %s, %v ends at %s", sample, id, at)
		}
	}
	if seen := b.read(ready.ID); seen.LeaseUntilMs != 0 {
		t.Errorf("a ready task has a lease until %d", seen.LeaseUntilMs)
	}
}
