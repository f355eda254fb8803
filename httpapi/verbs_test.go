package httpapi

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"codeq/auth"
	"codeq/wire"
)

// cast is who acts in the walk over the routes, and what they have.
type cast struct {
	*bench
	pending, held, foreign, inSession, done, ended, theirs wire.TaskID
	token, foreignToken, sessionToken, doneToken           wire.Token
}

func newCast(t *testing.T, requireToken bool) *cast {
	c := &cast{bench: newBench(t, setup{requireToken: requireToken, auth: keys{
		"":        {Tenant: wire.DefaultTenant, Subject: wire.AnonymousSubject},
		"eve":     {Tenant: wire.DefaultTenant, Subject: "eve"},
		"other":   {Tenant: "other", Subject: wire.AnonymousSubject},
		"reader":  {Tenant: wire.DefaultTenant, Subject: "r", Scopes: []string{auth.ScopeRead}},
		"maker":   {Tenant: wire.DefaultTenant, Subject: "m", Scopes: []string{auth.ScopeProducer}},
		"limited": {Tenant: wire.DefaultTenant, Subject: "l", Commands: []string{"z"}},
	}})}
	post := func(command string, who ...string) wire.TaskID {
		return c.post(fmt.Sprintf(`{"command":%q,"payload":1,"idempotencyKey":"k"}`, command), who...).ID
	}
	as := func(who string) []string { return []string{"Authorization", "Bearer " + who} }
	c.pending, c.theirs = post("pending"), post("theirs", as("other")...)
	c.held, c.foreign, c.done, c.ended = post("held"), post("foreign"), post("done"), post("ended")
	c.token = c.claim(`{"commands":["held"],"workerId":"ada"}`).token
	c.foreignToken = c.claim(`{"commands":["foreign"]}`, as("eve")...).token
	done := c.claim(`{"commands":["done"],"workerId":"ada"}`)
	ended := c.claim(`{"commands":["ended"]}`)
	c.doneToken = done.token
	for path, body := range map[string]string{
		done.path("result"): fmt.Sprintf(`{"result":{"n":1},"leaseToken":"%v"}`, done.token),
		ended.path("nack"):  fmt.Sprintf(`{"delaySeconds":600,"leaseToken":"%v"}`, ended.token),
	} {
		if g := c.do("POST", path, body); g.status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, g.status, g.body)
		}
	}
	c.inSession = post("session")
	c.sessionToken = c.newWorker("session").take().Token
	return c
}

// fill puts ids and tokens for their names.
func (c *cast) fill(text string) string {
	return strings.NewReplacer(
		"{pending}", c.pending.String(), "{held}", c.held.String(), "{foreign}", c.foreign.String(),
		"{session}", c.inSession.String(), "{done}", c.done.String(), "{ended}", c.ended.String(), "{theirs}", c.theirs.String(),
		"{token}", c.token.String(), "{foreignToken}", c.foreignToken.String(), "{sessionToken}", c.sessionToken.String(),
		"{doneToken}", c.doneToken.String(), "{unknown}", unknownID,
	).Replace(text)
}

// visit is one request of the walk: the body of its answer must match want from
// end to end, or be the refusal with that code.
type visit struct {
	who, method, path, body string
	status                  int
	want                    string
	code                    wire.Code
}

const (
	anyTime = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	anyID   = `"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"`
	ready   = `\{"id":` + anyID + `,"command":"new","payload":"\{\\"a\\":1\}","priority":0,"status":"PENDING","lastKnownLocation":"PENDING_LIST","attempts":0,"maxAttempts":5,"deliveries":0,"tenantId":"default","createdAt":` + anyTime + `,"updatedAt":` + anyTime + `\}`
	inHand  = `\{"id":"{pending}","command":"pending","payload":"1","priority":0,"status":"IN_PROGRESS","lastKnownLocation":"INPROG_SET","attempts":0,"maxAttempts":5,"deliveries":1,"workerId":"anonymous","leaseUntil":` + anyTime + `,"tenantId":"default","createdAt":` + anyTime + `,"updatedAt":` + anyTime + `,"leaseToken":"[0-9a-f]{32}"\}`
	doneIs  = `\{"taskId":"{done}","status":"COMPLETED","result":\{"n":1\},"completedAt":` + anyTime + `\}`
	newTask = `{"command":"new","payload":{"a":1}}`
)

