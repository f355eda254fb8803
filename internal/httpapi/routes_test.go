package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	unknownID = "00000000-0000-7000-8000-000000000000"
	tasksPath = "/v1/codeq/tasks"
	okBody    = `{"command":"c","payload":1}`
)

// everyRoute is each route, with a target that reaches it.
var everyRoute = []struct {
	method, target, allow string
	public                bool
}{
	{"POST", tasksPath, "POST", false},
	{"POST", tasksPath + "/batch", "POST", false},
	{"POST", tasksPath + "/batch/results", "POST", false},
	{"POST", tasksPath + "/claim", "POST", false},
	{"POST", tasksPath + "/claim/batch", "POST", false},
	{"POST", tasksPath + "/" + unknownID + "/heartbeat", "POST", false},
	{"POST", tasksPath + "/" + unknownID + "/nack", "POST", false},
	{"POST", tasksPath + "/" + unknownID + "/abandon", "POST", false},
	{"POST", tasksPath + "/" + unknownID + "/release", "POST", false},
	{"GET", tasksPath + "/" + unknownID, "GET, HEAD", false},
	{"POST", tasksPath + "/" + unknownID + "/cancel", "POST", false},
	{"GET", tasksPath + "/" + unknownID + "/result", "GET, HEAD, POST", false},
	{"POST", tasksPath + "/" + unknownID + "/result", "GET, HEAD, POST", false},
	{"GET", "/v1/codeq/admin/queues", "GET, HEAD", false},
	{"GET", "/v1/codeq/admin/queues/c/tasks", "GET, HEAD", false},
	{"GET", "/v1/codeq/admin/queues/c", "DELETE, GET, HEAD, PUT", false},
	{"PUT", "/v1/codeq/admin/queues/c", "DELETE, GET, HEAD, PUT", false},
	{"POST", "/v1/codeq/admin/queues/c/tasks/cancel", "POST", false},
	{"POST", "/v1/codeq/admin/queues/c/tasks/run", "POST", false},
	{"POST", "/v1/codeq/admin/queues/c/tasks/move", "POST", false},
	{"POST", "/v1/codeq/admin/tasks/" + unknownID + "/run", "POST", false},
	{"POST", "/v1/codeq/admin/tasks/" + unknownID + "/move", "POST", false},
	{"POST", "/v1/codeq/admin/queues/c/pause", "POST", false},
	{"POST", "/v1/codeq/admin/queues/c/resume", "POST", false},
	{"DELETE", "/v1/codeq/admin/queues/c/dlq", "DELETE", false},
	{"GET", "/v1/codeq/admin/queues/c/dlq/reasons", "GET, HEAD", false},
	{"GET", "/v1/codeq/admin/tasks", "GET, HEAD", false},
	{"POST", "/v1/codeq/admin/tasks/cleanup", "POST", false},
	{"GET", "/v1/codeq/workers/subscriptions", "GET, HEAD, POST", false},
	{"POST", "/v1/codeq/workers/subscriptions", "GET, HEAD, POST", false},
	{"DELETE", "/v1/codeq/workers/subscriptions/s", "DELETE", false},
	{"POST", "/v1/codeq/workers/subscriptions/s/heartbeat", "POST", false},
	{"GET", "/v1/codeq/admin/webhooks", "GET, HEAD", false},
	{"PUT", "/v1/codeq/admin/webhooks/w", "DELETE, GET, HEAD, PUT", false},
	{"POST", "/v1/codeq/admin/webhooks/w/rotate", "POST", false},
	{"POST", "/v1/codeq/admin/webhooks/w/enable", "POST", false},
	{"POST", "/v1/codeq/admin/webhooks/w/test", "POST", false},
	{"POST", "/v1/codeq/admin/tasks/" + unknownID + "/redeliver", "POST", false},
	{"GET", "/v1/codeq/admin/limits", "GET, HEAD", false},
	{"GET", "/v1/codeq/admin/limits/acme", "DELETE, GET, HEAD, PUT", false},
	{"PUT", "/v1/codeq/admin/limits/acme", "DELETE, GET, HEAD, PUT", false},
	{"DELETE", "/v1/codeq/admin/limits/acme", "DELETE, GET, HEAD, PUT", false},
	{"GET", "/v1/codeq/admin/sessions", "GET, HEAD", false},
	{"GET", clusterPath, "GET, HEAD", false},
	{"POST", clusterPath + "/tokens", "POST", false},
	{"POST", clusterPath + "/transfer", "POST", false},
	{"DELETE", clusterPath + "/nodes/a", "DELETE", false},
	{"GET", "/v1/codeq/session", "GET", true},
	{"GET", "/healthz", "GET, HEAD", true},
	{"GET", "/readyz", "GET, HEAD", true},
	{"GET", "/version", "GET, HEAD", true},
	{"GET", "/metrics", "GET, HEAD", true},
}

