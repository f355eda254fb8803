package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

// cast is who acts in the walk over the routes, and what they have.
type cast struct {
	*bench
	pending, held, foreign, inSession, done, ended, theirs wire.TaskID
	token, foreignToken, sessionToken, doneToken           wire.Token
}

// castKeys are the credentials of all who act.
var castKeys = keys{
	"":        {Tenant: wire.DefaultTenant, Subject: wire.AnonymousSubject},
	"eve":     {Tenant: wire.DefaultTenant, Subject: "eve"},
	"other":   {Tenant: "other", Subject: wire.AnonymousSubject},
	"reader":  {Tenant: wire.DefaultTenant, Subject: "r", Scopes: []string{auth.ScopeRead}},
	"maker":   {Tenant: wire.DefaultTenant, Subject: "m", Scopes: []string{auth.ScopeProduce}},
	"limited": {Tenant: wire.DefaultTenant, Subject: "l", Commands: []string{"z"}},
}

func newCast(t *testing.T, o setup) *cast {
	o.auth = castKeys
	c := &cast{bench: newBench(t, o)}
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
	// in is the server that is asked; nil is one that is well.
	in *trouble
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
	{method: "POST", path: "/tasks", body: `{"command":"new","payload":1,"webhook":"ftp://x"}`, code: wire.CodeInvalidWebhook},
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
	{method: "POST", path: "/tasks/claim/batch", body: `{"commands":["a/b"]}`, code: wire.CodeInvalidCommand},
	{method: "POST", path: "/tasks/claim/batch", body: `{"count":1,"count":2}`, code: wire.CodeInvalidBody},
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
	{method: "POST", path: "/tasks/batch/results", body: `{"results":[`, code: wire.CodeInvalidBody},
	{who: "maker", method: "POST", path: "/tasks/batch/results", body: `{"results":[1]}`, code: wire.CodeForbidden},

	{method: "GET", path: "/admin/queues", status: 200, want: `\{"queues":\[.*\{"command":"held","tenantId":"default","ready":0,"delayed":0,"inProgress":1,"dlq":0,"paused":false\}.*\]\}`},
	{who: "maker", method: "GET", path: "/admin/queues", code: wire.CodeForbidden},

	{method: "GET", path: "/admin/queues/held", status: 200, want: `\{"command":"held","tenantId":"default","ready":0,"delayed":0,"inProgress":1,"dlq":0,"paused":false,"effective":\{"maxAttempts":5,"leaseSeconds":300,.*\}\}`},
	{method: "GET", path: "/admin/queues/nobodys", status: 200, want: `\{"command":"nobodys","tenantId":"default","ready":0,"delayed":0,"inProgress":0,"dlq":0,"paused":false,"unknown":true,"effective":\{"maxAttempts":5,"leaseSeconds":300,.*\}\}`},
	{method: "GET", path: "/admin/queues/theirs", status: 200, want: `\{"command":"theirs","tenantId":"default","ready":0,.*\}`},
	{method: "GET", path: "/admin/queues/a%2Fb", code: wire.CodeInvalidCommand},
	{who: "maker", method: "GET", path: "/admin/queues/held", code: wire.CodeForbidden},
	{who: "limited", method: "GET", path: "/admin/queues/held", code: wire.CodeForbidden},

	{method: "POST", path: "/admin/tasks/cleanup", status: 200, want: `\{"deleted":0\}`},
	{method: "POST", path: "/admin/tasks/cleanup", body: `{"before":"2200-01-01T00:00:00Z","limit":10}`, status: 200, want: `\{"deleted":1\}`},
	{who: "limited", method: "POST", path: "/admin/tasks/cleanup", body: `{"before":"2200-01-01T00:00:00Z"}`, status: 200, want: `\{"deleted":0\}`},
	{who: "other", method: "POST", path: "/admin/tasks/cleanup", body: `{"before":"2200-01-01T00:00:00Z"}`, status: 200, want: `\{"deleted":0\}`},
	{method: "POST", path: "/admin/tasks/cleanup", body: `{"before":"yesterday"}`, code: wire.CodeInvalidTime},
	{method: "POST", path: "/admin/tasks/cleanup", body: `{"limit":0}`, code: wire.CodeInvalidArgument},
	{method: "POST", path: "/admin/tasks/cleanup", body: `[]`, code: wire.CodeInvalidBody},
	{who: "maker", method: "POST", path: "/admin/tasks/cleanup", code: wire.CodeForbidden},

	{method: "GET", path: "/metrics", status: 200, want: `# HELP codeq_.*`},
	{who: "nobody", method: "GET", path: "/metrics", status: 200, want: `# HELP codeq_.*`},
}

// verbs are the verbs about a delivery with a good body, for the refusals that they share.
var verbs = map[string]string{
	"heartbeat": `{"extendSeconds":5%s}`, "nack": `{"delaySeconds":0%s}`, "abandon": `{%s}`, "release": `{%s}`, "result": `{"result":{}%s}`,
}

// formed is a body with more members, each behind a comma.
func formed(form, more string) string {
	return strings.Replace(fmt.Sprintf(form, more), "{,", "{", 1)
}

func deliveryWalk() (visits []visit) {
	for verb, form := range verbs {
		to := func(task, more string, code wire.Code) {
			visits = append(visits, visit{method: "POST", path: "/tasks/" + task + "/" + verb, body: formed(form, more), code: code})
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
			visits = append(visits, visit{who: who, method: "POST", path: "/tasks/{held}/" + verb, body: formed(form, ""), code: code})
		}
	}
	return visits
}
