package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// A claim that already waits when its queue is paused gets nothing of it, like
// one that comes later.
func TestClaimsGetNothingOfAPausedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		waited := make(chan got)
		go func() { waited <- b.do("POST", tasksPath+"/claim", `{"commands":["c"],"waitSeconds":20}`) }()
		synctest.Wait()
		g := b.do("POST", "/v1/codeq/admin/queues/c/pause", "")
		if g.status != http.StatusOK || !strings.Contains(g.body, `"paused":true`) {
			t.Fatalf("paused: %d %s", g.status, g.body)
		}
		b.post(okBody)
		b.post(`{"command":"c","payload":2,"delaySeconds":5}`)
		startedAt := time.Now()
		if g := <-waited; g.status != http.StatusNoContent || time.Since(startedAt) != 20*time.Second {
			t.Errorf("the claim that waited got %d %s after %v", g.status, g.body, time.Since(startedAt))
		}
		if g := b.do("POST", tasksPath+"/claim", `{"commands":["c"]}`); g.status != http.StatusNoContent {
			t.Errorf("a claim of a paused queue got %d %s", g.status, g.body)
		}
		b.do("POST", "/v1/codeq/admin/queues/c/resume", "{}")
		if g := b.do("POST", tasksPath+"/claim", `{"commands":["c"]}`); g.status != http.StatusOK {
			t.Errorf("a claim of the resumed queue got %d %s", g.status, g.body)
		}
	})
}

func TestSettingsOfAQueueHoldForWhoDoesNotSay(t *testing.T) {
	b := newBench(t, setup{})
	g := b.do("PUT", "/v1/codeq/admin/queues/c", `{"maxAttempts":3,"leaseSeconds":60,"backoff":{"policy":"fixed","baseSeconds":7}}`)
	if g.status != http.StatusOK {
		t.Fatalf("set: %d %s", g.status, g.body)
	}
	if task := b.post(okBody); task.MaxAttempts != 3 {
		t.Errorf("a task that does not say has %d attempts", task.MaxAttempts)
	}
	if task := b.post(`{"command":"c","payload":1,"maxAttempts":5}`); task.MaxAttempts != 5 {
		t.Errorf("a task that says 5 has %d attempts", task.MaxAttempts)
	}
	g = b.do("POST", tasksPath+"/claim", `{"commands":["c"],"workerId":"w"}`)
	claimed, err := wire.ParseTask([]byte(g.body))
	if err != nil {
		t.Fatalf("%s: %v", g.body, err)
	}
	if left := claimed.LeaseUntilMs - time.Now().UnixMilli(); left < 50_000 || left > 60_000 {
		t.Errorf("the lease ends in %d ms, want a minute", left)
	}
	nack := b.do("POST", tasksPath+"/"+claimed.ID.String()+"/nack", `{"workerId":"w"}`)
	if nack.status != http.StatusOK || !strings.Contains(nack.body, `"delaySeconds":7`) {
		t.Errorf("nacked: %d %s", nack.status, nack.body)
	}
	b.do("PUT", "/v1/codeq/admin/queues/c", `{"spread":1}`).mustRefuse(t, wire.CodeInvalidArgument)
	for _, body := range []string{`{"ordered":true}`, `{"ordered":false,"spread":true}`} {
		g := b.do("PUT", "/v1/codeq/admin/queues/c", body)
		g.mustRefuse(t, wire.CodeInvalidArgument)
		if !strings.Contains(g.body, "unless its setting spread is true") {
			t.Errorf("%s is refused without saying what is right: %s", body, g.body)
		}
	}
	b.do("PUT", "/v1/codeq/admin/queues/c", `{"maxAttempts":0}`).mustRefuse(t, wire.CodeInvalidArgument)
	b.do("PUT", "/v1/codeq/admin/queues/a%20b", `{}`).mustRefuse(t, wire.CodeInvalidCommand)
}