func TestRefusalsByRoute(t *testing.T) {
	b := newBench(t, setup{})
	for _, c := range []struct {
		name, method, target, body string
		want                       wire.Code
	}{
		{"no body", "POST", tasksPath, "", wire.CodeInvalidBody},
		{"blank body", "POST", tasksPath, " \n", wire.CodeInvalidBody},
		{"not JSON", "POST", tasksPath, "command=c", wire.CodeInvalidBody},
		{"cut JSON", "POST", tasksPath, `{"command":"c"`, wire.CodeInvalidBody},
		{"two values", "POST", tasksPath, okBody + okBody, wire.CodeInvalidBody},
		{"an array", "POST", tasksPath, "[" + okBody + "]", wire.CodeInvalidBody},
		{"a field twice", "POST", tasksPath, `{"command":"c","payload":1,"payload":1}`, wire.CodeInvalidBody},
		{"invalid UTF-8", "POST", tasksPath, "{\"command\":\"c\",\"payload\":\"\xff\"}", wire.CodeInvalidBody},
		{"no payload", "POST", tasksPath, `{"command":"c"}`, wire.CodeInvalidBody},
		{"no command", "POST", tasksPath, `{"payload":1}`, wire.CodeInvalidCommand},
		{"bad command", "POST", tasksPath, `{"command":"a/b","payload":1}`, wire.CodeInvalidCommand},
		{"priority 10", "POST", tasksPath, `{"command":"c","payload":1,"priority":10}`, wire.CodeInvalidPriority},
		{"two times", "POST", tasksPath, `{"command":"c","payload":1,"delaySeconds":1,"runAt":"2030-01-01T00:00:00Z"}`, wire.CodeInvalidTime},
		{"a webhook", "POST", tasksPath, `{"command":"c","payload":1,"webhook":"ftp://x"}`, wire.CodeInvalidWebhook},
		{"no attempts", "POST", tasksPath, `{"command":"c","payload":1,"maxAttempts":0}`, wire.CodeInvalidArgument},
		{"large payload", "POST", tasksPath, `{"command":"c","payload":"` + strings.Repeat("x", wire.MaxPayloadBytes) + `"}`, wire.CodeTooLarge},
		{"large body", "POST", tasksPath, strings.Repeat(" ", wire.MaxHTTPBodyBytes+1), wire.CodeTooLarge},

		{"unknown task", "GET", tasksPath + "/" + unknownID, "", wire.CodeTaskNotFound},
		{"upper case id", "GET", tasksPath + "/" + strings.ToUpper("a"+unknownID[1:]), "", wire.CodeTaskNotFound},
		{"id in braces", "GET", tasksPath + "/%7B" + unknownID + "%7D", "", wire.CodeTaskNotFound},
		{"id without hyphens", "GET", tasksPath + "/" + strings.ReplaceAll(unknownID, "-", ""), "", wire.CodeTaskNotFound},
		{"slash in id", "GET", tasksPath + "/a%2Fb", "", wire.CodeTaskNotFound},
		{"NUL in id", "GET", tasksPath + "/%00", "", wire.CodeTaskNotFound},
		{"dots as id", "GET", tasksPath + "/%2e%2e", "", wire.CodeTaskNotFound},
		{"unknown task to cancel", "POST", tasksPath + "/" + unknownID + "/cancel", "", wire.CodeTaskNotFound},
		{"no id to cancel", "POST", tasksPath + "/x/cancel", "{}", wire.CodeTaskNotFound},
		{"cancel with an array", "POST", tasksPath + "/" + unknownID + "/cancel", "[]", wire.CodeInvalidBody},
		{"unknown result", "GET", tasksPath + "/" + unknownID + "/result", "", wire.CodeTaskNotFound},
		{"bad id of result", "GET", tasksPath + "/x/result?waitSeconds=1", "", wire.CodeTaskNotFound},
		{"wait of letters", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=abc", "", wire.CodeInvalidArgument},
		{"wait of nothing", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=", "", wire.CodeInvalidArgument},
		{"wait too long", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=61", "", wire.CodeInvalidArgument},
		{"negative wait", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=-1", "", wire.CodeInvalidArgument},
		{"signed wait", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=%2B1", "", wire.CodeInvalidArgument},
		{"two waits", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=1&waitSeconds=1", "", wire.CodeInvalidArgument},
		{"bad query", "GET", tasksPath + "/" + unknownID + "/result?waitSeconds=%zz", "", wire.CodeInvalidArgument},

		{"no such verb", "POST", tasksPath + "/" + unknownID + "/finish", "{}", wire.CodeNotFound},
		{"root", "GET", "/", "", wire.CodeNotFound},
		{"base", "GET", "/v1/codeq", "", wire.CodeNotFound},
		{"other version", "POST", "/v2/codeq/tasks", okBody, wire.CodeNotFound},
		{"other case", "POST", "/v1/codeq/Tasks", okBody, wire.CodeNotFound},
		{"slash at the end", "POST", tasksPath + "/", okBody, wire.CodeNotFound},
		{"two slashes", "POST", "/v1//codeq/tasks", okBody, wire.CodeNotFound},
		{"slashes in front", "POST", "//v1/codeq/tasks", okBody, wire.CodeNotFound},
		{"a dot", "GET", "/./healthz", "", wire.CodeNotFound},
		{"two dots", "GET", "/v1/../healthz", "", wire.CodeNotFound},
		{"below a leaf", "GET", "/healthz/x", "", wire.CodeNotFound},
		{"no id", "GET", tasksPath + "//result", "", wire.CodeNotFound},
		{"below a task", "GET", tasksPath + "/" + unknownID + "/result/x", "", wire.CodeNotFound},
		{"a star", "OPTIONS", "*", "", wire.CodeNotFound},
		{"a tunnel", "CONNECT", "example.com:80", "", wire.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.do(c.method, c.target, c.body).mustRefuse(t, c.want)
		})
	}
	b.post(okBody)
}

func TestOtherMethodsAreRefusedWithThoseAllowed(t *testing.T) {
	b := newBench(t, setup{})
	for _, route := range everyRoute {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if method == route.method || strings.Contains(route.allow, method) {
				continue
			}
			g := b.do(method, route.target, "")
			g.mustRefuse(t, wire.CodeMethodNotAllowed)
			if g.header.Get("Allow") != route.allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, route.target, g.header.Get("Allow"), route.allow)
			}
		}
	}
}

func TestHealthAndVersion(t *testing.T) {
	b := newBench(t, setup{})
	for target, want := range map[string]string{
		"/healthz": `{"status":"ok"}`,
		"/readyz":  `{"status":"ready","durability":"fsync","shards":4,"diskGuard":"ok","clockDifferenceMs":`,
		"/version": `{"version":"1.2.3","go":"go1.`,
	} {
		g := b.do("GET", target, "")
		if g.status != http.StatusOK || !strings.HasPrefix(g.body, want) || !json.Valid([]byte(g.body)) {
			t.Errorf("%s: %d %s", target, g.status, g.body)
		}
		g.mustBeJSON(t)
	}
	b.ready.Store(false)
	b.do("GET", "/readyz", "").mustRefuse(t, wire.CodeDraining)
	if g := b.do("GET", "/healthz", ""); g.status != http.StatusOK {
		t.Errorf("a draining server is not alive: %d", g.status)
	}
}

func TestStartingServerIsAliveAndNotReady(t *testing.T) {
	guard, err := NewGuard(&GuardOptions{PublicHosts: testHosts})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, api: NewStarting(zerolog.Nop(), "1.2.3", guard, nil).(*api)}
	for _, target := range []string{"/healthz", "/version"} {
		if g := b.do("GET", target, ""); g.status != http.StatusOK {
			t.Errorf("%s: %d %s", target, g.status, g.body)
		}
	}
	for _, target := range []string{"/readyz", "/v1/codeq/session", "/v1/codeq/admin/queues", "/nothing", "//"} {
		b.do("GET", target, "").mustRefuse(t, wire.CodeDraining)
	}
	b.do("POST", tasksPath, okBody).mustRefuse(t, wire.CodeDraining)
}

func TestQueuesAreListedByCommand(t *testing.T) {
	b := newBench(t, setup{})
	if g := b.do("GET", "/v1/codeq/admin/queues", ""); g.body != `{"queues":[]}` {
		t.Errorf("an empty server lists %s", g.body)
	}
	b.post(`{"command":"b","payload":1}`)
	b.post(`{"command":"a","payload":1}`)
	b.post(`{"command":"a","payload":1,"delaySeconds":60}`)
	g := b.do("GET", "/v1/codeq/admin/queues", "")
	queues, err := wire.ParseQueueList([]byte(g.body))
	if err != nil || len(queues) != 2 {
		t.Fatalf("%d %s %v", g.status, g.body, err)
	}
	a := queues[0]
	if a.Command != "a" || a.Ready != 1 || a.Delayed != 1 || a.OldestReadyAtMs == 0 || queues[1].Ready != 1 {
		t.Errorf("%s", g.body)
	}
}

func TestRequestIDIsEchoedIfItCanStandInALogLine(t *testing.T) {
	b := newBench(t, setup{})
	for _, id := range []string{"x", "a-b_c/1:2~!", strings.Repeat("i", 128)} {
		if g := b.do("GET", "/healthz", "", "X-Request-Id", id); g.header.Get("X-Request-Id") != id {
			t.Errorf("sent %q, got %q", id, g.header.Get("X-Request-Id"))
		}
	}
	seen := make(map[string]bool)
	for _, id := range []string{"", "a b", "a\tb", "é", "\x7f", strings.Repeat("i", 129)} {
		made := b.do("GET", "/healthz", "", "X-Request-Id", id).header.Get("X-Request-Id")
		if made == id || made == "" || seen[made] {
			t.Errorf("sent %q, got %q", id, made)
		}
		seen[made] = true
	}
}

// keys knows principals by credential.
type keys map[string]*auth.Principal

// Authenticate implements auth.Authenticator.
func (k keys) Authenticate(_ context.Context, credential string) (*auth.Principal, *wire.Error) {
	if who := k[credential]; who != nil {
		return who, nil
	}
	return nil, wire.Refuse(wire.CodeUnauthenticated, "a bearer token is needed")
}

func TestEveryRouteButHealthNeedsACredential(t *testing.T) {
	b := newBench(t, setup{auth: keys{"good": {Tenant: "t", Subject: "s"}}})
	for _, route := range everyRoute {
		for _, credential := range []string{"", "Bearer", "Bearer bad", "Basic good", "good", "Bearer  "} {
			if route.public {
				continue
			}
			g := b.do(route.method, route.target, okBody, "Authorization", credential)
			g.mustRefuse(t, wire.CodeUnauthenticated)
			if g.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: WWW-Authenticate is %q", route.target, g.header.Get("WWW-Authenticate"))
			}
		}
	}
	b.post(okBody, "Authorization", "Bearer good")
	b.post(okBody, "Authorization", "bearer good")
}

