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
	key    []byte
	asked  int
	bodies map[string]string // by webhook-id
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, bodies: map[string]string{}}
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
	if known, again := r.bodies[id]; again && known != string(body) {
		r.t.Errorf("%s came as %s and as %s", id, known, body)
	}
	m := hmac.New(sha256.New, r.key)
	_, _ = fmt.Fprintf(m, "%s.%s.%s", id, req.Header.Get("webhook-timestamp"), body) // a hash takes everything
	if got := req.Header.Get("webhook-signature"); got != "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)) {
		r.t.Errorf("%s has the signature %s", id, got)
	}
	r.bodies[id] = string(body)
	w.WriteHeader(http.StatusNoContent)
}

// named are the webhook-ids of a task that have come.
func (r *receiver) named(id wire.TaskID) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.bodies {
		if strings.HasPrefix(name, id.String()+".") {
			ids = append(ids, name)
		}
	}
	return ids
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

// The server is killed again and again between the ends of tasks and what it posts of them. What
// ended arrives, under one id and with one body, and what did not end arrives never.
func TestA51KillsLoseNoCallbackAndMakeNone(t *testing.T) {
	r := newReceiver(t)
	x := newSite(t, "--webhook-allow", "127.0.0.0/8")
	r.key = x.hookSecret()
	chance := rand.New(rand.NewPCG(51, 1))
	var ids []wire.TaskID
	acknowledged := map[wire.TaskID]bool{}
	for range scale(4, 200) {
		var round []wire.TaskID
		for range 8 {
			task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":"c","payload":1,"webhook":%q}`, r.server.URL))
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
	open := 0
	for _, id := range ids {
		task := x.read(id)
		if task.Status != wire.StatusCancelled {
			open++
			if acknowledged[id] {
				t.Errorf("the end of %v was acknowledged, and it is %s", id, task.Status)
			}
			continue
		}
		x.eventually(patience, "the outcome of "+id.String()+" arrives", func() bool { return len(r.named(id)) > 0 })
		if names := r.named(id); len(names) != 1 {
			t.Errorf("the outcome of %v came as %v", id, names)
		}
	}
	for _, id := range ids {
		if task := x.read(id); task.Status != wire.StatusCancelled && len(r.named(id)) > 0 {
			t.Errorf("%v has not ended, and %v came", id, r.named(id))
		}
	}
	t.Logf("%d tasks, %d ends acknowledged, %d tasks open", len(ids), len(acknowledged), open)
}
