package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"codeq/internal/auth"
	"codeq/wire"
)

const findPath = "/v1/codeq/admin/tasks"

// find reads all pages of a search.
func (b *bench) find(t *testing.T, query string, headers ...string) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		page, next := b.do("GET", findPath+"?"+query+cursor, "", headers...).page(t)
		if ids = append(ids, page...); next == "" {
			slices.Sort(ids)
			return ids
		}
		cursor = "&cursor=" + next
	}
}

func idsOf(tasks ...*wire.Task) (ids []string) {
	for _, t := range tasks {
		ids = append(ids, t.ID.String())
	}
	slices.Sort(ids)
	return ids
}

func TestTasksAreFoundOverAllQueues(t *testing.T) {
	b := newBench(t, setup{})
	pdf := b.post(`{"command":"billing.pdf","payload":{"a":"needle"},"labels":{"customer":"acme","run":"1"}}`)
	mail := b.post(`{"command":"billing.mail","payload":1,"labels":{"customer":"acme"},"delaySeconds":60}`)
	post := b.post(`{"command":"post","payload":2,"labels":{"customer":"acme corp & co/\u00e9"},"maxAttempts":1}`)
	claim := `{"commands":["post"],"workerId":"` + benchWorkerID + `"}`
	b.do("POST", tasksPath+"/claim", claim)
	b.do("POST", tasksPath+"/"+post.ID.String()+"/nack", `{"workerId":"`+benchWorkerID+`","reason":"read timeout of 30s"}`)
	busy := b.post(`{"command":"post","payload":3,"labels":{"customer":"acme"}}`)
	b.do("POST", tasksPath+"/claim", claim)
	for query, want := range map[string][]string{
		"":                                     idsOf(pdf, mail, post, busy),
		"id=" + mail.ID.String():               idsOf(mail),
		"id=" + unknownID:                      nil,
		"label=customer%3Dacme":                idsOf(pdf, mail, busy),
		"label=run%3D1":                        idsOf(pdf),
		"label=run%3D1&label=customer%3Dacme":  idsOf(pdf),
		"label=run%3D1&label=customer%3Dother": nil,
		"label=" + url.QueryEscape("customer=acme corp & co/é"): idsOf(post),
		"label=customer%3Dacme&state=inProgress":                idsOf(busy),
		"label=customer%3Dacme&state=ready":                     idsOf(pdf),
		"label=customer%3Dacme&command=billing.*":               idsOf(pdf, mail),
		"label=customer%3Dacme&worker=" + benchWorkerID:         idsOf(busy),
		"command=billing.*":                                     idsOf(pdf, mail),
		"command=post":                                          idsOf(post, busy),
		"state=dlq":                                             idsOf(post),
		"state=delayed":                                         idsOf(mail),
		"error~=timeout":                                        idsOf(post),
		"payload~=needle":                                       idsOf(pdf),
		"worker=" + benchWorkerID:                               idsOf(post, busy),
		"attempts>=1":                                           idsOf(post),
		"olderThan=1h":                                          nil,
		"olderThan=0s&command=post":                             idsOf(post, busy),
		"id=" + mail.ID.String() + "&state=ready":               nil,
	} {
		if got := b.find(t, query); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", query, got, want)
		}
		if strings.HasPrefix(query, "id=") {
			continue
		}
		if got := b.find(t, query+"&limit=1"); !slices.Equal(got, want) {
			t.Errorf("%s finds %v one by one, want %v", query, got, want)
		}
	}
	if g := b.do("GET", findPath+"?payload~=needle", ""); !strings.Contains(g.body, `"scanned":4`) || !strings.Contains(g.body, `"labels":{"customer":"acme","run":"1"}`) {
		t.Error(g.body)
	}
}