func TestPrincipalIsHeldToItsScopesAndCommands(t *testing.T) {
	b := newBench(t, setup{auth: keys{
		"reader":   {Tenant: "t", Subject: "s", Scopes: []string{}},
		"producer": {Tenant: "t", Subject: "s", Scopes: auth.ExpandScopes([]string{"producer"}), Commands: []string{"c"}},
		"admin":    {Tenant: "t", Subject: "s", Scopes: auth.ExpandScopes([]string{"admin"})},
	}})
	b.do("POST", tasksPath, okBody, "Authorization", "Bearer reader").mustRefuse(t, wire.CodeForbidden)
	b.do("POST", tasksPath, okBody, "Authorization", "Bearer admin").mustRefuse(t, wire.CodeForbidden)
	b.do("POST", tasksPath, `{"command":"d","payload":1}`, "Authorization", "Bearer producer").mustRefuse(t, wire.CodeForbidden)
	b.do("GET", "/v1/codeq/admin/queues", "", "Authorization", "Bearer producer").mustRefuse(t, wire.CodeForbidden)
	task := b.post(okBody, "Authorization", "Bearer producer")
	for target, credential := range map[string]string{
		"/v1/codeq/admin/queues":           "admin",
		tasksPath + "/" + task.ID.String(): "reader",
	} {
		if g := b.do("GET", target, "", "Authorization", "Bearer "+credential); g.status != http.StatusOK {
			t.Errorf("%s with %s: %d %s", target, credential, g.status, g.body)
		}
	}
}

