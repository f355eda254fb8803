package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const deadPath = "/v1/codeq/admin/queues/c/dlq"

// buryFor makes a dead letter that a worker gave up for a reason.
func (b *bench) buryFor(worker, reason string) wire.TaskID {
	b.t.Helper()
	b.post(`{"command":"c","payload":1,"maxAttempts":1}`)
	got := b.claim(fmt.Sprintf(`{"commands":["c"],"workerId":%q}`, worker))
	if g := b.do("POST", got.path("nack"), fmt.Sprintf(`{"reason":%q}`, reason)); !strings.Contains(g.body, `"dlq"`) {
		b.t.Fatalf("nack: %d %s", g.status, g.body)
	}
	return got.ID
}

// mustSay is a request that is answered just so.
func (b *bench) mustSay(method, target, body, want string) {
	b.t.Helper()
	if g := b.do(method, target, body); g.status != http.StatusOK || g.body != want {
		b.t.Errorf("%s %s %s is answered %d %s, want %s", method, target, body, g.status, g.body, want)
	}
}

func TestPurgeRemovesDeadLettersAndNothingElse(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 3)
	b.bury("other", 1)
	kept := b.post(`{"command":"c","payload":1}`)
	b.mustSay("DELETE", deadPath+"?before=2000-01-01T00:00:00Z", "", `{"purged":0,"remaining":3}`)
	b.mustSay("DELETE", deadPath+"?before=1960-01-01T00:00:00Z", "", `{"purged":0,"remaining":3}`)
	g := b.do("DELETE", deadPath+"?limit=1", "")
	cursor, found := strings.CutPrefix(strings.TrimSuffix(g.body, `"}`), `{"purged":1,"remaining":2,"cursor":"`)
	if !found {
		t.Fatalf("one of three is answered %d %s", g.status, g.body)
	}
	b.do("DELETE", "/v1/codeq/admin/queues/other/dlq?cursor="+cursor, "").mustRefuse(t, wire.CodeInvalidArgument)
	b.do("GET", listPath+"?state=dlq&cursor="+cursor, "").mustRefuse(t, wire.CodeInvalidArgument)
	b.mustSay("DELETE", deadPath+"?limit=2&cursor="+cursor, "", `{"purged":2,"remaining":0}`)
	b.mustSay("DELETE", deadPath, "", `{"purged":0,"remaining":0}`)
	if task := b.read(kept.ID); task.Status != wire.StatusPending {
		t.Errorf("what waits became %s", task.Status)
	}
	if g := b.do("GET", "/v1/codeq/admin/queues/other", ""); !strings.Contains(g.body, `"dlq":1`) {
		t.Errorf("the other queue has %s", g.body)
	}
}

// Nothing of a purged task is left: it is unknown, and its key makes a new one.
func TestPurgedTaskIsGoneWithItsResultAndKey(t *testing.T) {
	b := newBench(t, setup{})
	post := `{"command":"c","payload":1,"maxAttempts":1,"idempotencyKey":"k"}`
	first := b.post(post)
	got := b.claim(`{"commands":["c"]}`)
	b.do("POST", got.path("nack"), `{}`)
	if g := b.do("GET", tasksPath+"/"+first.ID.String()+"/result?waitSeconds=60", ""); g.status != http.StatusOK {
		t.Fatalf("a dead letter has its result: %d %s", g.status, g.body)
	}
	b.mustSay("DELETE", deadPath, "", `{"purged":1,"remaining":0}`)
	b.do("GET", tasksPath+"/"+first.ID.String(), "").mustRefuse(t, wire.CodeTaskNotFound)
	b.do("GET", tasksPath+"/"+first.ID.String()+"/result?waitSeconds=60", "").mustRefuse(t, wire.CodeTaskNotFound)
	b.do("POST", "/v1/codeq/admin/tasks/"+first.ID.String()+"/replay", "").mustRefuse(t, wire.CodeTaskNotFound)
	if second := b.post(post); second.ID == first.ID {
		t.Error("the key still leads to the purged task")
	}
}

func TestPurgeAndReplayTakeTheSameFilters(t *testing.T) {
	b := newBench(t, setup{})
	for range 2 {
		b.buryFor("ada", "disk full")
		b.buryFor("bob", "disk full")
		b.buryFor("bob", "no such file")
	}
	b.mustSay("POST", deadPath+"/replay", `{"error":"such","worker":"ada"}`, `{"replayed":0,"remaining":6}`)
	if g := b.do("POST", deadPath+"/replay", `{"error":"such file","worker":"bob","limit":1}`); !strings.HasPrefix(g.body, `{"replayed":1,"remaining":5,"cursor":"`) {
		t.Errorf("one of two is answered %d %s", g.status, g.body)
	}
	b.mustSay("POST", deadPath+"/replay", `{"error":"such file","worker":"bob"}`, `{"replayed":1,"remaining":4}`)
	b.mustSay("DELETE", deadPath+"?worker=ada&error="+url.QueryEscape("disk full"), "", `{"purged":2,"remaining":2}`)
	b.mustSay("DELETE", deadPath+"?worker=ada", "", `{"purged":0,"remaining":2}`)
}