func TestASearchIsHeldToItsTenantScopesAndCommands(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"one":  {Tenant: "one", Subject: "s"},
		"two":  {Tenant: "two", Subject: "s"},
		"few":  {Tenant: "one", Subject: "s", Commands: []string{"d"}},
		"view": {Tenant: "one", Subject: "s", Scopes: []string{auth.ScopeView}},
		"work": {Tenant: "one", Subject: "s", Scopes: auth.WorkerScopes()},
	}})
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	mine := b.post(`{"command":"c","payload":"secret","labels":{"k":"v"}}`, as("one")...)
	b.post(`{"command":"c","payload":1,"labels":{"k":"v"}}`, as("two")...)
	for _, query := range []string{"label=k%3Dv", "command=c", "id=" + mine.ID.String()} {
		if got := b.find(t, query, as("one")...); !slices.Equal(got, idsOf(mine)) {
			t.Errorf("%s finds %v", query, got)
		}
		if got := b.find(t, query, as("few")...); len(got) > 0 {
			t.Errorf("%s finds %v of a command that is not allowed", query, got)
		}
	}
	if got := b.find(t, "id="+mine.ID.String(), as("two")...); len(got) > 0 {
		t.Errorf("the id of another tenant finds %v", got)
	}
	if g := b.do("GET", findPath+"?label=k%3Dv", "", as("view")...); strings.Contains(g.body, "secret") || !strings.Contains(g.body, mine.ID.String()) {
		t.Error(g.body)
	}
	for _, query := range []string{"payload~=s", "error~=s"} {
		b.do("GET", findPath+"?"+query, "", as("view")...).mustRefuse(t, wire.CodeForbidden)
	}
	b.do("GET", findPath, "", as("work")...).mustRefuse(t, wire.CodeForbidden)
}

func TestBadSearchesAreRefused(t *testing.T) {
	b := newBench(t, setup{})
	for range 2 {
		b.post(`{"command":"c","payload":1,"labels":{"k":"v"}}`)
	}
	_, cursor := b.do("GET", findPath+"?label=k%3Dv&limit=1", "").page(t)
	for _, query := range []string{
		"label=k", "label=k%3D", "label=", "state=dead", "state=ready&state=ready", "attempts>=x", "attempts>=", "olderThan=x", "command=a/b", "limit=0", "limit=501",
		"error=x", "cursor=x", "cursor=" + cursor, "label=k%3Dw&cursor=" + cursor, "label=k%3Dv&state=ready&cursor=" + cursor,
	} {
		if g := b.do("GET", findPath+"?"+query, ""); g.status != 400 {
			t.Errorf("%s: %d %s", query, g.status, g.body)
		}
	}
}

// A search ends at its bounds, and its cursor leads through all tasks.
func TestASearchLooksAtABoundedNumberOfTasksAtATime(t *testing.T) {
	b := newBench(t, setup{})
	var items []string
	for n := range 1000 {
		items = append(items, fmt.Sprintf(`{"command":"c%d","payload":%d}`, n%7, n))
	}
	for range (findMostRead + 2000) / len(items) {
		if g := b.do("POST", tasksPath+"/batch", `{"tasks":[`+strings.Join(items, ",")+`]}`); g.status != 200 {
			t.Fatal(g.body)
		}
	}
	scanned, pages := 0, 0
	for cursor := ""; ; pages++ {
		g := b.do("GET", findPath+"?error~=nothing"+cursor, "")
		_, next := g.page(t)
		_, text, _ := strings.Cut(g.body, `"scanned":`)
		n, err := strconv.Atoi(text[:strings.IndexAny(text, ",}")])
		if scanned += n; err != nil || n > findMostRead {
			t.Fatalf("%d are looked at, %v", n, err)
		}
		if cursor = "&cursor=" + next; next == "" {
			break
		}
	}
	if scanned != findMostRead+2000 || pages < 1 {
		t.Errorf("%d are looked at on %d pages", scanned, pages+1)
	}
}

func TestSearchesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f finds
		ctx := t.Context()
		if !f.begin(ctx, "a") || f.begin(ctx, "a") || !f.begin(ctx, "b") || f.begin(ctx, "c") {
			t.Fatal("not one a tenant, and two at once")
		}
		came := make(chan bool)
		go func() { came <- f.begin(ctx, "c") }()
		synctest.Wait()
		f.end("a")
		if !<-came {
			t.Error("a search does not get the turn of one that has ended")
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if f.begin(gone, "a") {
			t.Error("who is gone gets a turn")
		}
	})
}

func FuzzFindCursor(f *testing.F) {
	f.Add("AQE", "c", "a=b")
	f.Fuzz(func(t *testing.T, cursor, command, label string) {
		s := &find{TaskSearch: &wire.TaskSearch{Command: command}, tenant: "t"}
		s.Labels = wire.Labels(label)
		if refusal := s.goOn(cursor); refusal == nil && (len(s.lists) > 0 || s.after != nil) {
			t.Errorf("%q leads to %+v", cursor, s)
		}
	})
}
