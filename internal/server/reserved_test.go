package server

import (
	"strings"
	"testing"

	"codeq/wire"
)

func TestNoClientUsesACommandOfTheServer(t *testing.T) {
	x := openSite(t, t.TempDir())
	const want = "must not begin with codeq., which is reserved for queues of the server; use another name"
	for _, request := range [][3]string{
		{"POST", "/v1/codeq/tasks", `{"command":"codeq.x","payload":1}`},
		{"POST", "/v1/codeq/tasks/batch", `{"tasks":[{"command":"codeq.x","payload":1}]}`},
		{"POST", "/v1/codeq/tasks/claim", `{"commands":["codeq.x"]}`},
		{"POST", "/v1/codeq/tasks/claim/batch", `{"commands":["codeq.x"]}`},
		{"PUT", "/v1/codeq/admin/queues/codeq.x", `{}`},
		{"POST", "/v1/codeq/admin/queues/codeq.x/pause", ``},
		{"POST", "/v1/codeq/admin/queues/codeq.x/resume", ``},
		{"DELETE", "/v1/codeq/admin/queues/codeq.x", ``},
		{"PUT", "/v1/codeq/admin/queues/codeq.webhook", `{}`},
		{"DELETE", "/v1/codeq/admin/queues/codeq.webhook", ``},
	} {
		if a := x.ask(request[0], request[1], request[2]); !strings.Contains(a.body, want) || !strings.Contains(a.body, `"code":"invalid_command"`) {
			t.Errorf("%v: %d %s", request, a.status, a.body)
		}
	}
	k := x.dial()
	for _, frame := range []string{`{"type":"enqueue","ref":1,"command":"codeq.x","payload":1}`, `{"type":"subscribe","ref":2,"commands":["codeq.x"]}`} {
		k.say(frame)
		if e, ok := k.next().(*wire.ErrorFrame); !ok || e.Err.Code != wire.CodeInvalidCommand || !strings.Contains(e.Err.Sentence, want) {
			t.Errorf("%s is answered %+v", frame, e)
		}
	}
	x.post(`{"command":"codeqx","payload":1}`)
}
