package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// limits sets those of the tenant of the bench.
func (b *bench) limits(body string) {
	b.t.Helper()
	if g := b.do("PUT", "/v1/codeq/admin/limits/"+wire.DefaultTenant, body); g.status != http.StatusOK {
		b.t.Fatalf("set limits %s: %d %s", body, g.status, g.body)
	}
}

// advises wants a refusal by a limit of the tenant, with so many seconds to wait.
func (g got) advises(t *testing.T, seconds int) {
	t.Helper()
	g.mustRefuse(t, wire.CodeRateLimited)
	if after := g.header.Get("Retry-After"); after != fmt.Sprint(seconds) || !strings.Contains(g.body, fmt.Sprintf(`"retryAfterSeconds":%d`, seconds)) {
		t.Errorf("Retry-After %q in %s, want %d", after, g.body, seconds)
	}
}

// tells wants the headers of a rate.
func (g got) tells(t *testing.T, policy, left string) {
	t.Helper()
	if p, l := g.header.Get("RateLimit-Policy"), g.header.Get("RateLimit"); p != policy || l != left {
		t.Errorf("RateLimit-Policy %q and RateLimit %q, want %q and %q", p, l, policy, left)
	}
}

func batchOfTasks(n int) string {
	return `{"tasks":[` + strings.Repeat(okBody+",", n-1) + okBody + `]}`
}

// A rate begins empty, lets a burst in after a pause, says when a request fits, and tells in
// headers how many do. What a replay took comes back.
func TestARateOfATenantRefusesAndSaysWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		if g := b.do("POST", tasksPath, okBody); g.header.Get("RateLimit-Policy") != "" {
			t.Errorf("a tenant without limits gets %v", g.header)
		}
		b.limits(`{"enqueuesPerSecond":10,"burst":20}`)
		const policy = `"enqueue";q=20;w=2`
		g := b.do("POST", tasksPath, okBody)
		g.advises(t, 1)
		g.tells(t, policy, `"enqueue";r=0;t=2`)
		g = b.do("POST", tasksPath+"/batch", batchOfTasks(15))
		g.advises(t, 2)
		g.tells(t, policy, `"enqueue";r=0;t=2`)
		time.Sleep(5 * time.Second)
		b.do("POST", tasksPath+"/batch", batchOfTasks(21)).mustRefuse(t, wire.CodeTooLarge)
		g = b.do("POST", tasksPath+"/batch", batchOfTasks(20))
		if g.status != http.StatusOK {
			t.Fatalf("a burst: %d %s", g.status, g.body)
		}
		g.tells(t, policy, `"enqueue";r=0;t=2`)
		time.Sleep(200 * time.Millisecond)
		const keyed = `{"command":"c","payload":1,"idempotencyKey":"k"}`
		b.post(keyed)
		for range 3 {
			b.post(keyed) // a replay costs nothing
		}
		b.post(okBody)
		b.do("POST", tasksPath, okBody).advises(t, 1)
	})
}

// Tasks that wait count over all shards; a task that begins makes room, and one that comes
// back takes it without being refused.
func TestAsManyTasksOfATenantWaitAsItsLimitSays(t *testing.T) {
	asManyWait(t, "pendingTasks")
	asManyWait(t, "pendingBytes") // each payload has one
}

func asManyWait(t *testing.T, limit string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.spread("c")
		b.limits(`{"` + limit + `":8}`)
		b.do("POST", tasksPath+"/batch", batchOfTasks(9)).advises(t, 5)
		if g := b.do("POST", tasksPath+"/batch", batchOfTasks(8)); g.status != http.StatusOK {
			t.Fatalf("as many as may wait: %d %s", g.status, g.body)
		}
		b.do("POST", tasksPath, okBody).advises(t, 5)
		task := b.claim(`{"commands":["c"]}`)
		synctest.Wait()
		b.post(okBody)
		b.do("POST", task.path("nack"), fmt.Sprintf(`{"leaseToken":"%v","delaySeconds":0}`, task.token))
		synctest.Wait()
		b.claim(`{"commands":["c"]}`)
		synctest.Wait()
		b.do("POST", tasksPath, okBody).advises(t, 5)
		b.limits(`{"` + limit + `":9}`)
		b.post(okBody)
	})
}

// A claim waits for its turn under the rate of the tenant for as long as it may wait for
// tasks, and what it asked for and did not get comes back.
func TestAClaimWaitsForTheRateOfItsTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		for range 3 {
			b.post(okBody)
		}
		b.limits(`{"claimsPerSecond":2}`)
		b.do("POST", claimPath, `{"commands":["c"]}`).advises(t, 1)
		began := time.Now()
		b.claim(`{"commands":["c"],"waitSeconds":5}`)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("a claim took %v, want half a second", took)
		}
		b.do("POST", claimBatchPath, `{"commands":["c"],"count":100,"waitSeconds":1}`).advises(t, 50)
		time.Sleep(time.Minute)
		if got := b.do("POST", claimBatchPath, `{"commands":["c"],"count":100}`).claimedAll(t); len(got) != 2 {
			t.Fatalf("a claim got %d tasks, want 2", len(got))
		}
		b.post(okBody)
		if got := b.do("POST", claimBatchPath, `{"commands":["c"],"count":98}`).claimedAll(t); len(got) != 1 {
			t.Errorf("what was given back let %d tasks go, want 1", len(got))
		}
	})
}
