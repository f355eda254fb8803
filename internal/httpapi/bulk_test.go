package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

const openPath = "/v1/codeq/admin/queues/c/tasks"

// mixed makes tasks of every state that has not ended: 8 ready ones, of which half
// are of customer 42 and half have a priority, 4 delayed ones and one in progress.
func (b *bench) mixed() (ready, delayed []wire.TaskID, running claimed) {
	b.t.Helper()
	b.post(`{"command":"c","payload":{"customer":1},"priority":9}`)
	running = b.claim(`{"commands":["c"],"workerId":"ada"}`)
	for i := range 8 {
		body := fmt.Sprintf(`{"command":"c","payload":{"customer":%d,"to":{"city":"B%d"}},"priority":%d,"idempotencyKey":"k%d/x"}`, 41+i%2, i%4, i/4, i)
		ready = append(ready, b.post(body).ID)
	}
	for i := range 4 {
		body := fmt.Sprintf(`{"command":"c","payload":{"customer":"42","pad":"%s"},"delaySeconds":600,"priority":%d}`, strings.Repeat("x", 300*(i%2)), i)
		delayed = append(delayed, b.post(body).ID)
	}
	return ready, delayed, running
}

func TestU05TasksOfEveryStateAreFoundByFilter(t *testing.T) {
	b := newBench(t, setup{})
	b.mixed()
	b.post(`{"command":"other","payload":{"customer":42}}`)
	dry := func(verb, filter string, want int) {
		t.Helper()
		g := b.do("POST", openPath+"/"+verb, strings.Replace(`{"dryRun":true,`+filter+`}`, ",}", "}", 1))
		if g.status != http.StatusOK || !strings.HasPrefix(g.body, fmt.Sprintf(`{"dryRun":true,"matched":%d,"sample":[`, want)) ||
			strings.Count(g.body, `"command":"c"`) != min(want, bulkSample) || g.goOnWith() != "" {
			t.Errorf("%s %s: %d %s, want %d", verb, filter, g.status, g.body, want)
		}
	}
	for filter, want := range map[string]int{
		``: 12, `"state":"waiting"`: 12, `"state":"ready"`: 8, `"state":"delayed"`: 4, `"state":"inProgress"`: 1, `"state":"open"`: 13,
		`"match":{"customer":42}`: 8, `"match":{"customer":42,"to.city":"B1"}`: 2, `"match":{"customer":"1"},"state":"open"`: 1,
		`"priority":0`: 5, `"priority":1,"state":"ready"`: 4, `"priority":9`: 0, `"priority":9,"state":"open"`: 1,
		`"keyPrefix":"k3"`: 1, `"keyPrefix":"k"`: 8, `"minAttempts":1`: 0, `"worker":"ada","state":"open"`: 1, `"worker":"ada"`: 0,
		`"createdBefore":"2020-01-01T00:00:00Z"`: 0, `"createdAfter":"2020-01-01T00:00:00Z"`: 12, `"createdAfter":"2120-01-01T00:00:00Z"`: 0,
		`"error":"no luck"`: 0, `"match":{"pad":""}`: 2,
	} {
		dry("cancel", filter, want)
	}
	dry("run", `"match":{"customer":42}`, 4)
	dry("move", `"toPriority":0`, 7)
	dry("move", `"toPriority":1,"state":"ready"`, 4)
	dry("move", `"toPriority":3,"state":"delayed","priority":3`, 0)
}

func TestU05TasksAreCancelledRunAndMovedByFilter(t *testing.T) {
	b := newBench(t, setup{})
	ready, delayed, running := b.mixed()
	b.mustSay("POST", openPath+"/move", `{"toPriority":7,"match":{"customer":41}}`, `{"moved":4}`)
	b.mustSay("POST", openPath+"/move", `{"toPriority":7,"match":{"customer":41}}`, `{"moved":0}`)
	if task := b.read(ready[0]); task.Priority != 7 {
		t.Errorf("moved: %+v", task)
	}
	b.mustSay("POST", openPath+"/run", `{"priority":1}`, `{"ready":1}`)
	b.mustSay("POST", openPath+"/run", `{"priority":1}`, `{"ready":0}`)
	if g := b.do("POST", openPath+"/run", `{"limit":1}`); !strings.HasPrefix(g.body, `{"ready":1,"cursor":`) {
		t.Errorf("run one: %d %s", g.status, g.body)
	}
	b.mustSay("POST", openPath+"/cancel", `{"state":"ready","match":{"customer":42},"limit":10000}`, `{"cancelled":6}`)
	b.mustSay("POST", openPath+"/cancel", `{"state":"inProgress"}`, `{"cancelled":1}`)
	b.do("POST", running.path("result"), `{"result":{}}`).mustRefuse(t, wire.CodeNotInProgress)
	for i := 0; i < len(ready); i += 2 {
		if claimed := b.claim(`{"commands":["c"]}`); claimed.ID != ready[i] {
			t.Errorf("%v comes instead of %v", claimed.ID, ready[i])
		}
	}
	b.mustSay("POST", openPath+"/cancel", `{"state":"open"}`, `{"cancelled":6}`)
	for _, id := range append(ready, delayed...) {
		if task := b.read(id); task.Status != wire.StatusCancelled {
			t.Errorf("left: %+v", task)
		}
	}
}