// walk has every route that clients of the original system speak, with what it
// answers when it does what was asked and each way in which it refuses.
var walk = []visit{
	{method: "POST", path: "/tasks", body: newTask, status: 202, want: ready},
	{method: "POST", path: "/tasks", body: `{}`, code: wire.CodeInvalidCommand},
	{method: "POST", path: "/tasks", body: `{"command":"new"}`, code: wire.CodeInvalidBody},
	{method: "POST", path: "/tasks", body: `{"command":"new","payload":1,"priority":-1}`, code: wire.CodeInvalidPriority},
	{method: "POST", path: "/tasks", body: `{"command":"new","payload":1,"runAt":"tomorrow"}`, code: wire.CodeInvalidTime},
	{method: "POST", path: "/tasks", body: `{"command":"new","payload":1,"webhook":"http://x"}`, code: wire.CodeInvalidWebhook},
	{method: "POST", path: "/tasks", body: `{"command":"new","payload":1,"maxAttempts":1001}`, code: wire.CodeInvalidArgument},
	{method: "POST", path: "/tasks", body: `{"command":"held","payload":2,"idempotencyKey":"k"}`, code: wire.CodeIdempotencyConflict},
	{who: "reader", method: "POST", path: "/tasks", body: newTask, code: wire.CodeForbidden},
	{who: "limited", method: "POST", path: "/tasks", body: newTask, code: wire.CodeForbidden},
	{who: "nobody", method: "POST", path: "/tasks", body: newTask, code: wire.CodeUnauthenticated},

	{method: "POST", path: "/tasks/batch", body: `{"tasks":[` + newTask + `,{"command":"new"}]}`, status: 200,
		want: `\{"results":\[\{"task":` + ready + `\},\{"error":"[^"]+","code":"invalid_body","retryable":false\}\]\}`},
	{method: "POST", path: "/tasks/batch", body: `{"tasks":[]}`, code: wire.CodeInvalidArgument},
	{method: "POST", path: "/tasks/batch", body: `[]`, code: wire.CodeInvalidBody},
	{who: "reader", method: "POST", path: "/tasks/batch", body: `{"tasks":[1]}`, code: wire.CodeForbidden},

	{method: "GET", path: "/tasks/{done}", status: 200, want: `\{"id":"{done}",.*"status":"COMPLETED","lastKnownLocation":"NONE","attempts":0,"maxAttempts":5,"deliveries":1,.*\}`},
	{method: "GET", path: "/tasks/{held}", status: 200, want: `\{"id":"{held}",.*"status":"IN_PROGRESS",.*"workerId":"ada","leaseUntil":` + anyTime + `.*\}`},
	{who: "reader", method: "GET", path: "/tasks/{held}", status: 200, want: `.*"workerId":"ada".*`},
	{method: "GET", path: "/tasks/{unknown}", code: wire.CodeTaskNotFound},
	{method: "GET", path: "/tasks/{theirs}", code: wire.CodeTaskNotFound},
	{method: "GET", path: "/tasks/7", code: wire.CodeTaskNotFound},

	{method: "GET", path: "/tasks/{done}/result?waitSeconds=1", status: 200, want: `\{"task":\{"id":"{done}",.*\},"result":` + doneIs + `\}`},
	{method: "GET", path: "/tasks/{held}/result", code: wire.CodeResultNotFound},
	{method: "GET", path: "/tasks/{theirs}/result", code: wire.CodeTaskNotFound},
	{method: "GET", path: "/tasks/{held}/result?waitSeconds=61", code: wire.CodeInvalidArgument},

	{method: "POST", path: "/tasks/claim", body: `{"commands":["pending"]}`, status: 200, want: inHand},
	{method: "POST", path: "/tasks/claim", body: `{"commands":["none"]}`, status: 204, want: ``},
	{method: "POST", path: "/tasks/claim", body: `{"commands":["a b"]}`, code: wire.CodeInvalidCommand},
	{method: "POST", path: "/tasks/claim", body: `{"leaseSeconds":43201}`, code: wire.CodeInvalidArgument},
	{method: "POST", path: "/tasks/claim", body: `{`, code: wire.CodeInvalidBody},
	{who: "maker", method: "POST", path: "/tasks/claim", code: wire.CodeForbidden},
	{who: "limited", method: "POST", path: "/tasks/claim", body: `{"commands":["pending"]}`, code: wire.CodeForbidden},

	{method: "POST", path: "/tasks/claim/batch", body: `{"commands":["pending","none"],"count":100}`, status: 200, want: `\{"tasks":\[` + inHand + `\]\}`},
	{method: "POST", path: "/tasks/claim/batch", body: `{"commands":["none"],"count":2}`, status: 204, want: ``},
	{method: "POST", path: "/tasks/claim/batch", body: `{"count":101}`, code: wire.CodeInvalidArgument},
	{who: "maker", method: "POST", path: "/tasks/claim/batch", code: wire.CodeForbidden},

	{method: "POST", path: "/tasks/{held}/heartbeat", status: 200, want: `\{"ok":true,"leaseUntil":` + anyTime + `\}`},
	{method: "POST", path: "/tasks/{session}/heartbeat", body: `{"leaseToken":"{sessionToken}","extendSeconds":90}`, status: 200, want: `\{"ok":true,.*\}`},
	{method: "POST", path: "/tasks/{held}/heartbeat", body: `{"extendSeconds":0}`, code: wire.CodeInvalidArgument},

	{method: "POST", path: "/tasks/{held}/nack", body: `{"delaySeconds":5,"reason":"no"}`, status: 200, want: `\{"status":"requeued","delaySeconds":5\}`},
	{method: "POST", path: "/tasks/{held}/nack", body: `{"workerId":"ada"}`, status: 200, want: `\{"status":"requeued","delaySeconds":\d+\}`},
	{method: "POST", path: "/tasks/{held}/nack", body: `{"delaySeconds":-1}`, code: wire.CodeInvalidTime},

	{method: "POST", path: "/tasks/{held}/abandon", status: 200, want: `\{"status":"requeued"\}`},
	{method: "POST", path: "/tasks/{held}/release", status: 200, want: `\{"status":"requeued"\}`},

	{method: "POST", path: "/tasks/{held}/result", body: `{"result":{},"workerId":"ada"}`, status: 200, want: `\{"taskId":"{held}","status":"COMPLETED","result":\{\},"completedAt":` + anyTime + `\}`},
	{method: "POST", path: "/tasks/{held}/result", body: `{"status":"FAILED","error":"e"}`, status: 200, want: `\{"taskId":"{held}","status":"FAILED","error":"e","completedAt":` + anyTime + `\}`},
	{method: "POST", path: "/tasks/{done}/result", body: `{"result":{"other":2}}`, status: 200, want: doneIs},
	{method: "POST", path: "/tasks/{done}/result", body: `{"error":"e"}`, code: wire.CodeNotInProgress},
	{method: "POST", path: "/tasks/{held}/result", body: `{}`, code: wire.CodeInvalidResult},
	{method: "POST", path: "/tasks/{held}/result", body: `{"status":"COMPLETED","result":[]}`, code: wire.CodeInvalidResult},
	{method: "POST", path: "/tasks/{held}/result", body: `{"error":"` + strings.Repeat("e", wire.MaxErrorBytes+1) + `"}`, code: wire.CodeTooLarge},

	{method: "POST", path: "/tasks/batch/results", body: `{"results":[{"taskId":"{held}","result":{}},{"taskId":"{done}","leaseToken":"{doneToken}","result":{}},{"taskId":"{foreign}","result":{}}]}`, status: 200,
		want: `\{"results":\[\{"taskId":"{held}","result":\{"taskId":"{held}",.*\}\},\{"taskId":"{done}","result":` + doneIs + `\},\{"error":"[^"]+","code":"not_owner","retryable":false,"taskId":"{foreign}"\}\]\}`},
	{method: "POST", path: "/tasks/batch/results", body: `{"results":1}`, code: wire.CodeInvalidArgument},
	{who: "maker", method: "POST", path: "/tasks/batch/results", body: `{"results":[1]}`, code: wire.CodeForbidden},

	{method: "GET", path: "/admin/queues", status: 200, want: `\{"queues":\[.*\{"command":"held","tenantId":"default","ready":0,"delayed":0,"inProgress":1,"dlq":0,"paused":false\}.*\]\}`},
	{who: "maker", method: "GET", path: "/admin/queues", code: wire.CodeForbidden},
}

