package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"codeq/wire"
)

// hooked is a server with one receiver of what it posts.
type hooked struct {
	*site
	log      *keptLog
	url      string
	status   atomic.Int32
	arrivals chan *arrival
}

type arrival struct {
	header http.Header
	body   []byte
}

func openHooked(t *testing.T) *hooked {
	t.Helper()
	x := &hooked{log: new(keptLog), arrivals: make(chan *arrival, 1000)}
	x.status.Store(http.StatusNoContent)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(int(x.status.Load()))
		_, _ = io.WriteString(w, "private") // the status tells whether it came
		x.arrivals <- &arrival{r.Header, body}
	}))
	t.Cleanup(receiver.Close)
	x.url = receiver.URL + "/hook?key=1"
	s, err := Open(Options{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Names: Names{WebhookAllow: []string{"127.0.0.1"}},
		Log: zerolog.New(x.log).Level(zerolog.DebugLevel),
	})
	if err != nil {
		t.Fatal(err)
	}
	x.site = newSite(t, s)
	return x
}

// endpoint does something with the endpoint e.
func (x *hooked) endpoint(method, verb, body string) *wire.EndpointFigures {
	x.t.Helper()
	a := x.ask(method, "/v1/codeq/admin/webhooks/e"+verb, body)
	e, err := wire.ParseEndpointFigures([]byte(a.body))
	if a.status != http.StatusOK || err != nil {
		x.t.Fatalf("%s%s: %d %s %v", method, verb, a.status, a.body, err)
	}
	return e
}

// outcome cancels a new task, and returns its id.
func (x *hooked) outcome() wire.TaskID {
	x.t.Helper()
	id := x.post(`{"command":"c","payload":1}`).ID
	x.mustDo("POST", "/tasks/"+id.String()+"/cancel", "")
	return id
}

// arrives waits for the next thing that arrives, and verifies it with each of those secrets.
func (x *hooked) arrives(secrets ...string) *arrival {
	x.t.Helper()
	select {
	case a := <-x.arrivals:
		for _, secret := range secrets {
			hook, err := standardwebhooks.NewWebhook(secret)
			if err == nil {
				err = hook.Verify(a.body, a.header)
			}
			if err != nil {
				x.t.Errorf("%v: %v", a.header, err)
			}
		}
		return a
	case <-time.After(patience):
		x.t.Fatal("nothing arrives")
		return nil
	}
}

// callbackOf is the last callback of a task, in a state.
func (x *hooked) callbackOf(id wire.TaskID, want wire.Status) *wire.Task {
	x.t.Helper()
	history := x.read(id).History
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if task := x.read(history[len(history)-1].Callback); task.Status == want {
			return task
		}
		time.Sleep(5 * time.Millisecond) // the worker works beside; nothing tells
	}
	x.t.Fatalf("the callback of %v is not %s", id, want)
	return nil
}

