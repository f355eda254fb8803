package httpapi

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/walk.txt anew")

// originals are the routes that clients of the original system speak, each with
// all the codes by which it refuses; the walk must meet exactly those. A panic,
// which any route may have, is another test's.
var originals = map[string]string{
	"POST /v1/codeq/tasks":                 "invalid_command invalid_body invalid_priority invalid_time invalid_webhook invalid_argument idempotency_conflict too_large forbidden rate_limited storage_full overloaded draining",
	"POST /v1/codeq/tasks/batch":           "invalid_argument invalid_body too_large forbidden rate_limited overloaded draining",
	"GET /v1/codeq/tasks/{id}":             "task_not_found too_large",
	"GET /v1/codeq/tasks/{id}/result":      "task_not_found result_not_found invalid_argument too_large overloaded draining",
	"POST /v1/codeq/tasks/claim":           "invalid_command invalid_argument invalid_body too_large forbidden rate_limited storage_full overloaded draining",
	"POST /v1/codeq/tasks/claim/batch":     "invalid_command invalid_argument invalid_body too_large forbidden rate_limited storage_full overloaded draining",
	"POST /v1/codeq/tasks/{id}/heartbeat":  deliveryCodes + " invalid_body invalid_argument",
	"POST /v1/codeq/tasks/{id}/nack":       deliveryCodes + " invalid_body invalid_argument invalid_time",
	"POST /v1/codeq/tasks/{id}/abandon":    deliveryCodes + " invalid_body invalid_argument",
	"POST /v1/codeq/tasks/{id}/result":     deliveryCodes + " invalid_body invalid_argument invalid_result",
	"POST /v1/codeq/tasks/batch/results":   "invalid_argument invalid_body too_large forbidden overloaded draining",
	"GET /v1/codeq/admin/queues/{command}": "invalid_command forbidden too_large",
	"POST /v1/codeq/admin/tasks/cleanup":   "invalid_time invalid_argument invalid_body too_large forbidden overloaded draining",
	"GET /metrics":                         "too_large",
}

const deliveryCodes = "task_not_found not_owner not_in_progress lease_lost too_large forbidden storage_full overloaded draining"

// everywhere are the codes of all routes, for those that are not public.
const everywhere = " method_not_allowed unauthenticated unknown_member"

// trouble is what a server of the walk has.
type trouble struct {
	name string
	open func(t *testing.T) *cast
}

var (
	// busy has tasks from before, an ended one too, and no place in its mailboxes.
	busy = &trouble{"busy", func(t *testing.T) *cast {
		disk := vfs.NewMem()
		newCast(t, setup{fs: disk}).close()
		b := newBench(t, setup{fs: disk, idle: true, auth: castKeys, mailbox: mailbox.Limits{Messages: 2, Bytes: 1 << 20}})
		for shardNo := range b.engine.Shards() {
			for b.engine.Post(shardNo, []shard.Message{&shard.SpaceChanged{}}, 1, mailbox.ClassKeep) == mailbox.Accepted {
			}
		}
		return &cast{bench: b}
	}}
	stopping = &trouble{"stopping", func(t *testing.T) *cast {
		c := newCast(t, setup{})
		c.stopEngine()
		close(c.draining)
		return c
	}}
	// limited has a tenant whose rates let nothing in for an hour.
	limited = &trouble{"limited", func(t *testing.T) *cast {
		c := newCast(t, setup{})
		c.engine.Limits().Set(wire.DefaultTenant, wire.TenantLimits{
			DoorLimits: wire.DoorLimits{EnqueuesPerSecond: 1, ClaimsPerSecond: 1}}, time.Now().Add(time.Hour).UnixMilli())
		return c
	}}
	full = &trouble{"full", func(t *testing.T) *cast {
		disk := &smallDisk{FS: vfs.NewMem()}
		disk.availBytes.Store(60 << 20)
		c := newCast(t, setup{fs: disk})
		disk.availBytes.Store(2 << 20)
		c.store.Guard().Tick(time.Now())
		return c
	}}
)

