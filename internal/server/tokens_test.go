package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"codeq/client"
	"codeq/internal/auth"
	"codeq/internal/callback"
	"codeq/internal/httpapi"
	"codeq/wire"
)

// tokenFile is a file of tokens in the making.
type tokenFile struct {
	t    *testing.T
	path string
}

func newTokenFile(t *testing.T) *tokenFile {
	return &tokenFile{t, filepath.Join(t.TempDir(), "tokens.yaml")}
}

// add makes a token of the subject "s", which every tenant has.
func (f *tokenFile) add(tenant string, scopes, commands []string) string {
	f.t.Helper()
	token, err := auth.NewToken(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	e := &auth.Entry{Name: token[3:9], SHA256: auth.HashToken(token), Tenant: tenant, Subject: "s", Scopes: scopes, Commands: commands}
	if err := auth.AppendToFile(f.path, e, func() error { return nil }); err != nil {
		f.t.Fatal(err)
	}
	return token
}

// addAll adds a token for everything in its tenant.
func (f *tokenFile) addAll(tenant string) string {
	ofTenant := slices.DeleteFunc(auth.Scopes(), func(s string) bool { return s == auth.ScopeAdminAll })
	return f.add(tenant, ofTenant, []string{wire.AllCommands})
}

// keep replaces the file by the entries of some tokens.
func (f *tokenFile) keep(tokens ...string) {
	f.t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	entries, err := auth.ParseEntries(f.path, text)
	if err != nil {
		f.t.Fatal(err)
	}
	kept := []byte("# kept\n")
	for i := range entries {
		if slices.ContainsFunc(tokens, func(token string) bool { return auth.HashToken(token) == entries[i].SHA256 }) {
			kept = entries[i].AppendYAML(kept)
		}
	}
	next := f.path + ".next"
	if err := os.WriteFile(next, kept, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, f.path); err != nil {
		f.t.Fatal(err)
	}
}

// openGuarded is a server that knows the tokens of the file.
func openGuarded(f *tokenFile, log io.Writer) *site {
	f.t.Helper()
	tokens, err := auth.OpenTokens(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := Open(Options{
		DataDir: f.t.TempDir(), Listen: "127.0.0.1:0", Tokens: tokens, Version: "test",
		Log: zerolog.New(log).Level(zerolog.DebugLevel),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return newSite(f.t, s)
}

// heldTask is a task of the owner in the hands of a worker of the owner.
func (x *site) heldTask() (*socket, *wire.TaskFrame) {
	x.t.Helper()
	x.post(`{"command":"held","payload":"the owner's","idempotencyKey":"k"}`)
	if a := x.ask("PUT", "/v1/codeq/admin/webhooks/owners", `{"url":"https://owner.example/"}`); a.status != http.StatusOK {
		x.t.Fatalf("a webhook: %d %s", a.status, a.body)
	}
	if a := x.ask("POST", "/v1/codeq/workers/subscriptions", `{"callbackUrl":"https://owner.example/"}`); a.status != http.StatusOK {
		x.t.Fatalf("a subscription: %d %s", a.status, a.body)
	}
	k := x.dial()
	k.say(`{"type":"subscribe","ref":1,"commands":["held"],"window":1}`)
	return k, hear[*wire.TaskFrame](k)
}

const unknownID = "01890a5d-ac96-774b-bcce-b302099a8057"

// wholeRoutes are the routes that name no task: what a stranger may see there.
var wholeRoutes = map[string]func(stranger *site){
	"POST /v1/codeq/tasks": func(x *site) {
		a := x.ask("POST", "/v1/codeq/tasks", `{"command":"held","payload":1,"idempotencyKey":"k"}`)
		if a.status != http.StatusAccepted || a.header.Get("Idempotent-Replayed") != "" || strings.Contains(a.body, "the owner's") {
			x.t.Errorf("the key of the owner gives the stranger %d %v %s", a.status, a.header, a.body)
		}
	},
	"POST /v1/codeq/tasks/batch": func(x *site) {
		a := x.ask("POST", "/v1/codeq/tasks/batch", `{"tasks":[{"command":"held","payload":1,"idempotencyKey":"k"}]}`)
		if a.status != http.StatusOK || !strings.Contains(a.body, `"task":`) || strings.Contains(a.body, "the owner's") {
			x.t.Errorf("the key of the owner gives the stranger %d %v %s", a.status, a.header, a.body)
		}
	},
	"POST /v1/codeq/tasks/claim": func(x *site) {
		// The stranger has tasks of its own by now, under the same command.
		a := x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["ready-for-owner","held"]}`)
		if a.status != http.StatusOK || !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger claims %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/tasks/claim/batch": func(x *site) {
		a := x.ask("POST", "/v1/codeq/tasks/claim/batch", `{"count":100}`)
		if a.status != http.StatusNoContent && a.status != http.StatusOK || strings.Contains(a.body, "owner") {
			x.t.Errorf("the stranger claims %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/tasks/batch/results": func(x *site) {
		// Ids of the owner are another test's subject: this route has none in it.
		a := x.ask("POST", "/v1/codeq/tasks/batch/results", `{"results":[{"taskId":"`+unknownID+`","result":{}}]}`)
		if a.status != http.StatusOK || !strings.Contains(a.body, `"code":"task_not_found"`) {
			x.t.Errorf("a task of nobody: %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/admin/webhooks/secret": func(x *site) {
		owner, stranger := callback.Secrets(x.server.store.Secret()).Of("owner"), callback.Secrets(x.server.store.Secret()).Of("stranger")
		if a := x.ask("GET", "/v1/codeq/admin/webhooks/secret", ""); strings.Contains(a.body, owner) || !strings.Contains(a.body, stranger) {
			x.t.Errorf("the stranger reads the secret %s", a.body)
		}
	},
	"GET /v1/codeq/admin/queues": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/queues", ""); strings.Contains(a.body, "ready-for-owner") || strings.Contains(a.body, `"owner"`) {
			x.t.Errorf("the stranger sees the queues %s", a.body)
		}
	},
	// What a stranger does to a queue of the same name is done to their own; see
	// the end of TestAnotherTenantsTaskIsUnknownOnEveryRoute.
	"GET /v1/codeq/admin/queues/{command}": func(x *site) {
		a := x.ask("GET", "/v1/codeq/admin/queues/ready-for-owner", "")
		if a.status != http.StatusOK || !strings.Contains(a.body, `"ready":0`) || !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger sees the queue %s", a.body)
		}
	},
	"PUT /v1/codeq/admin/queues/{command}": func(x *site) {
		if a := x.ask("PUT", "/v1/codeq/admin/queues/held", `{"maxAttempts":1}`); !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger sets the queue %s", a.body)
		}
	},
	"POST /v1/codeq/admin/queues/{command}/pause": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/held/pause", ""); !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger pauses the queue %s", a.body)
		}
	},
	"POST /v1/codeq/admin/queues/{command}/resume": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/other/resume", ""); !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger resumes the queue %s", a.body)
		}
	},
	"DELETE /v1/codeq/admin/queues/{command}": func(x *site) {
		a := x.ask("DELETE", "/v1/codeq/admin/queues/ready-for-owner?purge=true&cancelRunning=true", "")
		if a.status != http.StatusNotFound || a.code() != wire.CodeQueueNotFound {
			x.t.Errorf("the stranger deletes the queue: %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/admin/queues/{command}/tasks/cancel": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/ready-for-owner/tasks/cancel", `{"state":"open"}`); a.body != `{"cancelled":0}` {
			x.t.Errorf("the stranger cancels tasks: %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/admin/queues/{command}/tasks/run": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/ready-for-owner/tasks/run", ""); a.body != `{"ready":0}` {
			x.t.Errorf("the stranger runs tasks: %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/admin/queues/{command}/tasks/move": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/ready-for-owner/tasks/move", `{"toPriority":9}`); a.body != `{"moved":0}` {
			x.t.Errorf("the stranger moves tasks: %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/admin/queues/{command}/tasks": func(x *site) {
		for _, state := range []string{"ready", "delayed", "inProgress", "dlq", "done"} {
			for _, command := range []string{"held", "ready-for-owner", "of-nobody"} {
				a := x.ask("GET", "/v1/codeq/admin/queues/"+command+"/tasks?state="+state, "")
				if a.status != http.StatusOK || strings.Contains(a.body, "the owner's") || strings.Contains(a.body, `"owner"`) {
					x.t.Errorf("the stranger sees of %s in %s: %d %s", state, command, a.status, a.body)
				}
			}
		}
	},
	"POST /v1/codeq/admin/queues/{command}/dlq/replay": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/queues/held/dlq/replay", ""); a.body != `{"replayed":0,"remaining":0}` {
			x.t.Errorf("the stranger replays tasks: %d %s", a.status, a.body)
		}
	},
	"DELETE /v1/codeq/admin/queues/{command}/dlq": func(x *site) {
		if a := x.ask("DELETE", "/v1/codeq/admin/queues/held/dlq", ""); a.body != `{"purged":0,"remaining":0}` {
			x.t.Errorf("the stranger purges tasks: %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/admin/queues/{command}/dlq/reasons": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/queues/held/dlq/reasons", ""); a.body != `{"reasons":[],"read":0}` {
			x.t.Errorf("the stranger sees reasons: %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/admin/tasks/cleanup": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/admin/tasks/cleanup", `{"before":"2200-01-01T00:00:00Z"}`); a.body != `{"deleted":0}` {
			x.t.Errorf("the stranger removes tasks: %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/admin/tasks": func(x *site) {
		for _, query := range []string{"", "?state=inProgress", "?payload~=1"} {
			if a := x.ask("GET", "/v1/codeq/admin/tasks"+query, ""); a.status != http.StatusOK || strings.Contains(a.body, "owner") {
				x.t.Errorf("the stranger finds tasks by %q: %d %s", query, a.status, a.body)
			}
		}
	},
	"GET /v1/codeq/workers/subscriptions": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/workers/subscriptions", ""); a.body != `{"subscriptions":[]}` {
			x.t.Errorf("the stranger sees the subscriptions %s", a.body)
		}
	},
	"POST /v1/codeq/workers/subscriptions": func(x *site) {
		a := x.ask("POST", "/v1/codeq/workers/subscriptions", `{"callbackUrl":"https://stranger.example/"}`)
		if a.status != http.StatusOK || strings.Contains(a.body, x.owned()) {
			x.t.Errorf("the stranger subscribes: %d %s", a.status, a.body)
		}
	},
	"DELETE /v1/codeq/workers/subscriptions/{subscription}":         func(x *site) { x.mustNotSubscribe("DELETE", "") },
	"POST /v1/codeq/workers/subscriptions/{subscription}/heartbeat": func(x *site) { x.mustNotSubscribe("POST", "/heartbeat") },
	"GET /v1/codeq/admin/webhooks": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/webhooks", ""); strings.Contains(a.body, "owner") {
			x.t.Errorf("the stranger sees the webhooks %s", a.body)
		}
	},
	"GET /v1/codeq/admin/webhooks/{name}":         func(x *site) { x.mustNotHook("GET", "") },
	"DELETE /v1/codeq/admin/webhooks/{name}":      func(x *site) { x.mustNotHook("DELETE", "") },
	"POST /v1/codeq/admin/webhooks/{name}/rotate": func(x *site) { x.mustNotHook("POST", "/rotate") },
	"POST /v1/codeq/admin/webhooks/{name}/enable": func(x *site) { x.mustNotHook("POST", "/enable") },
	"POST /v1/codeq/admin/webhooks/{name}/test":   func(x *site) { x.mustNotHook("POST", "/test") },
	"PUT /v1/codeq/admin/webhooks/{name}": func(x *site) {
		a := x.ask("PUT", "/v1/codeq/admin/webhooks/strangers", `{"url":"https://example.com/"}`)
		if a.status != http.StatusOK || strings.Contains(a.body, "owner") {
			x.t.Errorf("the stranger makes a webhook: %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/admin/limits": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/limits", ""); a.body != `{"limits":[]}` {
			x.t.Errorf("the stranger sees the limits %s", a.body)
		}
	},
	"GET /v1/codeq/admin/limits/{tenant}": func(x *site) { x.mustNotLimit("GET", "") },
	// An admin raises no limits, not even those of the own tenant.
	"PUT /v1/codeq/admin/limits/{tenant}":    func(x *site) { x.mustNotLimit("PUT", `{"weight":100}`) },
	"DELETE /v1/codeq/admin/limits/{tenant}": func(x *site) { x.mustNotLimit("DELETE", "") },
	"GET /v1/codeq/admin/sessions": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/sessions", ""); a.body != `{"sessions":[]}` {
			x.t.Errorf("the stranger sees the sessions %s", a.body)
		}
	},
	// TestAnotherTenantsSessionIsUnknown has these.
	"POST /v1/codeq/admin/sessions/{session}/drain":      func(*site) {},
	"POST /v1/codeq/admin/sessions/{session}/disconnect": func(*site) {},
	// An admin of one tenant is no operator of all.
	"GET /v1/codeq/admin/backup": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/backup", ""); a.status != http.StatusForbidden {
			x.t.Errorf("the stranger gets a backup: %d", a.status)
		}
	},
	"GET /v1/codeq/admin/cluster":                 func(x *site) { x.mustBeForbidden("GET", "") },
	"POST /v1/codeq/admin/cluster/tokens":         func(x *site) { x.mustBeForbidden("POST", "/tokens") },
	"POST /v1/codeq/admin/cluster/transfer":       func(x *site) { x.mustBeForbidden("POST", "/transfer") },
	"DELETE /v1/codeq/admin/cluster/nodes/{node}": func(x *site) { x.mustBeForbidden("DELETE", "/nodes/a") },
	"GET /v1/codeq/admin/config": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/admin/config", ""); a.status != http.StatusForbidden {
			x.t.Errorf("the stranger gets the settings: %d", a.status)
		}
	},
	// What a stranger meets in a session is another test's subject; these say
	// nothing about tasks.
	"GET /v1/codeq/session": func(*site) {},
	// test/faults shows that nobody sees events of another tenant.
	"GET /v1/codeq/events": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/events", ""); a.status != http.StatusBadRequest {
			x.t.Errorf("without an upgrade it is %d %s", a.status, a.body)
		}
	},
	"GET /v1/codeq/login": func(x *site) {
		if a := x.ask("GET", "/v1/codeq/login", ""); !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger is %d %s", a.status, a.body)
		}
	},
	"POST /v1/codeq/login": func(x *site) {
		if a := x.ask("POST", "/v1/codeq/login", ""); !strings.Contains(a.body, `"tenantId":"stranger"`) {
			x.t.Errorf("the stranger is %d %s", a.status, a.body)
		}
	},
	"DELETE /v1/codeq/login": func(*site) {},
	"GET /healthz":           func(*site) {},
	"GET /readyz":            func(*site) {},
	"GET /version":           func(*site) {},
	// Figures are for whoever runs the server, all tenants together.
	"GET /metrics": func(x *site) {
		if a := x.ask("GET", "/metrics", ""); a.status != http.StatusOK || strings.Contains(a.body, "the owner's") {
			x.t.Errorf("the figures are %d %s", a.status, a.body)
		}
	},
}

func TestAnotherTenantsSessionIsUnknown(t *testing.T) {
	f := newTokenFile(t)
	owner, stranger := f.addAll("owner"), f.addAll("stranger")
	x := openGuarded(f, io.Discard)
	k, held := x.as(owner).heldTask()
	list, _, err := wire.ParseSessionList([]byte(x.as(owner).ask("GET", "/v1/codeq/admin/sessions", "").body))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	for _, verb := range []string{"drain", "disconnect"} {
		theirs := x.as(stranger).ask("POST", fmt.Sprintf("/v1/codeq/admin/sessions/%v/%s", list[0].ID, verb), "")
		nobodys := x.as(stranger).ask("POST", "/v1/codeq/admin/sessions/"+unknownID+"/"+verb, "")
		if theirs.code() != wire.CodeSessionNotFound || theirs.status != http.StatusNotFound || theirs.body != nobodys.body {
			t.Errorf("%s: the owner's session is %d %s, one of nobody %s", verb, theirs.status, theirs.body, nobodys.body)
		}
	}
	finishHeld(k, held)
	if a := x.as(owner).ask("GET", "/v1/codeq/admin/sessions", ""); !strings.Contains(a.body, `"state":"live"`) {
		t.Errorf("the stranger changed the session: %s", a.body)
	}
}

func TestAnotherTenantsTaskIsUnknownOnEveryRoute(t *testing.T) {
	f := newTokenFile(t)
	owner, stranger := f.addAll("owner"), f.addAll("stranger")
	x := openGuarded(f, io.Discard)
	x.as(owner).post(`{"command":"ready-for-owner","payload":1}`)
	x.as(owner).post(`{"command":"ready-for-owner","payload":2,"delaySeconds":600}`)
	k, held := x.as(owner).heldTask()
	token := fmt.Sprintf(`"leaseToken":"%v"`, held.Token)
	bodies := map[string]string{"result": `{"status":"COMPLETED","result":{},` + token + `}`, "move": `{"toPriority":9}`,
		"progress": `{"percent":1,` + token + `}`, "output": `{"text":"a",` + token + `}`}
	for _, verb := range []string{"heartbeat", "nack", "abandon", "release"} {
		bodies[verb] = "{" + token + "}"
	}
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		if !strings.Contains(pattern, "/tasks/{id}") {
			check := wholeRoutes[route]
			if check == nil {
				t.Errorf("%s: say in wholeRoutes what a stranger may see there", route)
				continue
			}
			check(x.as(stranger))
			continue
		}
		body, queries := "", []string{""}
		if method == "POST" {
			body = bodies[pattern[strings.LastIndexByte(pattern, '/')+1:]]
		} else if strings.HasSuffix(pattern, "/result") {
			queries = append(queries, "?waitSeconds=1")
		}
		for _, query := range queries {
			theirs := x.as(stranger).ask(method, strings.Replace(pattern, "{id}", held.Task.ID.String(), 1)+query, body)
			nobodys := x.as(stranger).ask(method, strings.Replace(pattern, "{id}", unknownID, 1)+query, body)
			hidden := strings.ReplaceAll(theirs.body, held.Task.ID.String(), unknownID)
			if theirs.code() != wire.CodeTaskNotFound || theirs.status != nobodys.status || hidden != nobodys.body {
				t.Errorf("%s%s: the owner's task is %d %s, a task of nobody %d %s", route, query,
					theirs.status, theirs.body, nobodys.status, nobodys.body)
			}
		}
	}
	answers := make([]string, 2)
	for i, id := range []string{held.Task.ID.String(), unknownID} {
		item := fmt.Sprintf(`{"results":[{"taskId":"%s","result":{},"leaseToken":"%v"}]}`, id, held.Token)
		answers[i] = strings.ReplaceAll(x.as(stranger).ask("POST", "/v1/codeq/tasks/batch/results", item).body, id, "ID")
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], `"code":"task_not_found"`) {
		t.Errorf("in a batch the owner's task is answered\n%s\na task of nobody\n%s", answers[0], answers[1])
	}
	finishHeld(k, held)
	if a := x.as(owner).ask("GET", "/v1/codeq/admin/queues/held", ""); strings.Contains(a.body, `"paused":true`) ||
		!strings.Contains(a.body, `"effective":{"maxAttempts":5,`) {
		t.Errorf("the stranger changed the queue of the owner: %s", a.body)
	}
	if a := x.as(owner).ask("GET", "/v1/codeq/admin/queues/ready-for-owner", ""); !strings.Contains(a.body, `"ready":1,"delayed":1,`) {
		t.Errorf("the stranger changed the tasks of the owner: %s", a.body)
	}
}

// finishHeld shows that nobody has touched the delivery meanwhile.
func finishHeld(k *socket, held *wire.TaskFrame) {
	k.t.Helper()
	k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","result":{}}`, held.Task.ID, held.Token))
	for {
		if ok := hear[*wire.OK](k); ok.Ref.Value == 2 {
			return
		}
	}
}

// taskFrames are the frames that name a task, but for type and ref.
var taskFrames = map[string]string{
	"Result":    `{delivery},"result":{}`,
	"Nack":      `{delivery},"delaySeconds":0`,
	"Abandon":   `{delivery}`,
	"Release":   `{delivery}`,
	"Heartbeat": `"tasks":[{{delivery}}]`,
	"Cancel":    `"taskId":"{id}"`,
}

// otherFrames name no task; each is in TestAnotherTenantsTaskIsUnknownOnEveryFrame.
var otherFrames = []string{"Hello", "Subscribe", "Window", "Received", "Enqueue", "Drain", "Unknown"}

// clientFrames are the names of all frames of a client, from the types that wire has.
func clientFrames(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../../wire/frame.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`type (\w+) struct {\n\tRef\n`).FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) < 12 {
		t.Fatalf("found only the frames %v", names)
	}
	return names
}

func TestEveryFrameIsInTheTablesOfTenants(t *testing.T) {
	for _, name := range clientFrames(t) {
		_, named := taskFrames[name]
		if !named && !slices.Contains(otherFrames, name) {
			t.Errorf("the frame %s is in neither table", name)
		}
	}
}

// Every frame with a member that it does not know is answered by its ref, and the
// session goes on.
func TestU03EveryFrameRefusesAMemberThatItDoesNotKnow(t *testing.T) {
	k := openSite(t, t.TempDir()).dial()
	for i, name := range clientFrames(t) {
		k.say(fmt.Sprintf(`{"type":"%s","ref":%d,"zzzzzzzz":{"type":"drain"}}`, strings.ToLower(name), i+1))
		e, want := hear[*wire.ErrorFrame](k), wire.CodeUnknownMember
		if name == "Unknown" {
			want = wire.CodeInvalidArgument // which is no frame
		}
		if e.Ref.Value != int64(i+1) || e.Err.Code != want {
			t.Errorf("%s: %+v of %v", name, e.Err, e.Ref)
		}
	}
	k.say(`{"type":"enqueue","ref":99,"command":"c","payload":1}`)
	if ok := hear[*wire.OK](k); ok.Ref.Value != 99 {
		t.Errorf("the session does not go on: %+v", ok)
	}
}

func TestAnotherTenantsTaskIsUnknownOnEveryFrame(t *testing.T) {
	f := newTokenFile(t)
	owner, stranger := f.addAll("owner"), f.addAll("stranger")
	x := openGuarded(f, io.Discard)
	k, held := x.as(owner).heldTask()
	ready := x.as(owner).post(`{"command":"ready-for-owner","payload":1}`)
	s := x.as(stranger).dial()
	s.say(`{"type":"subscribe","ref":1,"commands":["*"],"window":8}`)
	hear[*wire.OK](s)
	for name, form := range taskFrames {
		answers := make([]string, 2)
		for i, id := range []string{held.Task.ID.String(), unknownID} {
			members := strings.NewReplacer("{id}", id, "{delivery}", fmt.Sprintf(`"taskId":"%s","leaseToken":"%v"`, id, held.Token)).Replace(form)
			s.say(fmt.Sprintf(`{"type":"%s","ref":5,%s}`, strings.ToLower(name), members))
			answers[i] = strings.ReplaceAll(string(wire.AppendServerFrame(nil, s.next())), id, "ID")
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: the owner's task is answered\n%s\na task of nobody\n%s", name, answers[0], answers[1])
		}
		if name != "Heartbeat" && !strings.Contains(answers[0], string(wire.CodeTaskNotFound)) {
			t.Errorf("%s: %s", name, answers[0])
		}
	}
	s.say(`{"type":"enqueue","ref":6,"command":"held","payload":1,"idempotencyKey":"k"}`)
	mine := hear[*wire.OK](s)
	if mine.Replayed || mine.TaskID == held.Task.ID {
		t.Errorf("the key of the owner gives the stranger %+v", mine)
	}
	if got := hear[*wire.TaskFrame](s); got.Task.ID != mine.TaskID || got.Task.ID == ready.ID {
		t.Errorf("the stranger is pushed %v", got.Task.ID)
	}
	s.say(`{"type":"hello","ref":7,"token":"` + owner + `"}`)
	if e, ok := s.next().(*wire.ErrorFrame); !ok || e.Err.Code != wire.CodeForbidden {
		t.Errorf("the stranger's session renewed with the owner's token: %+v", e)
	}
	finishHeld(k, held)
	if task := x.as(owner).read(ready.ID); task.Deliveries != 0 {
		t.Errorf("the owner's ready task was delivered %d times", task.Deliveries)
	}
}

func TestATokenThatIsTakenBackEndsItsSessionsAndRequests(t *testing.T) {
	f := newTokenFile(t)
	gone, kept := f.addAll("one"), f.addAll("two")
	x := openGuarded(f, io.Discard)
	task := x.as(gone).post(okTask)
	goneSession, keptSession := x.as(gone).dial(), x.as(kept).dial()
	waited := make(chan answer)
	go func() {
		waited <- x.as(gone).ask("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=1", "")
	}()
	f.keep(kept)
	if code := goneSession.closeCode(); code != 4401 {
		t.Errorf("the session of the token is closed with %d", code)
	}
	if a := <-waited; a.code() != wire.CodeUnauthenticated && a.code() != wire.CodeResultNotFound {
		t.Errorf("the request that waited: %d %s", a.status, a.body)
	}
	if a := x.as(gone).ask("GET", "/v1/codeq/tasks/"+task.ID.String(), ""); a.code() != wire.CodeUnauthenticated {
		t.Errorf("the token is still good: %d %s", a.status, a.body)
	}
	k := x.as(gone).connect()
	if code := k.closeCode(); code != 4401 {
		t.Errorf("a new session of the token is closed with %d", code)
	}
	keptSession.say(`{"type":"enqueue","ref":1,"command":"c","payload":1}`)
	hear[*wire.OK](keptSession)
}

// A client that watches is told why its token is not enough before the socket is closed.
func TestAWatchWithoutTheScopeIsToldSo(t *testing.T) {
	f := newTokenFile(t)
	token := f.add("one", []string{auth.ScopeProduce}, []string{wire.AllCommands})
	x := openGuarded(f, io.Discard)
	c, err := client.New("http://"+x.server.Addr(), client.WithToken(token))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, err := range c.Watch(ctx, client.EventWatch{}) {
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeForbidden || !strings.Contains(refusal.Sentence, auth.ScopeView) {
			t.Errorf("the watch ended with %v", err)
		}
	}
}

func TestSessionsOverTheLimitAreClosed(t *testing.T) {
	s, err := Open(Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), MaxSessions: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	first := x.dial()
	if code := x.connect().closeCode(); code != 4429 {
		t.Errorf("a session too many is closed with %d", code)
	}
	first.say(`{"type":"enqueue","ref":1,"command":"c","payload":1}`)
	hear[*wire.OK](first)
}

// The limit of a tenant holds from the next hello on, and a session that ends makes room.
func TestSessionsOverTheLimitOfTheirTenantAreClosed(t *testing.T) {
	s, err := Open(Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	first := x.dial()
	for _, body := range []string{`{"sessions":1}`, `{"perCredential":{"sessions":1}}`} {
		if a := x.ask("PUT", "/v1/codeq/admin/limits/default", body); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if code := x.connect().closeCode(); code != 4429 {
			t.Errorf("with %s a second session is closed with %d", body, code)
		}
	}
	first.say(`{"type":"enqueue","ref":1,"command":"c","payload":1}`)
	hear[*wire.OK](first)
	x.ask("PUT", "/v1/codeq/admin/limits/default", `{"sessions":2,"pendingTasks":1}`)
	second := x.dial()
	second.say(`{"type":"enqueue","ref":1,"command":"c","payload":1}`)
	if refused := hear[*wire.ErrorFrame](second).Err; refused.Code != wire.CodeRateLimited || refused.RetryAfterSeconds != 5 {
		t.Errorf("a task too many is refused with %+v", refused)
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestNoTokenOrDigestIsLogged(t *testing.T) {
	f, log := newTokenFile(t), &lockedBuffer{}
	token := f.addAll("one")
	x := openGuarded(f, log)
	x.as(token).post(okTask)
	x.as(token).ask("GET", "/v1/codeq/tasks/"+token+"?token="+token, "")
	x.as(token+"x").ask("GET", "/v1/codeq/admin/queues", "")
	x.as(token).ask("DELETE", "/v1/codeq/admin/queues/c/dlq?token="+token, "")
	x.as("cq_bad").connect().closeCode()
	k := x.as(token).dial()
	k.say(`{"type":"hello","token":"cq_bad2"}`)
	k.next()
	if err := os.WriteFile(f.path, []byte("- sha256: "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.server.ReloadTokens()
	f2 := newTokenFile(t)
	f2.addAll("two")
	if err := os.Rename(f2.path, f.path); err != nil {
		t.Fatal(err)
	}
	if code := k.closeCode(); code != 4401 {
		t.Errorf("closed with %d", code)
	}
	x.close()
	said := log.text()
	for _, secret := range []string{token, token[3:20], "cq_", auth.HashToken(token), auth.HashToken(token)[:16]} {
		if strings.Contains(said, secret) {
			t.Errorf("the log tells %q:\n%s", secret, said)
		}
	}
	if !strings.Contains(said, f.path+":1: sha256 holds a token itself") || !strings.Contains(said, "tokens read again") {
		t.Errorf("the log does not tell of the reload:\n%s", said)
	}
}

func TestWithTokensAnyAddressIsAllowed(t *testing.T) {
	f := newTokenFile(t)
	f.addAll("one")
	tokens, err := auth.OpenTokens(f.path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{DataDir: t.TempDir(), Listen: "0.0.0.0:0", Tokens: tokens, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	if a := x.ask("POST", "/v1/codeq/tasks", okTask); a.code() != wire.CodeUnauthenticated {
		t.Errorf("without a token: %d %s", a.status, a.body)
	}
}

// mustNotLimit does something to the limits of the owner's tenant and of its own.
func (x *site) mustNotLimit(method, body string) {
	x.t.Helper()
	for _, tenant := range []string{"owner", "stranger"} {
		want := http.StatusForbidden
		if method == "GET" && tenant == "stranger" {
			want = http.StatusOK
		}
		if a := x.ask(method, "/v1/codeq/admin/limits/"+tenant, body); a.status != want {
			x.t.Errorf("%s of the limits of %s: %d %s, want %d", method, tenant, a.status, a.body, want)
		}
	}
}

// mustNotHook does something to a webhook that the owner has.
// owned is the id of the subscription of the owner.
func (x *site) owned() string { return x.server.engine.Named("owner", "subscription")[0].Name }

func (x *site) mustNotSubscribe(method, verb string) {
	x.t.Helper()
	if a := x.ask(method, "/v1/codeq/workers/subscriptions/"+x.owned()+verb, ""); a.status != http.StatusNotFound || a.code() != wire.CodeNotFound {
		x.t.Errorf("%s %s of a subscription of the owner: %d %s", method, verb, a.status, a.body)
	}
}

func (x *site) mustNotHook(method, verb string) {
	x.t.Helper()
	if a := x.ask(method, "/v1/codeq/admin/webhooks/owners"+verb, ""); a.status != http.StatusNotFound || a.code() != wire.CodeNotFound {
		x.t.Errorf("%s %s of a webhook of the owner: %d %s", method, verb, a.status, a.body)
	}
}

// mustBeForbidden asks about the cluster as one who is no operator.
func (x *site) mustBeForbidden(method, path string) {
	x.t.Helper()
	if a := x.ask(method, "/v1/codeq/admin/cluster"+path, ""); a.status != http.StatusForbidden {
		x.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
	}
}