// An endpoint gets outcomes that a library of Standard Webhooks verifies, with both secrets
// while one is replaced. Its secrets are shown once and are in no other answer and no log.
func TestAnEndpointGetsOutcomesAndTellsNoSecret(t *testing.T) {
	x := openHooked(t)
	made := x.endpoint("PUT", "", `{"url":"`+x.url+`","statuses":["CANCELLED"]}`)
	if made.Secret == "" || made.Version != 1 || made.State != wire.EndpointEnabled || made.Name != "e" {
		t.Fatalf("%+v", made)
	}
	id := x.outcome()
	var got struct{ EventType, TaskID, Status string }
	if a := x.arrives(made.Secret); json.Unmarshal(a.body, &got) != nil || got.TaskID != id.String() || got.EventType != "c" || got.Status != "CANCELLED" ||
		!strings.HasPrefix(a.header.Get("Webhook-Id"), id.String()+".") {
		t.Errorf("%s %v", a.body, a.header)
	}
	rotated := x.endpoint("POST", "/rotate", "")
	if rotated.Secret == made.Secret || rotated.OldSecretUntilMs < time.Now().Add(23*time.Hour).UnixMilli() {
		t.Errorf("%+v", rotated)
	}
	x.outcome()
	x.arrives(made.Secret, rotated.Secret)
	if again := x.endpoint("PUT", "", `{"url":"`+x.url+`"}`); again.Secret != "" || again.Version != 3 || again.Statuses != nil {
		t.Errorf("%+v", again)
	}
	x.outcome()
	x.arrives(made.Secret, rotated.Secret)
	if a := x.ask("POST", "/v1/codeq/admin/webhooks/e/test", ""); !strings.HasPrefix(a.body, `{"status":204,"ms":`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := x.arrives(rotated.Secret); !strings.HasPrefix(string(a.body), `{"eventType":"codeq.test","webhook":"e","sentAt":"`) {
		t.Errorf("%s", a.body)
	}
	own := "whsec_" + strings.Repeat("QUJD", 8)
	if e := x.endpoint("POST", "/rotate", `{"secret":"`+own+`"}`); e.Secret != own {
		t.Errorf("%+v", e)
	}
	shown := x.ask("GET", "/v1/codeq/admin/webhooks", "").body + x.ask("GET", "/v1/codeq/admin/webhooks/e", "").body +
		x.ask("DELETE", "/v1/codeq/admin/webhooks/e", "").body
	x.close()
	for _, secret := range []string{made.Secret, rotated.Secret, own, "whsec", "private"} {
		if strings.Contains(shown, secret) || strings.Contains(x.log.String(), secret) {
			t.Errorf("%s is in answers or the log:\n%s\n%s", secret, shown, x.log.String())
		}
	}
}

// One that is gone is disabled; whoever enables it gets what has waited. A callback that has
// arrived, or died, is posted again under its id.
func TestWhatWaitsForADisabledEndpointComesWhenItIsEnabled(t *testing.T) {
	x := openHooked(t)
	x.status.Store(http.StatusGone)
	made := x.endpoint("PUT", "", `{"url":"`+x.url+`"}`)
	first := x.outcome()
	id := x.arrives().header.Get("Webhook-Id")
	for x.endpoint("GET", "", "").State != wire.EndpointDisabled {
		time.Sleep(5 * time.Millisecond) // the worker works beside; nothing tells
	}
	if !strings.Contains(x.log.String(), `"endpoint disabled"`) || !strings.Contains(x.ask("GET", "/metrics", "").body, `codeq_webhook_endpoints{state="disabled"} 1`) {
		t.Errorf("nobody is told:\n%s", x.log.String())
	}
	second := x.outcome()
	for x.callbackOf(second, wire.StatusPending).Location != wire.LocationDelayed {
		time.Sleep(5 * time.Millisecond) // the worker works beside; nothing tells
	}
	x.status.Store(http.StatusOK)
	x.endpoint("POST", "/enable", "")
	came := map[string]bool{x.arrives(made.Secret).header.Get("Webhook-Id"): true, x.arrives(made.Secret).header.Get("Webhook-Id"): true}
	if !came[id] || len(came) != 2 {
		t.Errorf("%v came, want %s", came, id)
	}
	done := x.callbackOf(first, wire.StatusCompleted)
	redeliver := func(id wire.TaskID, want int) {
		t.Helper()
		if a := x.ask("POST", "/v1/codeq/admin/tasks/"+id.String()+"/redeliver", ""); a.status != want {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	redeliver(done.ID, http.StatusOK)
	if again := x.arrives(made.Secret).header.Get("Webhook-Id"); again != id {
		t.Errorf("%s comes again, want %s", again, id)
	}
	redeliver(first, http.StatusBadRequest)
	x.endpoint("PUT", "", `{"url":"http://127.0.0.2:1/"}`)
	third := x.outcome()
	dead := x.callbackOf(third, wire.StatusFailed) // the guard refuses that address
	for _, attempt := range []struct {
		of     *wire.Task
		reason string
	}{{done, "the endpoint answered 410"}, {dead, "may not be called"}} {
		if lines := attempt.of.History; !slices.ContainsFunc(lines, func(l wire.HistoryLine) bool { return strings.Contains(l.Error, attempt.reason) }) {
			t.Errorf("the attempts of %s are %+v, none says that %s", attempt.of.ID, lines, attempt.reason)
		}
	}
	x.endpoint("PUT", "", `{"url":"`+x.url+`"}`)
	redeliver(dead.ID, http.StatusOK)
	x.arrives(made.Secret)
}

func TestEndpointsAreRefused(t *testing.T) {
	x := openHooked(t)
	path := "/v1/codeq/admin/webhooks/"
	for i := range wire.MaxEndpoints {
		x.mustDo("PUT", "/admin/webhooks/"+string(rune('a'+i)), `{"url":"https://example.com/"}`)
	}
	for _, c := range []struct{ name, body, want string }{
		{"z", `{"url":"https://example.com/"}`, "too_large"},
		{"secret", `{"url":"https://example.com/"}`, ""},
		{"a", `{"url":"ftp://example.com/"}`, "invalid_webhook"},
		{"a", `{}`, "invalid_webhook"},
		{"a", `{"url":"https://example.com/","statuses":["PENDING"]}`, "statuses must hold only COMPLETED, FAILED, CANCELLED, element 0 is none"},
		{"a", `{"url":"https://example.com/","commands":["a*"]}`, "invalid_command"},
		{"a", `{"url":"https://example.com/","secret":"whsec_QUJD"}`, "secret must be whsec_ and base64 of 24 to 64 bytes"},
		{"a", `{"url":"https://example.com/","state":"off"}`, "state must be enabled or disabled"},
		{"a", `{"url":"https://example.com/","version":9}`, "version_conflict"},
		{"a", `{"url":"https://example.com/","oldSecret":"x"}`, "unknown_member"},
		{"%20", `{"url":"https://example.com/"}`, "the name of a webhook may hold only"},
	} {
		if a := x.ask("PUT", path+c.name, c.body); a.status < 400 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.name, c.body, a.status, a.body, c.want)
		}
	}
}
