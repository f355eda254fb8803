package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"codeq/internal/auth"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const listPath = "/v1/codeq/admin/queues/c/tasks"

// page reads one page of a list.
func (g got) page(t *testing.T) (ids []string, cursor string) {
	t.Helper()
	tasks, cursor, err := wire.ParseTaskPage([]byte(g.body))
	if err != nil || g.status != http.StatusOK {
		t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	g.mustBeJSON(t)
	for _, task := range tasks {
		ids = append(ids, task.ID.String())
	}
	return ids, cursor
}

func TestTasksAreListedInPagesInTheOrderOfTheirPriority(t *testing.T) {
	b := newBench(t, setup{})
	byPriority := map[int][]string{}
	for n := range 23 {
		priority := []int{0, 9, 4}[n%3]
		task := b.post(fmt.Sprintf(`{"command":"c","payload":%d,"priority":%d}`, n, priority))
		byPriority[priority] = append(byPriority[priority], task.ID.String())
	}
	delayed := b.post(`{"command":"c","payload":1,"delaySeconds":60}`)
	b.post(`{"command":"other","payload":1}`)
	var got []string
	for target := listPath + "?state=ready&limit=5"; ; {
		ids, cursor := b.do("GET", target, "").page(t)
		if got = append(got, ids...); cursor == "" {
			break
		}
		if len(ids) != 5 {
			t.Errorf("a page of %d with a cursor", len(ids))
		}
		target = listPath + "?state=ready&limit=5&cursor=" + cursor
	}
	if len(got) != 23 {
		t.Fatalf("listed %d of 23", len(got))
	}
	for _, priority := range []int{9, 4, 0} {
		part := slices.Clone(got[:len(byPriority[priority])])
		got = got[len(part):]
		slices.Sort(part)
		if slices.Sort(byPriority[priority]); !slices.Equal(part, byPriority[priority]) {
			t.Errorf("priority %d is not listed together", priority)
		}
	}
	if ids, cursor := b.do("GET", listPath+"?state=delayed", "").page(t); len(ids) != 1 || ids[0] != delayed.ID.String() || cursor != "" {
		t.Errorf("delayed are %v, cursor %q", ids, cursor)
	}
	for _, state := range []string{"inProgress", "dlq", "done"} {
		if g := b.do("GET", listPath+"?state="+state, ""); g.body != `{"tasks":[]}` {
			t.Errorf("%s: %s", state, g.body)
		}
	}
}

func TestTasksInProgressAndDoneAreFound(t *testing.T) {
	b := newBench(t, setup{})
	w := b.newWorker("c")
	var done []string
	for range 3 {
		b.post(okBody)
		g := w.take()
		if ids, _ := b.do("GET", listPath+"?state=inProgress&worker="+benchWorkerID, "").page(t); len(ids) != 1 || ids[0] != g.Task.ID.String() {
			t.Errorf("in progress are %v", ids)
		}
		w.finish(g, `{"ok":true}`)
		b.do("GET", tasksPath+"/"+g.Task.ID.String()+"/result?waitSeconds=10", "").mustHaveResult(t, `{"ok":true}`)
		done = append(done, g.Task.ID.String())
	}
	ids, _ := b.do("GET", listPath+"?state=done&status=COMPLETED&worker="+benchWorkerID, "").page(t)
	if slices.Sort(ids); !slices.Equal(ids, done) {
		t.Errorf("done are %v, want %v", ids, done)
	}
	for _, filter := range []string{"status=FAILED", "worker=nobody", "error=x"} {
		if ids, cursor := b.do("GET", listPath+"?state=done&"+filter, "").page(t); len(ids) != 0 || cursor != "" {
			t.Errorf("%s finds %v, cursor %q", filter, ids, cursor)
		}
	}
}

func TestBadListsAreRefused(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"all":    {Tenant: "one", Subject: "s"},
		"few":    {Tenant: "one", Subject: "s", Commands: []string{"d"}},
		"other":  {Tenant: "two", Subject: "s"},
		"worker": {Tenant: "one", Subject: "s", Scopes: append(auth.WorkerScopes(), auth.ScopeRead, auth.ScopeProduce)},
	}})
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	for range 2 {
		b.post(okBody, as("all")...)
	}
	_, cursor := b.do("GET", listPath+"?state=ready&limit=1", "", as("all")...).page(t)
	if ids, _ := b.do("GET", listPath+"?state=ready&cursor="+cursor, "", as("all")...).page(t); len(ids) != 1 {
		t.Fatalf("the cursor leads to %v", ids)
	}
	for _, query := range []string{
		"", "state=", "state=pending", "state=ready&state=ready", "state=ready&limit=0", "state=ready&limit=501", "state=ready&limit=-1",
		"state=ready&limit=x", "state=ready&limit=1&limit=1", "state=ready&status=done", "state=ready&worker=", "state=ready&error=a&error=b",
		"state=ready&cursor=x", "state=ready&cursor=%zz", "state=done&cursor=" + cursor, "state=delayed&cursor=" + cursor,
		"state=ready&cursor=" + strings.ToUpper(cursor), "state=ready&cursor=" + cursor + "A", "state=ready&cursor=" + cursor[1:],
	} {
		b.do("GET", listPath+"?"+query, "", as("all")...).mustRefuse(t, wire.CodeInvalidArgument)
	}
	b.do("GET", listPath+"?state=ready&cursor="+cursor, "", as("other")...).mustRefuse(t, wire.CodeInvalidArgument)
	b.do("GET", "/v1/codeq/admin/queues/other/tasks?state=ready&cursor="+cursor, "", as("all")...).mustRefuse(t, wire.CodeInvalidArgument)
	b.do("GET", "/v1/codeq/admin/queues/a%20b/tasks?state=ready", "", as("all")...).mustRefuse(t, wire.CodeInvalidCommand)
	b.do("GET", listPath+"?state=ready", "", as("few")...).mustRefuse(t, wire.CodeForbidden)
	b.do("GET", listPath+"?state=ready", "", as("worker")...).mustRefuse(t, wire.CodeForbidden)
	if g := b.do("GET", listPath+"?state=ready", "", as("other")...); g.body != `{"tasks":[]}` {
		t.Errorf("another tenant sees %s", g.body)
	}
}

func TestListIsNotToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted, listed := make(chan got, 1), make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		go func() { listed <- b.do("GET", listPath+"?state=ready", "") }()
		synctest.Wait()
		select {
		case g := <-listed:
			t.Errorf("listed without a sync: %d %s", g.status, g.body)
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		if ids, _ := (<-listed).page(t); len(ids) != 1 {
			t.Errorf("listed %v", ids)
		}
		<-posted
	})
}

// FuzzDecodeCursor: a cursor is one that encodeCursor made for this list, or a
// refusal.
func FuzzDecodeCursor(f *testing.F) {
	q := record.QueueKey{Command: "c", Tenant: "t"}
	for _, places := range [][]store.ListPlace{{}, {nil}, {nil, make(store.ListPlace, 25)}, make([]store.ListPlace, 32)} {
		f.Add(encodeCursor(q, store.ListReady, places))
	}
	f.Add("")
	f.Add("AQ==")
	f.Fuzz(func(t *testing.T, text string) {
		places, refusal := decodeCursor(text, q, store.ListReady)
		if refusal != nil {
			if refusal.Code != wire.CodeInvalidArgument {
				t.Errorf("%q: %v", text, refusal)
			}
			return
		}
		if again := encodeCursor(q, store.ListReady, places); again != text {
			t.Errorf("%q was taken for %q", text, again)
		}
		if _, refusal := decodeCursor(text, q, store.ListDone); refusal == nil {
			t.Errorf("%q is a cursor of two lists", text)
		}
	})
}