func TestPurgeRefusesWhatItDoesNotKnow(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 1)
	for _, query := range []string{
		"?limit=0", "?limit=10001", "?limit=x", "?limit=1&limit=2", "?error=", "?worker=a&worker=b",
		"?cursor=x", "?cursor=" + strings.Repeat("A", 40), "?limit=null", "?limit=%201", "?dryRun=null", "?minAttempts=null", "?match=null",
	} {
		b.do("DELETE", deadPath+query, "").mustRefuse(t, wire.CodeInvalidArgument)
	}
	for query, body := range map[string]string{"?eror=disk": "", "?state=dlq": "", "": `{"worker":"ada"}`, "?limit=1": `{"limit":1}`} {
		b.do("DELETE", deadPath+query, body).mustRefuse(t, wire.CodeUnknownMember)
	}
	b.do("DELETE", deadPath+"?before=yesterday", "").mustRefuse(t, wire.CodeInvalidTime)
	b.do("DELETE", "/v1/codeq/admin/queues/no%20name/dlq", "").mustRefuse(t, wire.CodeInvalidCommand)
	b.mustSay("DELETE", deadPath, "", `{"purged":1,"remaining":0}`)
}

// A queue with more dead letters than one piece is purged whole.
func TestPurgeGoesOnOverPieces(t *testing.T) {
	b := newBench(t, setup{})
	n := bulkChunk + 20
	b.bury("c", n)
	b.mustSay("DELETE", deadPath, "", fmt.Sprintf(`{"purged":%d,"remaining":0}`, n))
}

