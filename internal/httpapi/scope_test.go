package httpapi

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

// securityPage is the document with the table of scopes.
const securityPage = "../../docs/security.md"

func TestTheDocumentHasTheScopeOfEachRoute(t *testing.T) {
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for _, res := range (&api{}).resources() {
		for _, v := range res.verbs {
			scope := "any"
			switch {
			case res.pattern == sessionPath:
				scope = "by frame"
			case res.pattern == eventsPath:
				scope = "`codeq:read` or `read`"
			case v.public:
				scope = "no credential"
			case v.scope != "":
				scope = "`" + v.scope + "`"
			}
			want = append(want, fmt.Sprintf("| `%s %s` | %s |", v.method, res.pattern, scope))
		}
	}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `") && strings.Contains(line, " /") {
			have = append(have, line)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("%s must have these lines in its table of routes:\n%s", securityPage, strings.Join(want, "\n"))
	}
}

// Every route refuses a credential that has all scopes but its own.
func TestEveryRouteNeedsItsScope(t *testing.T) {
	who := keys{}
	for _, missing := range auth.Scopes() {
		scopes := slices.DeleteFunc(auth.Scopes(), func(s string) bool {
			implied := &auth.Principal{Scopes: []string{s}}
			return implied.Has(missing)
		})
		who[missing] = &auth.Principal{Tenant: "t", Subject: "s", Scopes: scopes}
	}
	b := newBench(t, setup{auth: who})
	walked := 0
	for _, res := range (&api{}).resources() {
		for _, v := range res.verbs {
			if v.scope == "" {
				continue
			}
			path := strings.NewReplacer("{id}", unknownID, "{command}", "c", "{name}", "w").Replace(res.pattern)
			g := b.do(v.method, path, "", "Authorization", "Bearer "+v.scope)
			if g.mustRefuse(t, wire.CodeForbidden); !strings.Contains(g.body, "lacks the scope "+v.scope) {
				t.Errorf("%s %s without %s: %s", v.method, path, v.scope, g.body)
			}
			walked++
		}
	}
	if walked < 30 {
		t.Errorf("the walk has met %d routes", walked)
	}
}

// A credential for some commands sees and changes no queue and no task of others.
func TestACredentialForSomeCommandsMeetsNoOther(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"all": {Tenant: "t", Subject: "s"}, "build": {Tenant: "t", Subject: "s", Commands: []string{"build.*"}},
	}})
	body := func(command string) string { return `{"command":"` + command + `","payload":1}` }
	mine, theirs := b.post(body("build.x"), "Authorization", "Bearer all"), b.post(body("mail"), "Authorization", "Bearer all")
	b.post(body("build.y"), "Authorization", "Bearer build")
	ask := func(method, target, body string) got {
		return b.do(method, target, body, "Authorization", "Bearer build")
	}
	ask("POST", tasksPath, body("buildx")).mustRefuse(t, wire.CodeForbidden)
	ask("POST", tasksPath+"/claim", `{"commands":["mail"]}`).mustRefuse(t, wire.CodeForbidden)
	ask("POST", tasksPath+"/claim", ``).mustRefuse(t, wire.CodeForbidden)
	for _, end := range []string{"", "/result", "/result?waitSeconds=1"} {
		ask("GET", tasksPath+"/"+theirs.ID.String()+end, "").mustRefuse(t, wire.CodeForbidden)
	}
	ask("POST", tasksPath+"/"+theirs.ID.String()+"/cancel", "").mustRefuse(t, wire.CodeForbidden)
	ask("PUT", base+"/admin/queues/mail", `{"maxAttempts":3}`).mustRefuse(t, wire.CodeForbidden)
	for target, status := range map[string]int{
		tasksPath + "/" + mine.ID.String(): http.StatusOK, base + "/admin/queues/build.x": http.StatusOK, base + "/admin/queues": http.StatusOK,
	} {
		if g := ask("GET", target, ""); g.status != status || strings.Contains(g.body, "mail") {
			t.Errorf("%s: %d %s", target, g.status, g.body)
		}
	}
	if g := ask("POST", tasksPath+"/claim", `{"commands":["build.x"]}`); g.status != http.StatusOK {
		t.Errorf("claim: %d %s", g.status, g.body)
	}
}

func TestAnAdminOfAllNamesTheTenant(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"all": {Tenant: "ops", Subject: "s", Scopes: []string{auth.ScopeAdminAll}}, "one": {Tenant: "one", Subject: "s"},
		"two": {Tenant: "two", Subject: "s", Scopes: []string{auth.ScopeAdmin}},
	}})
	b.post(okBody, "Authorization", "Bearer one")
	queues := func(who string, header ...string) got {
		return b.do("GET", base+"/admin/queues", "", append(header, "Authorization", "Bearer "+who)...)
	}
	if g := queues("all", auth.HeaderTenant, "one"); !strings.Contains(g.body, `"ready":1`) {
		t.Errorf("in the tenant it names: %d %s", g.status, g.body)
	}
	if g := queues("all"); g.body != `{"queues":[]}` {
		t.Errorf("in its own: %d %s", g.status, g.body)
	}
	queues("two", auth.HeaderTenant, "one").mustRefuse(t, wire.CodeForbidden)
	queues("all", auth.HeaderTenant, " ").mustRefuse(t, wire.CodeInvalidArgument)
	b.do("PUT", base+"/admin/queues/c", `{"maxAttempts":3}`, "Authorization", "Bearer all", auth.HeaderTenant, "one")
	if g := b.do("GET", base+"/admin/queues/c", "", "Authorization", "Bearer one"); !strings.Contains(g.body, `"maxAttempts":3`) {
		t.Errorf("after the change: %d %s", g.status, g.body)
	}
}
