package faults

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
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

// A page of what a search finds follows its tasks: they change and leave, others that come are not
// told. It says how many tasks were looked at, and where the next page begins.
func TestE17APageOfASearchFollowsItsTasks(t *testing.T) {
	x := newSite(t)
	x.post(command, 20, 0)
	dies := func() string {
		id := x.cli("enqueue", "billing.pdf", "1", "--max-attempts", "1")[0]
		x.ask(http.MethodPost, "/tasks/claim", `{"commands":["billing.pdf"],"workerId":"w1"}`)
		x.ask(http.MethodPost, "/tasks/"+id+"/nack", `{"workerId":"w1","reason":"\nread timeout"}`)
		return id
	}
	ids := []string{dies(), dies()}
	subscribe := `{"type":"subscribe","id":"p","kind":"page","filter":{"error~":"timeout"}}`
	first := nextOf[*wire.WatchSnapshot](x.socket(subscribe))
	if len(first.Tasks) != 2 || first.Scanned == nil || *first.Scanned != 22 || first.Above != nil || first.Cursor != "" || first.AtMs == 0 || first.Tasks[0].Error != "read timeout" {
		t.Fatalf("the page is %+v", first)
	}
	subscribe = strings.TrimSuffix(subscribe, "}") + `,"limit":1`
	one := nextOf[*wire.WatchSnapshot](x.socket(subscribe + "}"))
	next := nextOf[*wire.WatchSnapshot](x.socket(subscribe + `,"cursor":"` + one.Cursor + `"}`))
	if len(one.Tasks) != 1 || len(next.Tasks) != 1 || one.Tasks[0].ID == next.Tasks[0].ID {
		t.Fatalf("pages of one task each are %+v and %+v", one, next)
	}
	f := x.socket(strings.TrimSuffix(subscribe, `,"limit":1`) + "}")
	nextOf[*wire.WatchSnapshot](f)
	dies()
	x.ask(http.MethodPost, "/admin/tasks/"+ids[0]+"/replay", "{}")
	if tick := nextOf[*wire.WatchTick](f); len(tick.Tasks) != 1 || tick.Tasks[0].ID.String() != ids[0] || tick.Tasks[0].Status != wire.StatusPending || tick.Above != nil {
		t.Fatalf("a task that was replayed comes as %+v", tick)
	}
	x.ask(http.MethodDelete, "/admin/queues/billing.pdf/dlq?cause=all", "")
	if tick := nextOf[*wire.WatchTick](f); !slices.Equal(tick.Left, ids[1:]) || tick.Tasks != nil {
		t.Fatalf("a task that was removed comes as %+v", tick)
	}
}