// troubleWalk is what servers in trouble refuse, on all of the routes.
func troubleWalk() []visit {
	visits := []visit{
		{in: full, method: "POST", path: "/tasks", body: newTask, code: wire.CodeStorageFull},
		{in: full, method: "POST", path: "/tasks/batch", body: `{"tasks":[` + newTask + `]}`, status: 200,
			want: `\{"results":\[\{"error":"[^"]+","code":"storage_full","retryable":true,"retryAfterSeconds":1\}\]\}`},
		{in: full, method: "POST", path: "/tasks/batch/results", body: `{"results":[{"taskId":"{held}","result":{}}]}`, status: 200,
			want: `\{"results":\[\{"error":"[^"]+","code":"storage_full",.*\}\]\}`},
		{in: full, method: "POST", path: "/tasks/claim", body: `{"commands":["pending"]}`, code: wire.CodeStorageFull},
		{in: full, method: "POST", path: "/tasks/claim/batch", body: `{"commands":["pending"]}`, code: wire.CodeStorageFull},
		{in: full, method: "GET", path: "/tasks/{held}", status: 200, want: `.*`},
		{in: full, method: "POST", path: "/admin/tasks/cleanup", body: `{"before":"2200-01-01T00:00:00Z"}`, status: 200, want: `\{"deleted":1\}`},
	}
	for _, path := range []string{"/tasks", "/tasks/batch", "/tasks/claim", "/tasks/claim/batch"} {
		body := map[string]string{"/tasks": newTask, "/tasks/batch": `{"tasks":[` + newTask + `]}`}[path]
		visits = append(visits, visit{in: limited, method: "POST", path: path, body: body, code: wire.CodeRateLimited})
	}
	for verb, form := range verbs {
		if verb != "release" {
			visits = append(visits, visit{in: full, method: "POST", path: "/tasks/{held}/" + verb, body: formed(form, ""), code: wire.CodeStorageFull})
		}
	}
	for trouble, code := range map[*trouble]wire.Code{busy: wire.CodeOverloaded, stopping: wire.CodeDraining} {
		to := func(method, path, body string) {
			visits = append(visits, visit{in: trouble, method: method, path: path, body: body, code: code})
		}
		to("POST", "/tasks", newTask)
		to("POST", "/tasks/batch", `{"tasks":[`+newTask+`,`+newTask+`]}`)
		to("GET", "/tasks/{unknown}/result?waitSeconds=1", "")
		to("POST", "/tasks/claim", `{"waitSeconds":1}`)
		to("POST", "/tasks/claim/batch", `{"waitSeconds":1,"count":3}`)
		to("POST", "/tasks/batch/results", `{"results":[{"taskId":"{unknown}","result":{}}]}`)
		to("POST", "/admin/tasks/cleanup", `{"limit":5}`)
		for verb, form := range verbs {
			if verb != "release" {
				to("POST", "/tasks/{unknown}/"+verb, formed(form, ""))
			}
		}
	}
	return visits
}

// commonWalk is what every route refuses before it looks at the request.
func commonWalk() (visits []visit) {
	for _, route := range slices.Sorted(maps.Keys(originals)) {
		method, pattern, _ := strings.Cut(route, " ")
		path := strings.NewReplacer(base, "", "{id}", "{held}", "{command}", "held").Replace(pattern)
		visits = append(visits,
			visit{method: otherMethods[method], path: path, code: wire.CodeMethodNotAllowed},
			visit{method: method, path: path, body: overLimit, code: wire.CodeTooLarge})
		if pattern != "/metrics" {
			visits = append(visits,
				visit{who: "nobody", method: method, path: path, code: wire.CodeUnauthenticated},
				visit{method: method, path: path + "?waitSecond=1", code: wire.CodeUnknownMember},
				visit{method: method, path: path, body: `{"delay":1}`, code: wire.CodeUnknownMember})
		}
	}
	return visits
}

// otherMethods are what the routes of a method are asked with in vain.
var otherMethods = map[string]string{"POST": "BREW", "GET": "PATCH"}

var overLimit = strings.Repeat(" ", wire.MaxHTTPBodyBytes+1)

// name tells visits apart, and their answers in the golden file.
func (v *visit) name() string {
	body := v.body
	if len(body) > 200 {
		body = fmt.Sprintf("%.20s… %d bytes", body, len(body))
	}
	name := fmt.Sprintf("%s %s %s", v.method, v.path, body)
	if v.who != "" {
		name += " as " + v.who
	}
	if v.in != nil {
		name += " while " + v.in.name
	}
	return name
}

// route is the pattern that serves a visit.
func (v *visit) route() string {
	path, _, _ := strings.Cut(v.path, "?")
	path = regexp.MustCompile(`\{\w+\}|/7(/|$)`).ReplaceAllString(path, "{id}$1")
	path = regexp.MustCompile(`/queues/[^/]+`).ReplaceAllString(path, "/queues/{command}")
	if path == "/metrics" {
		return "GET /metrics"
	}
	method := v.method
	for of, other := range otherMethods {
		if method == other {
			method = of
		}
	}
	return method + " " + base + path
}

func (c *cast) visit(t *testing.T, v *visit) got {
	t.Helper()
	var header []string
	if v.who != "" {
		header = []string{"Authorization", "Bearer " + v.who}
	}
	path := base + c.fill(v.path)
	if v.path == "/metrics" {
		path = v.path
	}
	g := c.do(v.method, path, c.fill(v.body), header...)
	if v.code != "" {
		g.mustRefuse(t, v.code)
		return g
	}
	if g.status != v.status || !regexp.MustCompile(`(?s)^`+c.fill(v.want)+`$`).MatchString(g.body) {
		t.Errorf("%d %s\nwant %d %s", g.status, g.body, v.status, c.fill(v.want))
	}
	if g.status != http.StatusNoContent && v.path != "/metrics" {
		g.mustBeJSON(t)
	}
	return g
}