// verbs are the twins with a good body, for the refusals that they share.
var verbs = map[string]string{
	"heartbeat": `{"extendSeconds":5%s}`, "nack": `{"delaySeconds":0%s}`, "abandon": `{"x":1%s}`, "release": `{"x":1%s}`, "result": `{"result":{}%s}`,
}

func twinWalk() (visits []visit) {
	for verb, form := range verbs {
		to := func(task, more string, code wire.Code) {
			visits = append(visits, visit{method: "POST", path: "/tasks/" + task + "/" + verb, body: fmt.Sprintf(form, more), code: code})
		}
		// In the order in which the reasons are looked at.
		to("{unknown}", "", wire.CodeTaskNotFound)
		to("{theirs}", "", wire.CodeTaskNotFound)
		to("7", "", wire.CodeTaskNotFound)
		to("{foreign}", "", wire.CodeNotOwner)
		to("{foreign}", `,"leaseToken":"{foreignToken}"`, wire.CodeNotOwner)
		to("{held}", `,"workerId":"bob"`, wire.CodeNotOwner)
		to("{session}", "", wire.CodeNotOwner)
		to("{session}", `,"workerId":"worker-of-the-bench"`, wire.CodeNotOwner)
		to("{held}", `,"leaseToken":"{doneToken}"`, wire.CodeLeaseLost)
		to("{ended}", "", wire.CodeLeaseLost)
		to("{pending}", "", wire.CodeLeaseLost)
		to("{held}", `,"leaseToken":"x"`, wire.CodeInvalidArgument)
		to("{held}", `,"workerId":1`, wire.CodeInvalidArgument)
		to("{held}", `}}`, wire.CodeInvalidBody)
		if verb != "result" {
			to("{done}", "", wire.CodeNotInProgress)
			to("{done}", `,"leaseToken":"{doneToken}"`, wire.CodeNotInProgress)
		}
		for who, code := range map[string]wire.Code{"maker": wire.CodeForbidden, "reader": wire.CodeForbidden, "nobody": wire.CodeUnauthenticated} {
			visits = append(visits, visit{who: who, method: "POST", path: "/tasks/{held}/" + verb, body: fmt.Sprintf(form, ""), code: code})
		}
	}
	return visits
}

