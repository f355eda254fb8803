package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/internal/httpapi"
)

// logLine is a line of the log.
type logLine map[string]any

// records are the lines of the log so far that say this.
func records(t *testing.T, log *lockedBuffer, message string) (found []logLine) {
	t.Helper()
	for line := range strings.Lines(log.text()) {
		var r logLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q is no line of the log: %v", line, err)
		}
		if said, _ := r["message"].(string); strings.HasPrefix(said, message) {
			found = append(found, r)
		}
	}
	return found
}

// adminBodies are those that routes want.
var adminBodies = map[string]string{
	"PUT /v1/codeq/admin/queues/{command}":             `{"maxAttempts":3}`,
	"PUT /v1/codeq/admin/webhooks/{name}":              `{"url":"https://example.com/"}`,
	"POST /v1/codeq/admin/queues/{command}/tasks/move": `{"toPriority":3}`,
	"POST /v1/codeq/admin/tasks/{id}/move":             `{"toPriority":3}`,
}

func TestU13EveryChangeByAnAdminLeavesALineWithWhoWhatAndFromWhere(t *testing.T) {
	file, log := newTokenFile(t), &lockedBuffer{}
	owner := file.add("shop", []string{"admin", "operator", "producer"}, []string{"*"})
	x := openGuarded(file, log).as(owner)
	for _, route := range httpapi.Routes() {
		method, path, _ := strings.Cut(route, " ")
		admin := strings.HasPrefix(path, "/v1/codeq/admin/")
		path = strings.NewReplacer("{command}", "held", "{tenant}", "shop", "{name}", "w", "{id}", unknownID, "{session}", unknownID, "{node}", unknownID).Replace(path)
		before := len(records(t, log, "admin"))
		if !admin {
			continue
		}
		x.ask(method, path, adminBodies[route])
		lines := records(t, log, "admin")[before:]
		changes := method != "GET" || strings.HasSuffix(path, "/backup")
		if !changes && len(lines) > 0 {
			t.Errorf("%s changes nothing and leaves %v", route, lines)
		}
		if !changes {
			continue
		}
		if len(lines) != 1 {
			t.Fatalf("%s leaves %d lines, want 1", route, len(lines))
		}
		line := lines[0]
		remote, _ := line["remote"].(string)
		if line["tenant"] != "shop" || line["subject"] != "s" || line["method"] != method || line["path"] != path ||
			!strings.HasPrefix(remote, "127.0.0.1:") || line["status"] == nil || line["requestId"] == nil {
			t.Errorf("%s leaves %v", route, line)
		}
	}
	settings := records(t, log, "admin")
	has := func(line logLine) bool { return line["settings"] != nil }
	if i := slices.IndexFunc(settings, has); i < 0 || settings[i]["settings"].(map[string]any)["maxAttempts"] != 3.0 {
		t.Errorf("no line has the settings that were set: %v", settings)
	}
	if counted := slices.DeleteFunc(settings, func(line logLine) bool { return line["done"] == nil }); len(counted) != 6 {
		t.Errorf("%d lines say how many were worked on, want those of cancel, run, move, replay, purge and cleanup: %v", len(counted), counted)
	}
}

func TestU13WhatIsRefusedBecauseOfWhoAskedLeavesALine(t *testing.T) {
	file, log := newTokenFile(t), &lockedBuffer{}
	producer := file.add("shop", []string{auth.ScopeProduce}, []string{"mail"})
	x := openGuarded(file, log)
	x.as("cq_wrong").ask("GET", "/v1/codeq/admin/queues", "")
	x.as(producer).ask("DELETE", "/v1/codeq/admin/queues/mail/dlq", "")
	x.as(producer).ask("POST", "/v1/codeq/tasks", `{"command":"other","payload":1}`)
	x.as("cq_wrong").connect().closeCode()
	_, _, err := gws.NewClient(&gws.BuiltinEventHandler{}, &gws.ClientOption{
		Addr: "ws://" + x.server.Addr() + "/v1/codeq/session", RequestHeader: http.Header{"Authorization": {"Bearer cq_wrong"}},
	})
	if err == nil {
		t.Error("an upgrade with a wrong token is a session")
	}
	x.as(producer).ask("GET", "/v1/codeq/tasks/"+unknownID, "") // not found is no matter of who asks
	want := map[string]string{
		"GET /v1/codeq/admin/queues":             "unauthenticated",
		"DELETE /v1/codeq/admin/queues/mail/dlq": "forbidden shop s",
		"POST /v1/codeq/tasks":                   "forbidden shop s",
		"GET /v1/codeq/session":                  "unauthenticated",
		"hello":                                  "unauthenticated",
	}
	got := map[string]string{}
	for _, line := range records(t, log, "refused: ") {
		text, _ := line["code"].(string)
		for _, member := range []string{"tenant", "subject"} {
			if who, ok := line[member].(string); ok {
				text += " " + who
			}
		}
		what, _ := line["what"].(string)
		got[what] = text
		if remote, _ := line["remote"].(string); !strings.HasPrefix(remote, "127.0.0.1:") {
			t.Errorf("a line does not say from where: %v", line)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the log says %v, want %v", got, want)
	}
}

func TestU13AFloodOfWrongTokensIsNoFloodOfLines(t *testing.T) {
	file, log := newTokenFile(t), &lockedBuffer{}
	file.addAll("shop")
	x := openGuarded(file, log).as("cq_wrong")
	const asked = 500
	for range asked {
		x.ask("GET", "/v1/codeq/admin/queues", "")
	}
	if n := len(records(t, log, "refused: ")); n < 1 || n > asked/2 {
		t.Errorf("%d requests in a moment leave %d lines, want 1 to %d", asked, n, asked/2)
	}
}