// seen is an answer as the golden file has it: names for what chance and clock
// make.
func (c *cast) seen(v *visit, g got) string {
	text := fmt.Sprint(g.status)
	for _, name := range []string{"Location", "Allow", "Retry-After", "WWW-Authenticate", headerReplayed} {
		if value := g.header.Get(name); value != "" {
			text += fmt.Sprintf(" %s: %s", name, value)
		}
	}
	if v.path == "/metrics" && g.status == http.StatusOK {
		return text + " " + g.header.Get("Content-Type") + " …"
	}
	text += " " + g.body
	for name, id := range map[string]wire.TaskID{
		"pending": c.pending, "held": c.held, "foreign": c.foreign, "session": c.inSession, "done": c.done, "ended": c.ended, "theirs": c.theirs,
	} {
		if !id.IsZero() {
			text = strings.ReplaceAll(text, id.String(), "{"+name+"}")
		}
	}
	text = strings.ReplaceAll(text, unknownID, "{unknown}")
	text = regexp.MustCompile(strings.Trim(anyID, `"`)).ReplaceAllString(text, "{new}")
	text = regexp.MustCompile(anyTime).ReplaceAllString(text, `"{time}"`)
	text = regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllString(text, "{token}")
	if v.in == limited {
		text = regexp.MustCompile(`\b36\d\d\b`).ReplaceAllString(text, "{an hour}")
	}
	if !strings.Contains(v.body, "delaySeconds") {
		text = regexp.MustCompile(`"delaySeconds":\d+`).ReplaceAllString(text, `"delaySeconds":{chance}`)
	}
	return strings.TrimSpace(text)
}

// Every route of the original system: what it answers, and each way it refuses,
// by status, code, headers and body.
func TestEveryRouteOfTheOriginalSystemAnswersAndRefuses(t *testing.T) {
	servers := map[*trouble]*cast{}
	succeeds, refuses := map[string]bool{}, map[string]map[string]bool{}
	answers := map[string]string{}
	for _, v := range slices.Concat(walk, deliveryWalk(), commonWalk(), troubleWalk()) {
		route := v.route()
		if v.code == "" {
			succeeds[route] = true
		} else if refuses[route] == nil {
			refuses[route] = map[string]bool{}
		}
		if v.code != "" {
			refuses[route][string(v.code)] = true
		}
		if servers[v.in] == nil {
			servers[v.in] = v.in.server(t)
		}
		t.Run(fmt.Sprintf("%.150s", v.name()), func(t *testing.T) {
			c := servers[v.in] // refusals change nothing, so they share one
			if v.code == "" {
				c = v.in.server(t)
			}
			if _, twice := answers[v.name()]; twice {
				t.Error("two visits are the same")
			}
			answers[v.name()] = c.seen(&v, c.visit(t, &v))
		})
	}
	compareWalk(t, answers)
	for _, route := range slices.Sorted(maps.Keys(originals)) {
		want := strings.Fields(originals[route])
		if route == "GET /metrics" {
			want = append(want, "method_not_allowed")
		} else {
			want = append(want, strings.Fields(everywhere)...)
		}
		slices.Sort(want)
		if have := slices.Sorted(maps.Keys(refuses[route])); !slices.Equal(have, want) {
			t.Errorf("%s refuses with\n%v, the walk meets\n%v", route, want, have)
		}
		if !succeeds[route] {
			t.Errorf("nothing succeeds at %s", route)
		}
		if !slices.Contains(Routes(), route) {
			t.Errorf("there is no %s", route)
		}
	}
}

// server is a new one that has the trouble, or is well.
func (x *trouble) server(t *testing.T) *cast {
	if x == nil {
		return newCast(t, setup{})
	}
	return x.open(t)
}

// compareWalk holds all answers against the golden file.
func compareWalk(t *testing.T, answers map[string]string) {
	t.Helper()
	const file = "testdata/walk.txt"
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(&text, "%s\n\t%s\n", name, answers[name])
	}
	if *rewrite {
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(golden, text.Bytes()) {
		return
	}
	have, want := strings.Split(text.String(), "\n"), strings.Split(string(golden), "\n")
	for i, line := range have {
		if i >= len(want) || line != want[i] {
			t.Fatalf("%s differs from line %d on (-rewrite makes it anew, and the difference is to be read), got\n%s", file, i+1, line)
		}
	}
	t.Fatalf("%s has lines for what is not visited any more", file)
}

// With the setting every call about a delivery needs its token.
func TestServerThatRequiresTokensRefusesTheRest(t *testing.T) {
	c := newCast(t, setup{requireToken: true})
	for verb, form := range verbs {
		for _, more := range []string{"", `,"workerId":"ada"`} {
			c.visit(t, &visit{method: "POST", path: "/tasks/{held}/" + verb, body: formed(form, more), code: wire.CodeInvalidArgument})
		}
	}
	c.visit(t, &visit{method: "POST", path: "/tasks/batch/results", body: `{"results":[{"taskId":"{held}","result":{}}]}`, status: 200,
		want: `\{"results":\[\{"error":"leaseToken is required[^"]*","code":"invalid_argument","retryable":false,"taskId":"{held}"\}\]\}`})
	c.visit(t, &visit{method: "POST", path: "/tasks/{held}/result", body: `{"result":{},"leaseToken":"{token}"}`, status: 200, want: `.*COMPLETED.*`})
}