func (c *cast) visit(t *testing.T, v *visit) {
	t.Helper()
	var header []string
	if v.who != "" {
		header = []string{"Authorization", "Bearer " + v.who}
	}
	g := c.do(v.method, base+c.fill(v.path), c.fill(v.body), header...)
	if v.code != "" {
		g.mustRefuse(t, v.code)
		return
	}
	if g.status != v.status || !regexp.MustCompile(`(?s)^`+c.fill(v.want)+`$`).MatchString(g.body) {
		t.Errorf("%d %s\nwant %d %s", g.status, g.body, v.status, c.fill(v.want))
	}
	if g.status != http.StatusNoContent {
		g.mustBeJSON(t)
	}
}

// Every route of the original system: what it answers, and each way it refuses.
func TestEveryRouteOfTheOriginalSystemAnswersAndRefuses(t *testing.T) {
	refusals := newCast(t, false)
	seen := map[string]bool{}
	for _, v := range append(walk, twinWalk()...) {
		pattern := regexp.MustCompile(`\{\w+\}|/7(/|$)`).ReplaceAllString(strings.Split(v.path, "?")[0], "{id}$1")
		if v.status != 0 {
			seen[v.method+" "+base+pattern] = true
		}
		t.Run(fmt.Sprintf("%s %s %s %.60s", v.who, v.method, v.path, v.body), func(t *testing.T) {
			c := refusals
			if v.code == "" {
				c = newCast(t, false)
			}
			c.visit(t, &v)
		})
	}
	for _, route := range Routes() {
		original := strings.Contains(route, "/tasks") && !strings.HasSuffix(route, "/cancel") && !strings.Contains(route, "/admin/")
		if original && !seen[route] {
			t.Errorf("nothing succeeds at %s", route)
		}
	}
}

// With the setting every call about a delivery needs its token.
func TestServerThatRequiresTokensRefusesTheRest(t *testing.T) {
	c := newCast(t, true)
	for verb, form := range verbs {
		for _, more := range []string{"", `,"workerId":"ada"`} {
			c.visit(t, &visit{method: "POST", path: "/tasks/{held}/" + verb, body: fmt.Sprintf(form, more), code: wire.CodeInvalidArgument})
		}
	}
	c.visit(t, &visit{method: "POST", path: "/tasks/batch/results", body: `{"results":[{"taskId":"{held}","result":{}}]}`, status: 200,
		want: `\{"results":\[\{"error":"leaseToken is required[^"]*","code":"invalid_argument","retryable":false,"taskId":"{held}"\}\]\}`})
	c.visit(t, &visit{method: "POST", path: "/tasks/{held}/result", body: `{"result":{},"leaseToken":"{token}"}`, status: 200, want: `.*COMPLETED.*`})
}