func TestU05OneTaskRunsNowOrMoves(t *testing.T) {
	b := newBench(t, setup{})
	ready, delayed, running := b.mixed()
	admin := func(id wire.TaskID, verb string) string { return "/v1/codeq/admin/tasks/" + id.String() + "/" + verb }
	if g := b.do("POST", admin(delayed[0], "run"), ""); g.status != http.StatusOK || !strings.Contains(g.body, `"lastKnownLocation":"PENDING_LIST"`) {
		t.Errorf("run: %d %s", g.status, g.body)
	}
	b.do("POST", admin(delayed[0], "run"), "").mustRefuse(t, wire.CodeNotWaiting)
	b.do("POST", admin(ready[0], "run"), "").mustRefuse(t, wire.CodeNotWaiting)
	if g := b.do("POST", admin(ready[0], "move"), `{"toPriority":8}`); g.status != http.StatusOK || !strings.Contains(g.body, `"priority":8`) {
		t.Errorf("move: %d %s", g.status, g.body)
	}
	b.do("POST", admin(running.ID, "move"), `{"toPriority":8}`).mustRefuse(t, wire.CodeNotWaiting)
	b.do("POST", admin(ready[0], "move"), `{}`).mustRefuse(t, wire.CodeInvalidPriority)
	b.do("POST", admin(ready[0], "move"), `{"toPriority":1,"state":"ready"}`).mustRefuse(t, wire.CodeUnknownMember)
	b.do("POST", "/v1/codeq/admin/tasks/"+unknownID+"/move", `{"toPriority":1}`).mustRefuse(t, wire.CodeTaskNotFound)
	b.do("POST", "/v1/codeq/admin/tasks/x/run", ``).mustRefuse(t, wire.CodeTaskNotFound)
}

// A request stops at its limit, in the state it has come to, and the cursor goes on
// there. What is posted meanwhile is not part of the work.
func TestU05WorkOverStatesGoesOnWithItsCursor(t *testing.T) {
	b := newBench(t, setup{})
	b.mixed()
	done, cursor := 0, ""
	for requests := 1; ; requests++ {
		g := b.do("POST", openPath+"/cancel", fmt.Sprintf(`{"state":"open","limit":3,"cursor":%q}`, cursor))
		var n int
		if _, err := fmt.Sscanf(g.body, `{"cancelled":%d`, &n); err != nil || n > 3 {
			t.Fatalf("answered %d %s", g.status, g.body)
		}
		done, cursor = done+n, g.goOnWith()
		if cursor == "" {
			break
		}
		b.post(`{"command":"c","payload":1}`)
		<-time.After(2 * time.Millisecond) // a later millisecond than that of the bound
		if requests > 20 {
			t.Fatal("the work does not end")
		}
	}
	if done != 13 {
		t.Errorf("%d were cancelled, want 13", done)
	}
	b.do("POST", openPath+"/run", fmt.Sprintf(`{"cursor":%q}`, b.do("POST", openPath+"/cancel", `{"limit":1}`).goOnWith())).
		mustRefuse(t, wire.CodeInvalidArgument)
}

// More is looked at than a limit takes of it: what is behind the limit is found by the
// next request.
func TestU05ALimitCutsWhatIsLookedAtTogether(t *testing.T) {
	b := newBench(t, setup{})
	for i := range 40 {
		b.post(fmt.Sprintf(`{"command":"c","payload":{"customer":%d},"priority":%d}`, i%2, i%3))
	}
	done, cursor := 0, ""
	for limit := 1; limit == 1 || cursor != ""; limit++ {
		g := b.do("POST", openPath+"/cancel", fmt.Sprintf(`{"match":{"customer":1},"limit":%d,"cursor":%q}`, limit, cursor))
		var n int
		if _, err := fmt.Sscanf(g.body, `{"cancelled":%d`, &n); err != nil || n > limit || n < limit && g.goOnWith() != "" {
			t.Fatalf("answered %d %s to a limit of %d", g.status, g.body, limit)
		}
		done, cursor = done+n, g.goOnWith()
	}
	if done != 20 {
		t.Errorf("%d are cancelled, want 20", done)
	}
}

// A shard that is too busy for its part of the work cuts it short. Whoever goes on
// with the cursor does the rest, and nothing is counted twice.
func TestU05BusyShardIsWorkedOnLater(t *testing.T) {
	busyTest(t, func(t *testing.T, b *handBench) {
		all := 0
		for _, ids := range b.fill(20) {
			all += len(ids)
		}
		b.stop(1)
		g := b.do("POST", openPath+"/cancel", `{}`)
		cursor := g.goOnWith()
		var first, rest int
		if _, err := fmt.Sscanf(g.body, `{"cancelled":%d`, &first); err != nil || cursor == "" || first == 0 {
			t.Fatalf("beside a busy shard: %d %s", g.status, g.body)
		}
		b.do("POST", openPath+"/cancel", fmt.Sprintf(`{"cursor":%q}`, cursor)).mustRefuse(t, wire.CodeOverloaded)
		b.stop(-1)
		g = b.do("POST", openPath+"/cancel", fmt.Sprintf(`{"cursor":%q}`, cursor))
		if _, err := fmt.Sscanf(g.body, `{"cancelled":%d}`, &rest); err != nil || first+rest != all {
			t.Errorf("%d were cancelled and then %d (%d %s), want %d", first, rest, g.status, g.body, all)
		}
	})
}

// A dry run changes nothing, so what an admin has done does not have it.
func TestU05LogHasWhatWasDone(t *testing.T) {
	b := newBench(t, setup{})
	b.do("POST", openPath+"/cancel", `{"dryRun":true}`)
	b.do("POST", openPath+"/cancel", `{}`)
	log := b.log.String()
	if strings.Count(log, `"info"`) != 1 || !strings.Contains(log, `"request":{`) || strings.Contains(log, "toPriority") {
		t.Errorf("log: %s", log)
	}
}
