package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"codeq/wire"
)

const queuePath = "/v1/codeq/admin/queues/c"

func TestU05QueueIsDeletedWithWhatMayBeLost(t *testing.T) {
	b := newBench(t, setup{})
	b.do("DELETE", queuePath, "").mustRefuse(t, wire.CodeQueueNotFound)
	b.do("PUT", queuePath, `{"maxAttempts":3,"spread":true}`)
	b.mustSay("DELETE", queuePath, "", `{"deleted":true}`)
	if g := b.do("GET", queuePath, ""); !strings.Contains(g.body, `"unknown":true`) || strings.Contains(g.body, `"maxAttempts":3`) {
		t.Errorf("deleted without tasks: %s", g.body)
	}
	b.do("PUT", queuePath, `{"spread":true}`)
	b.bury("c", 1)
	ready, _, running := b.mixed()
	b.do("DELETE", queuePath+"?purge=maybe", "").mustRefuse(t, wire.CodeInvalidArgument)
	b.do("DELETE", queuePath, "").mustRefuse(t, wire.CodeQueueNotEmpty)
	b.do("DELETE", queuePath+"?purge=true", "").mustRefuse(t, wire.CodeQueueNotEmpty)
	b.do("DELETE", queuePath+"?cancelRunning=true", "").mustRefuse(t, wire.CodeQueueNotEmpty)
	if task := b.post(`{"command":"c","payload":1}`); task.Location != wire.LocationPending {
		t.Errorf("after refused deletions: %+v", task)
	}
	b.mustSay("DELETE", queuePath+"?purge=true&cancelRunning=true", "", `{"deleted":true}`)
	b.do("GET", tasksPath+"/"+ready[0].String(), "").mustRefuse(t, wire.CodeTaskNotFound)
	b.do("POST", running.path("result"), `{"result":{}}`).mustRefuse(t, wire.CodeTaskNotFound)
	if g := b.do("GET", queuePath, ""); !strings.Contains(g.body, `"unknown":true`) {
		t.Errorf("deleted with tasks: %s", g.body)
	}
	if g := b.do("GET", "/v1/codeq/admin/queues", ""); strings.Contains(g.body, `"command":"c"`) {
		t.Errorf("a queue that is gone is listed: %s", g.body)
	}
	// The keys are gone with the tasks, the order is the default.
	again := b.post(`{"command":"c","payload":2,"idempotencyKey":"k0/x"}`)
	if got := b.claim(`{"commands":["c"]}`); got.ID != again.ID {
		t.Errorf("the new queue hands out %v, want %v", got.ID, again.ID)
	}
}

// While a queue is deleted, it takes no task and no change, and says so. Whoever asks
// meanwhile for the same waits for the same.
func TestU05QueueThatIsDeletedTakesNothing(t *testing.T) {
	busyTest(t, func(t *testing.T, b *handBench) {
		b.fill(3)
		b.stop(1)
		answers := make(chan got, 2)
		for range 2 {
			go func() { answers <- b.do("DELETE", queuePath+"?purge=true", "") }()
			synctest.Wait()
		}
		b.stop(-1)
		for range 2 {
			if g := <-answers; g.status != http.StatusOK || g.body != `{"deleted":true}` {
				t.Errorf("answered %d %s", g.status, g.body)
			}
		}
	})
}