func TestTenantsDoNotSeeOneAnother(t *testing.T) {
	b := newBench(t, setup{auth: keys{"one": {Tenant: "one", Subject: "s"}, "two": {Tenant: "two", Subject: "s"}}})
	keyed := `{"command":"c","payload":1,"idempotencyKey":"k"}`
	mine := b.post(keyed, "Authorization", "Bearer one")
	if mine.TenantID != "one" {
		t.Errorf("the task is of tenant %q", mine.TenantID)
	}
	for _, path := range []string{"", "/result", "/result?waitSeconds=5"} {
		b.do("GET", tasksPath+"/"+mine.ID.String()+path, "", "Authorization", "Bearer two").mustRefuse(t, wire.CodeTaskNotFound)
	}
	if g := b.do("GET", "/v1/codeq/admin/queues", "", "Authorization", "Bearer two"); g.body != `{"queues":[]}` {
		t.Errorf("tenant two sees %s", g.body)
	}
	if other := b.post(keyed, "Authorization", "Bearer two"); other.ID == mine.ID {
		t.Error("the key of one tenant gave its task to another")
	}
}

func TestPanicIsAnsweredLoggedAndForgotten(t *testing.T) {
	b := newBench(t, setup{})
	boom := b.api.newRoute("/boom")
	b.api.mux.HandleFunc("/boom", func(w http.ResponseWriter, r *http.Request) {
		b.api.serve(w, r, boom, func(*call) answer { panic(errors.New("the reason")) })
	})
	g := b.send(httptest.NewRequest("GET", "/boom", nil), "X-Request-Id", "panicking")
	g.mustRefuse(t, wire.CodeInternal)
	if strings.Contains(g.body, "reason") {
		t.Errorf("the answer tells internals: %s", g.body)
	}
	if log := b.log.String(); !strings.Contains(log, "the reason") || !strings.Contains(log, `"requestId":"panicking"`) {
		t.Errorf("the log does not tell: %s", log)
	}
	b.post(okBody)
}

func TestLogHasOneLineForARequestAndNoSecrets(t *testing.T) {
	b := newBench(t, setup{})
	b.post(`{"command":"c","payload":"SECRET","idempotencyKey":"SECRET"}`, "Authorization", "Bearer SECRET", "X-Request-Id", "one")
	b.do("POST", tasksPath, `{"command":"SECRET/","payload":1}`)
	b.do("GET", "/SECRET?SECRET=1", "")
	log := b.log.String()
	if strings.Contains(log, "SECRET") || strings.Count(log, "\n") != 3 {
		t.Errorf("log: %s", log)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(log[:strings.Index(log, "\n")]), &line); err != nil {
		t.Fatal(err)
	}
	if line["requestId"] != "one" || line["method"] != "POST" || line["route"] != tasksPath ||
		line["status"] != 202.0 || line["level"] != "debug" || line["durationMs"] == nil {
		t.Errorf("line: %v", line)
	}
}
