package httpapi

import (
	"net/http"
	"strings"
	"testing"

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
	// A list does not ask the shards.
	if g := b.do("GET", listPath+"?state=delayed", ""); strings.Contains(g.body, "waiting") {
		t.Errorf("a list says %s", g.body)
	}
}
