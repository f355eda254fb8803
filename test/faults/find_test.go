package faults

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"codeq/test/blackbox"
)

// cli runs the program and returns the lines of its output.
func (x *site) cli(args ...string) []string {
	x.t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		x.t.Fatal(err)
	}
	out, err := exec.CommandContext(x.ctx, program, append(args, "--url", x.server.URL())...).Output()
	if err != nil {
		x.t.Fatalf("%q: %v", args, err)
	}
	return strings.Fields(string(out))
}

// A person finds a task over the command line by its id, a label, a part of its error, its
// worker and its age, also after the server was killed; what is removed is found no more.
func TestE17TaskIsFoundByIDLabelErrorWorkerAndAge(t *testing.T) {
	x := newSite(t)
	id := x.cli("enqueue", "billing.pdf", `{"order":42}`, "--label", "customer=acme", "--label", "run=2026-11", "--max-attempts", "1")[0]
	other := x.cli("enqueue", "billing.mail", "1", "--label", "customer=Müller & Co")[0]
	for range 30 {
		x.post(command, 1, 1)
	}
	x.ask(http.MethodPost, "/tasks/claim", `{"commands":["billing.pdf"],"workerId":"w1"}`)
	x.ask(http.MethodPost, "/tasks/"+id+"/nack", `{"workerId":"w1","reason":"read timeout after 30s"}`)
	finds := func(want []string, args ...string) {
		t.Helper()
		if got := x.cli(append([]string{"find", "--quiet"}, args...)...); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", args, got, want)
		}
	}
	kept := func() {
		t.Helper()
		finds([]string{id}, id)
		finds([]string{id}, "--label", "customer=acme")
		finds([]string{id}, "--error", "timeout")
	}
	kept()
	finds([]string{id}, "--label", "run=2026-11", "--label", "customer=acme")
	finds([]string{other}, "--label", "customer=Müller & Co")
	finds(nil, "--label", "customer=acm")
	finds([]string{id}, "--worker", "w1", "--state", "dlq", "--attempts", "1")
	finds([]string{id}, "--payload", `"order":42`)
	finds([]string{other}, "--command", "billing.*", "--state", "ready")
	finds(nil, "--older", "1h")
	if n := len(x.cli("find", "--quiet", "--older", "0s")); n != 32 {
		t.Errorf("%d of 32 tasks are older than nothing", n)
	}
	x.server.Kill()
	x.server.Start()
	kept()
	if got := strings.Join(x.cli("find", id), " "); !strings.Contains(got, "billing.pdf") || !strings.Contains(got, "timeout") {
		t.Errorf("it is shown as %q", got)
	}
	x.ask(http.MethodDelete, fmt.Sprintf("/admin/queues/%s/dlq?cause=all", "billing.pdf"), "")
	finds(nil, "--label", "customer=acme")
}
