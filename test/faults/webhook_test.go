package faults

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/wire"
)

// receiver takes outcomes, but for each seventh, which it wants again after a second.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	keys   map[string][]byte // by path
	asked  int
	bodies map[string]string // by path and webhook-id
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, keys: map[string][]byte{}, bodies: map[string]string{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the server was killed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.asked%7 == 0 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	id := req.Header.Get("webhook-id")
	name := req.URL.Path + " " + id
	if known, again := r.bodies[name]; again && known != string(body) {
		r.t.Errorf("%s came as %s and as %s", name, known, body)
	}
	m := hmac.New(sha256.New, r.keys[req.URL.Path])
	_, _ = fmt.Fprintf(m, "%s.%s.%s", id, req.Header.Get("webhook-timestamp"), body) // a hash takes everything
	if got := req.Header.Get("webhook-signature"); got != "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)) {
		r.t.Errorf("%s has the signature %s", name, got)
	}
	r.bodies[name] = string(body)
	w.WriteHeader(http.StatusNoContent)
}

// named are the paths to which outcomes of a task have come, in order, each as often as it came
// under another webhook-id.
func (r *receiver) named(id wire.TaskID) (paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.bodies {
		if path, webhook, _ := strings.Cut(name, " "); strings.HasPrefix(webhook, id.String()+".") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// hook gives the tenant a webhook at a path of the receiver.
func (x *site) hook(r *receiver, name, more string) {
	x.t.Helper()
	secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(name, 32)[:32]))
	x.ask(http.MethodPut, "/admin/webhooks/"+name, fmt.Sprintf(`{"url":%q,"secret":"whsec_%s"%s}`, r.server.URL+"/"+name, secret, more))
	r.keys["/"+name] = []byte(strings.Repeat(name, 32)[:32])
}

func (x *site) hookSecret() []byte {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/webhooks/secret", "")
	if err != nil {
		x.t.Fatal(err)
	}
	var told struct{ Secret string }
	if err := json.Unmarshal(answer.Body, &told); err != nil {
		x.t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(told.Secret, "whsec_"))
	if err != nil {
		x.t.Fatal(err)
	}
	return key
}

// posts are how tasks of the kill test are posted, with the paths to which their outcomes go.
var posts = []struct {
	command string
	webhook bool
	to      []string
}{{"c", true, []string{"/"}}, {"e.x", false, []string{"/far"}}, {"e.y", true, []string{"/", "/far"}}, {"near", false, []string{"/near"}}}

// The server is killed again and again between the ends of tasks and what it posts of them: to their
// webhooks, to those of the tenant, and to both. What ended arrives at each, under one id and with one
// body, and what did not end arrives never.
func TestA51KillsLoseNoCallbackAndMakeNone(t *testing.T) {
	r := newReceiver(t)
	x := newSite(t, "--webhook-allow", "127.0.0.0/8")
	r.keys["/"] = x.hookSecret()
	x.hook(r, "far", `,"commands":["e.*"]`)
	x.hook(r, "near", `,"commands":["near"],"statuses":["FAILED","CANCELLED"]`)
	x.hook(r, "done", `,"statuses":["COMPLETED"]`)
	chance := rand.New(rand.NewPCG(51, 1))
	var ids []wire.TaskID
	acknowledged := map[wire.TaskID]bool{}
	for range scale(4, 200) {
		var round []wire.TaskID
		for n := range 2 * len(posts) {
			how, webhook := posts[n%len(posts)], ""
			if how.webhook {
				webhook = r.server.URL + "/"
			}
			task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":1,"webhook":%q}`, how.command, webhook))
			if err != nil {
				t.Fatal(err)
			}
			round = append(round, task.ID)
		}
		ids = append(ids, round...)
		ended := make(chan []wire.TaskID)
		go func() {
			var done []wire.TaskID
			for _, id := range round {
				if answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/cancel", ""); err == nil && answer.Status == http.StatusOK {
					done = append(done, id)
				}
			}
			ended <- done
		}()
		pause(x.ctx, time.Duration(chance.IntN(40))*time.Millisecond)
		x.server.Kill()
		for _, id := range <-ended {
			acknowledged[id] = true
		}
		x.server.Start()
	}
	open, outcomes := 0, 0
	for n, id := range ids {
		task, want := x.read(id), posts[n%len(posts)].to
		if task.Status != wire.StatusCancelled {
			open++
			if acknowledged[id] {
				t.Errorf("the end of %v was acknowledged, and it is %s", id, task.Status)
			}
			continue
		}
		outcomes += len(want)
		x.eventually(patience, "the outcome of "+id.String()+" arrives", func() bool { return len(r.named(id)) >= len(want) })
	}
	for n, id := range ids {
		want := posts[n%len(posts)].to
		if x.read(id).Status != wire.StatusCancelled {
			want = nil
		}
		if paths := r.named(id); !slices.Equal(paths, want) {
			t.Errorf("the outcome of %v came to %v, want %v", id, paths, want)
		}
	}
	t.Logf("%d tasks, %d ends acknowledged, %d tasks open, %d outcomes", len(ids), len(acknowledged), open, outcomes)
}
