package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"codeq/session"
	"codeq/wire"
)

// members are the members of an enqueue, good or bad; code is "" for good ones.
var members = []struct {
	name string
	text string
	code wire.Code
}{
	{"no members", ``, wire.CodeInvalidCommand},
	{"a field twice", `"command":"c","payload":1,"command":"c"`, wire.CodeInvalidBody},
	{"payload twice", `"command":"c","payload":1,"payload":2`, wire.CodeInvalidBody},
	{"a field that is not known", `"command":"c","payload":1,"maxAtempts":1`, wire.CodeUnknownMember},
	{"an unknown field twice", `"command":"c","payload":1,"x":1,"x":2`, wire.CodeUnknownMember},
	{"an unknown field in the payload", `"command":"c","payload":{"maxAtempts":1,"x":1,"x":2}`, ""},
	{"no payload", `"command":"c"`, wire.CodeInvalidBody},
	{"null payload", `"command":"c","payload":null`, ""},

	{"number as command", `"command":1,"payload":1`, wire.CodeInvalidCommand},
	{"null command", `"command":null,"payload":1`, wire.CodeInvalidCommand},
	{"empty command", `"command":"","payload":1`, wire.CodeInvalidCommand},
	{"command of dots", `"command":"..","payload":1`, wire.CodeInvalidCommand},
	{"slash in command", `"command":"a/b","payload":1`, wire.CodeInvalidCommand},
	{"space in command", `"command":"a b","payload":1`, wire.CodeInvalidCommand},
	{"percent in command", `"command":"a%2Fb","payload":1`, wire.CodeInvalidCommand},
	{"NUL in command", `"command":"a\u0000","payload":1`, wire.CodeInvalidCommand},
	{"letters of others in command", `"command":"tâche","payload":1`, wire.CodeInvalidCommand},
	{"command of 200 bytes", `"command":"` + strings.Repeat("c", 200) + `","payload":1`, ""},
	{"command of 201 bytes", `"command":"` + strings.Repeat("c", 201) + `","payload":1`, wire.CodeInvalidCommand},
	{"command of all signs", `"command":"A.b_c:d-9","payload":1`, ""},

	{"priority 9", `"command":"c","payload":1,"priority":9`, ""},
	{"priority 10", `"command":"c","payload":1,"priority":10`, wire.CodeInvalidPriority},
	{"priority -1", `"command":"c","payload":1,"priority":-1`, wire.CodeInvalidPriority},
	{"priority 1.5", `"command":"c","payload":1,"priority":1.5`, wire.CodeInvalidPriority},
	{"priority 1e400", `"command":"c","payload":1,"priority":1e400`, wire.CodeInvalidPriority},
	{"priority of 20 digits", `"command":"c","payload":1,"priority":12345678901234567890`, wire.CodeInvalidPriority},
	{"string as priority", `"command":"c","payload":1,"priority":"1"`, wire.CodeInvalidPriority},
	{"no attempts", `"command":"c","payload":1,"maxAttempts":0`, wire.CodeInvalidArgument},
	{"1001 attempts", `"command":"c","payload":1,"maxAttempts":1001`, wire.CodeInvalidArgument},

	{"number as key", `"command":"c","payload":1,"idempotencyKey":5`, wire.CodeInvalidArgument},
	{"empty key", `"command":"c","payload":1,"idempotencyKey":""`, wire.CodeInvalidArgument},
	{"key of 513 bytes", `"command":"c","payload":1,"idempotencyKey":"` + strings.Repeat("k", 513) + `"`, wire.CodeInvalidArgument},

	{"both times", `"command":"c","payload":1,"runAt":"2031-01-01T00:00:00Z","delaySeconds":1`, wire.CodeInvalidTime},
	{"number as runAt", `"command":"c","payload":1,"runAt":5`, wire.CodeInvalidTime},
	{"date as runAt", `"command":"c","payload":1,"runAt":"2031-01-01"`, wire.CodeInvalidTime},
	{"string as delay", `"command":"c","payload":1,"delaySeconds":"1"`, wire.CodeInvalidTime},
	{"negative delay", `"command":"c","payload":1,"delaySeconds":-1`, wire.CodeInvalidTime},
	{"delay of 20 digits", `"command":"c","payload":1,"delaySeconds":12345678901234567890`, wire.CodeInvalidTime},
	{"a webhook", `"command":"c","payload":1,"webhook":"ftp://127.0.0.1/"`, wire.CodeInvalidWebhook},

	{"payload of 1e400", `"command":"c","payload":1e400`, ""},
	{"payload of 20 digits", `"command":"c","payload":12345678901234567890`, ""},
	{"payload with NUL escape", `"command":"c","payload":"\u0000"`, ""},
	{"payload with half a pair", `"command":"c","payload":"\udfff"`, ""},
	{"payload nested 64", `"command":"c","payload":` + nested(64), ""},
	{"payload nested 65", `"command":"c","payload":` + nested(65), wire.CodeInvalidBody},
	{"payload below the limit", `"command":"c","payload":` + sized(wire.MaxPayloadBytes-1), ""},
	{"payload at the limit", `"command":"c","payload":` + sized(wire.MaxPayloadBytes), ""},
	{"payload over the limit", `"command":"c","payload":` + sized(wire.MaxPayloadBytes+1), wire.CodeTooLarge},
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func sized(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }

func TestEveryEnqueueIsAcceptedOrRefusedByItsCodeOverBothFaces(t *testing.T) {
	x := openSite(t, t.TempDir())
	k := x.dial()
	for i, m := range members {
		a := x.ask("POST", "/v1/codeq/tasks", "{"+m.text+"}")
		if m.code == "" && a.status != http.StatusAccepted || a.code() != m.code {
			t.Errorf("HTTP, %s: %d %s, want %q", m.name, a.status, a.body, m.code)
		}
		comma := ""
		if m.text != "" {
			comma = ","
		}
		ref := int64(i + 1)
		k.say(fmt.Sprintf(`{"type":"enqueue","ref":%d%s%s}`, ref, comma, m.text))
		if m.code == "" {
			if ok := hear[*wire.OK](k); ok.Ref.Value != ref || ok.TaskID.IsZero() {
				t.Errorf("session, %s: answered %+v", m.name, ok)
			}
			continue
		}
		if e := hear[*wire.ErrorFrame](k); e.Ref.Value != ref || e.Err.Code != m.code || e.Err.Sentence == "" {
			t.Errorf("session, %s: %v %+v, want %s", m.name, e.Ref, e.Err, m.code)
		}
	}
	// Each good one was accepted twice; nothing of a bad one is left.
	x.mustHoldTasks(2 * good())
}

func good() (n int64) {
	for _, m := range members {
		if m.code == "" {
			n++
		}
	}
	return n
}

// mustHoldTasks checks the sum over all queues and posts one more.
func (x *site) mustHoldTasks(want int64) {
	x.t.Helper()
	a := x.ask("GET", "/v1/codeq/admin/queues", "")
	queues, err := wire.ParseQueueList([]byte(a.body))
	if err != nil {
		x.t.Fatalf("%s: %v", a.body, err)
	}
	var have int64
	for _, q := range queues {
		have += q.Ready + q.Delayed + q.InProgress
	}
	if have != want {
		x.t.Errorf("the server holds %d tasks, want %d", have, want)
	}
	x.post(okTask)
}

// texts are whole bodies or messages. closes says that the message is against
// the protocol, so that a session ends with it.
var texts = []struct {
	name   string
	text   string
	code   wire.Code
	closes bool
}{
	{"nothing", "", wire.CodeInvalidBody, true},
	{"blanks", " \r\n", wire.CodeInvalidBody, true},
	{"not JSON", "command=c", wire.CodeInvalidBody, true},
	{"cut off", `{"type":"enqueue","command":"c","payload":1`, wire.CodeInvalidBody, true},
	{"two values", `{"type":"enqueue","command":"c","payload":1}{}`, wire.CodeInvalidBody, true},
	{"something behind it", `{"type":"enqueue","command":"c","payload":1}x`, wire.CodeInvalidBody, true},
	{"a leading zero", `{"type":"enqueue","command":"c","payload":01}`, wire.CodeInvalidBody, true},
	{"a comma too many", `{"type":"enqueue","command":"c","payload":[1,]}`, wire.CodeInvalidBody, true},
	{"a byte order mark", "\ufeff" + `{"type":"enqueue","command":"c","payload":1}`, wire.CodeInvalidBody, true},
	{"invalid UTF-8", "{\"type\":\"enqueue\",\"command\":\"c\",\"payload\":\"\xc3\x28\"}", wire.CodeInvalidBody, true},
	{"a NUL", "{\"type\":\"enqueue\",\"command\":\"c\",\"payload\":\"\x00\"}", wire.CodeInvalidBody, true},
	{"half an escape", `{"type":"enqueue","command":"c","payload":"\u12"}`, wire.CodeInvalidBody, true},
	{"brackets without end", strings.Repeat("[", 1_000_000), wire.CodeInvalidBody, true},
	{"a number", "1", wire.CodeInvalidBody, false},
	{"a string", `"enqueue"`, wire.CodeInvalidBody, false},
	{"null", "null", wire.CodeInvalidBody, false},
	{"an array of numbers", "[1]", wire.CodeInvalidBody, false},
}

func TestTextThatIsNoRequestIsRefusedOrEndsItsSessionAlone(t *testing.T) {
	x := openSite(t, t.TempDir())
	bystander := x.dial()
	for _, c := range texts {
		if a := x.ask("POST", "/v1/codeq/tasks", c.text); a.code() != c.code || a.status != c.code.HTTPStatus() {
			t.Errorf("HTTP, %s: %d %s, want %s", c.name, a.status, a.body, c.code)
		}
		k := x.dial()
		k.say(c.text)
		if c.closes {
			if code := k.closeCode(); code != session.CloseProtocol {
				t.Errorf("session, %s: closed with %d", c.name, code)
			}
			continue
		}
		if e := hear[*wire.ErrorFrame](k); e.Err.Code != c.code {
			t.Errorf("session, %s: %+v, want %s", c.name, e.Err, c.code)
		}
		k.say(`{"type":"enqueue","ref":1,"command":"after","payload":1}`)
		hear[*wire.OK](k)
	}
	bystander.say(`{"type":"enqueue","ref":1,"command":"after","payload":1}`)
	hear[*wire.OK](bystander)
	x.mustHoldTasks(5)
}

func TestMessageOverTheLimitEndsItsSessionAlone(t *testing.T) {
	x := openSite(t, t.TempDir())
	k := x.dial()
	k.say(`{"type":"enqueue","command":"c","payload":"` + strings.Repeat("x", wire.MaxClientMessageBytes) + `"}`)
	if code := k.closeCode(); code != session.CloseProtocol {
		t.Errorf("closed with %d", code)
	}
	x.mustHoldTasks(0)
}

func TestOutcomeThatIsRefusedLeavesTheTaskInHand(t *testing.T) {
	x := openSite(t, t.TempDir())
	task := x.post(okTask)
	k := x.dial()
	k.say(`{"type":"subscribe","ref":1,"commands":["c"]}`)
	hear[*wire.OK](k)
	token := hear[*wire.TaskFrame](k).Token
	frame := func(fields string) string {
		return fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v",%s}`, task.ID, token, fields)
	}
	for _, c := range []struct {
		fields string
		code   wire.Code
	}{
		{`"result":` + `{"x":` + sized(wire.MaxResultBytes-5) + `}`, wire.CodeTooLarge},
		{`"result":[]`, wire.CodeInvalidResult},
		{`"result":null`, wire.CodeInvalidResult},
		{`"status":"DONE","result":{}`, wire.CodeInvalidResult},
		{`"status":"FAILED"`, wire.CodeInvalidResult},
		{`"error":"` + strings.Repeat("x", wire.MaxErrorBytes+1) + `"`, wire.CodeTooLarge},
		{`"result":{},"artifacts":[{"name":"a","contentBase64":"AA=="}]`, wire.CodeInvalidResult},
		{`"result":{},"result":{}`, wire.CodeInvalidBody},
	} {
		k.say(frame(c.fields))
		if e := hear[*wire.ErrorFrame](k); e.Err.Code != c.code || e.TaskID != task.ID || e.Ref.Value != 2 {
			t.Errorf("%.60s: %+v %+v, want %s", c.fields, e, e.Err, c.code)
		}
	}
	k.say(frame(`"result":` + `{"x":` + nested(64) + `}`))
	if e := hear[*wire.ErrorFrame](k); e.Err.Code != wire.CodeInvalidBody || e.Ref.Value != 2 {
		t.Errorf("result nested 65: %+v %+v", e, e.Err)
	}
	full := `{"x":` + sized(wire.MaxResultBytes-6) + `}`
	k.say(frame(`"result":` + full))
	hear[*wire.OK](k)
	a := x.ask("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, full) {
		t.Errorf("result: %d %.300s", a.status, a.body)
	}
}