// goOnWith is the cursor of an answer, "" for the last.
func (g got) goOnWith() string {
	_, rest, _ := strings.Cut(g.body, `"cursor":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	return cursor
}

// A letter that dies again while a replay goes on is not part of it, whoever asks
// for the parts.
func TestN23ReplayTakesEachLetterOnce(t *testing.T) {
	b := newBench(t, setup{})
	ids := b.bury("c", 7)
	done, body := 0, `{"limit":2}`
	for range 2 * len(ids) {
		g := b.do("POST", deadPath+"/replay", body)
		n := 0
		if _, err := fmt.Sscanf(g.body, `{"replayed":%d,`, &n); err != nil {
			t.Fatalf("answered %d %s", g.status, g.body)
		}
		for range n {
			got := b.claim(`{"commands":["c"]}`)
			b.do("POST", got.path("nack"), `{}`)
		}
		done += n
		if g.goOnWith() == "" {
			break
		}
		body = fmt.Sprintf(`{"limit":2,"cursor":%q}`, g.goOnWith())
	}
	if done != len(ids) {
		t.Errorf("%d letters were replayed, want %d", done, len(ids))
	}
	for _, id := range ids {
		if task := b.read(id); task.Deliveries != 2 {
			t.Errorf("%v was delivered %d times, want 2", id, task.Deliveries)
		}
	}
}

func TestN23PurgeTakesWhatHadDiedWhenItBegan(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 3)
	g := b.do("DELETE", deadPath+"?limit=1", "")
	late := b.bury("c", 2)
	b.mustSay("DELETE", deadPath+"?cursor="+g.goOnWith(), "", `{"purged":2,"remaining":2}`)
	for _, id := range late {
		b.read(id)
	}
	b.mustSay("DELETE", deadPath, "", `{"purged":2,"remaining":0}`)
}

// A cursor that nobody was given is refused, or leads no further than to now.
func TestN23CursorWithoutABoundOrFromTheFutureIsNone(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 2)
	q := record.QueueKey{Command: "c", Tenant: "default"}
	places := make([]store.ListPlace, b.engine.Shards())
	old := encodeCursor(q, bulkList, places)
	b.do("DELETE", deadPath+"?cursor="+old, "").mustRefuse(t, wire.CodeInvalidArgument)
	none := encodeCursor(q, bulkList, []store.ListPlace{})
	b.do("DELETE", deadPath+"?cursor="+none, "").mustRefuse(t, wire.CodeInvalidArgument)
	// With nothing behind it, and a time that no clock has: everything until now.
	bound := store.ListPlace("\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	b.mustSay("DELETE", deadPath+"?cursor="+encodeCursor(q, bulkList, []store.ListPlace{bound}), "",
		`{"purged":2,"remaining":0}`)
}

// A letter that ended at the time of before is none from before it.
func TestBeforeLeavesOutTheLetterOfThatMillisecond(t *testing.T) {
	b := newBench(t, setup{})
	id := b.bury("c", 1)[0]
	endedAtMs := b.read(id).UpdatedAtMs
	for _, at := range []struct {
		ms   int64
		done int
	}{{endedAtMs, 0}, {endedAtMs + 1, 1}} {
		before := strings.Trim(string(wire.AppendTimeMs(nil, at.ms)), `"`)
		b.mustSay("POST", deadPath+"/replay", fmt.Sprintf(`{"before":%q}`, before),
			fmt.Sprintf(`{"replayed":%d,"remaining":%d}`, at.done, 1-at.done))
	}
	got := b.claim(`{"commands":["c"]}`)
	b.do("POST", got.path("nack"), `{}`)
	endedAtMs = b.read(id).UpdatedAtMs
	for _, at := range []struct {
		ms   int64
		done int
	}{{endedAtMs, 0}, {endedAtMs + 1, 1}} {
		before := strings.Trim(string(wire.AppendTimeMs(nil, at.ms)), `"`)
		b.mustSay("DELETE", deadPath+"?before="+url.QueryEscape(before), "",
			fmt.Sprintf(`{"purged":%d,"remaining":%d}`, at.done, 1-at.done))
	}
}

// A request with a filter ends when it has looked at so many letters, whatever it
// found, and its cursor goes on from there.
func TestARequestWithAFilterLooksAtABoundedNumberOfLetters(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", bulkChunk+1)
	a := &api{o: Options{Store: b.store}}
	w := &bulkWork{
		call: &call{r: httptest.NewRequest("DELETE", "/", nil)},
		req:  &wire.BulkRequest{TaskFilter: wire.TaskFilter{ErrorPart: "no luck"}, EndedRequest: wire.EndedRequest{Limit: wire.MaxEndedTasks}},
		read: bulkMostFiltered - bulkChunk,
	}
	w.req.DryRun = true // it looks at as many
	w.query = store.ListQuery{
		Queue: record.QueueKey{Tenant: "default", Command: "c"}, State: store.ListDead, UntilMs: math.MaxInt64,
		Filter: store.ListFilter{TaskFilter: w.req.TaskFilter},
	}
	if _, err := a.workChunks(w); err != nil {
		t.Fatal(err)
	}
	if w.done != bulkChunk || w.query.After == nil {
		t.Errorf("%d letters are done, and there is a place to go on: %t; want %d and true", w.done, w.query.After != nil, bulkChunk)
	}
}

// buryMany makes dead letters that die one millisecond after the other; only in a bubble.
func (b *bench) buryMany(n int) (ids []wire.TaskID) {
	b.t.Helper()
	items := make([]string, 100)
	for i := range items {
		items[i] = `{"command":"c","payload":1,"maxAttempts":1}`
	}
	for len(ids) < n {
		b.do("POST", batchPath, batchOf(items...))
		for _, c := range b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(b.t) {
			<-time.After(time.Millisecond)
			if g := b.do("POST", c.path("nack"), `{}`); !strings.Contains(g.body, `"dlq"`) {
				b.t.Fatalf("nack: %d %s", g.status, g.body)
			}
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// A limit between two multiples of what is done at once is kept, and the cursor goes on
// with the letter behind it.
func TestALimitOfMoreThanOnePieceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		const n, purged, replayed = 600, bulkChunk + 44, bulkChunk + 40
		ids := b.buryMany(n)
		ask := func(method, target, body, want string) (cursor string) {
			t.Helper()
			g := b.do(method, target, body)
			if !strings.HasPrefix(g.body, want) {
				t.Errorf("%s %s is answered %d %.100s, want %s", target, body, g.status, g.body, want)
			}
			return g.goOnWith()
		}
		cursor := ask("DELETE", fmt.Sprintf("%s?limit=%d", deadPath, purged), "", fmt.Sprintf(`{"purged":%d,"remaining":%d,"cursor"`, purged, n-purged))
		ask("DELETE", deadPath+"?limit=1&cursor="+cursor, "", fmt.Sprintf(`{"purged":1,"remaining":%d,"cursor"`, n-purged-1))
		b.do("GET", tasksPath+"/"+ids[purged].String(), "").mustRefuse(t, wire.CodeTaskNotFound)
		left := ids[purged+1:]
		cursor = ask("POST", deadPath+"/replay", fmt.Sprintf(`{"limit":%d}`, replayed), fmt.Sprintf(`{"replayed":%d,"remaining":%d,"cursor"`, replayed, len(left)-replayed))
		ask("POST", deadPath+"/replay", fmt.Sprintf(`{"limit":1,"cursor":%q}`, cursor), fmt.Sprintf(`{"replayed":1,"remaining":%d,"cursor"`, len(left)-replayed-1))
		for at, id := range left {
			if task := b.read(id); (task.Status == wire.StatusPending) != (at <= replayed) {
				t.Fatalf("letter %d of %d is %s", at+1, len(left), task.Status)
			}
		}
	})
}

// A purge has its filter in the query, a replay in the body: whoever takes one for the
// other is refused, and nothing is done to the letters that were not meant.
func TestAFilterInTheWrongPlaceIsRefused(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 2)
	const query = "?error=zzz&limit=1"
	b.do("DELETE", deadPath, `{"error":"zzz","limit":1}`).mustRefuse(t, wire.CodeUnknownMember)
	b.do("POST", deadPath+"/replay"+query, "").mustRefuse(t, wire.CodeUnknownMember)
	b.do("POST", deadPath+"/replay"+query, `{"limit":1}`).mustRefuse(t, wire.CodeUnknownMember)
	b.mustSay("DELETE", deadPath+query, "", `{"purged":0,"remaining":2}`)
}
