package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

const sessionsPath = "/v1/codeq/admin/sessions"

// manySessions is n sessions in the order of their ids.
func manySessions(n int) []wire.SessionFigures {
	list := make([]wire.SessionFigures, n)
	for i := range list {
		list[i] = wire.SessionFigures{
			ID:      wire.SessionID(wire.NewUUIDv7(1_767_225_600_000, [10]byte{2: byte(i >> 8), 3: byte(i)})),
			Subject: "bob", State: wire.SessionLive, ConnectedAtMs: 1, LastSeenAtMs: 2,
		}
	}
	return list
}

// sessionIDs reads one page.
func sessionIDs(t *testing.T, g got) (ids []string, cursor string) {
	t.Helper()
	var page struct {
		Sessions []struct{ SessionID string }
		Cursor   string
	}
	if err := json.Unmarshal([]byte(g.body), &page); err != nil || g.status != http.StatusOK {
		t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	g.mustBeJSON(t)
	for _, s := range page.Sessions {
		ids = append(ids, s.SessionID)
	}
	return ids, page.Cursor
}

func TestSessionsAreListedInPages(t *testing.T) {
	b := newBench(t, setup{})
	for _, n := range []int{0, 1, sessionsPage, sessionsPage + 1, 2*sessionsPage + 7} {
		list := manySessions(n)
		b.sessions.open = map[string][]wire.SessionFigures{wire.DefaultTenant: list}
		var want, got []string
		for i := range list {
			want = append(want, list[i].ID.String())
		}
		pages := 0
		for target := sessionsPath; ; pages++ {
			ids, cursor := sessionIDs(t, b.do("GET", target, ""))
			if len(ids) > sessionsPage {
				t.Errorf("a page of %d", len(ids))
			}
			got = append(got, ids...)
			if cursor == "" {
				break
			}
			target = sessionsPath + "?cursor=" + cursor
		}
		if !slices.Equal(got, want) || pages != max(0, n-1)/sessionsPage {
			t.Errorf("%d sessions gave %d on %d further pages", n, len(got), pages)
		}
	}
}

func TestSessionIsListedAsTheProtocolSays(t *testing.T) {
	b := newBench(t, setup{})
	if g := b.do("GET", sessionsPath, ""); g.body != `{"sessions":[]}` {
		t.Errorf("an empty server lists %s", g.body)
	}
	one := manySessions(1)
	one[0].WorkerID, one[0].Commands, one[0].Window, one[0].Held = "ada", []string{"a", "b"}, 8, 3
	b.sessions.open = map[string][]wire.SessionFigures{wire.DefaultTenant: one}
	want := `{"sessions":[{"sessionId":"` + one[0].ID.String() + `","workerId":"ada","subject":"bob","commands":["a","b"],` +
		`"window":8,"held":3,"state":"live","connectedAt":"1970-01-01T00:00:00.001Z","lastSeenAt":"1970-01-01T00:00:00.002Z"}]}`
	if g := b.do("GET", sessionsPath, ""); g.body != want {
		t.Errorf("listed %s\nwant %s", g.body, want)
	}
}

func TestSessionsOfOneTenantAndForAdminsOnly(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"one": {Tenant: "one", Subject: "s"}, "two": {Tenant: "two", Subject: "s"},
		"worker": {Tenant: "one", Subject: "s", Scopes: append(auth.WorkerScopes(), auth.ScopeRead, auth.ScopeProduce)},
	}})
	b.sessions.open = map[string][]wire.SessionFigures{"one": manySessions(2)}
	if ids, _ := sessionIDs(t, b.do("GET", sessionsPath, "", "Authorization", "Bearer one")); len(ids) != 2 {
		t.Errorf("tenant one sees %v", ids)
	}
	if ids, _ := sessionIDs(t, b.do("GET", sessionsPath, "", "Authorization", "Bearer two")); len(ids) != 0 {
		t.Errorf("tenant two sees %v", ids)
	}
	b.do("GET", sessionsPath, "", "Authorization", "Bearer worker").mustRefuse(t, wire.CodeForbidden)
}

func TestBadCursorsOfSessionsAreRefused(t *testing.T) {
	b := newBench(t, setup{})
	good := manySessions(1)[0].ID.String()
	for _, query := range []string{
		"cursor=x", "cursor=" + strings.ToUpper(good), "cursor=" + good + "&cursor=" + good, "cursor=%zz",
	} {
		b.do("GET", sessionsPath+"?"+query, "").mustRefuse(t, wire.CodeInvalidArgument)
	}
	if ids, _ := sessionIDs(t, b.do("GET", sessionsPath+"?cursor="+good, "")); len(ids) != 0 {
		t.Errorf("listed %v", ids)
	}
}
