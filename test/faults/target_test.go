package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// goal is a target that answers each task as its payload says.
type goal struct {
	t      *testing.T
	server *httptest.Server
	// hang is closed at the end: until then a task whose payload is "hang" gets no answer.
	hang chan struct{}

	mu sync.Mutex
	// came are the tasks that have come, by id, each as often as it came; tokens are their last.
	came   map[wire.TaskID]int
	tokens map[wire.TaskID]wire.Token
}

func newGoal(t *testing.T) *goal {
	g := &goal{t: t, hang: make(chan struct{}), came: map[wire.TaskID]int{}, tokens: map[wire.TaskID]wire.Token{}}
	g.server = httptest.NewServer(g)
	t.Cleanup(func() {
		close(g.hang)
		g.server.Close()
	})
	return g
}

// ServeHTTP implements http.Handler.
func (g *goal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the server was killed
	}
	task, token, err := wire.ParseClaimed(body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("webhook-id") != task.ID.String() ||
		!strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") || r.Header.Get("X-CodeQ-Attempt") != fmt.Sprint(task.Attempts+1) {
		g.t.Errorf("%s with %v: %v", body, r.Header, err)
		return
	}
	g.mu.Lock()
	g.came[task.ID]++
	times := g.came[task.ID]
	g.tokens[task.ID] = token
	g.mu.Unlock()
	g.answer(w, r, strings.Trim(string(task.Payload), `"`), times)
}

// answer is the answer to a task that says how, and comes for so many times.
func (g *goal) answer(w http.ResponseWriter, r *http.Request, how string, times int) {
	switch how {
	case "200":
		_, _ = io.WriteString(w, `{"width":64}`) // a client that is gone fails the test elsewhere
	case "once 429", "once 503":
		if times == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(map[string]int{"once 429": 429, "once 503": 503}[how])
		}
	case "once 500":
		if times == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	case "redirect":
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	case "huge":
		_, _ = io.WriteString(w, `{"x":"`+strings.Repeat("x", wire.MaxResultBytes)+`"}`)
	case "422":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"error":"no such file"}`)
	case "hang":
		select {
		case <-g.hang:
		case <-r.Context().Done():
		}
	default:
		var status int
		if _, err := fmt.Sscan(how, &status); err != nil {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	}
}

func (g *goal) times(id wire.TaskID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came[id]
}

func (g *goal) token(id wire.TaskID) wire.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tokens[id]
}

// aim gives a queue a target, with further settings.
func (x *site) aim(command, url, more string) {
	x.t.Helper()
	x.ask(http.MethodPut, "/admin/queues/"+command, fmt.Sprintf(
		`{"target":{"url":%q},"leaseSeconds":3,"backoff":{"policy":"fixed","baseSeconds":1}%s}`, url, more))
}

func (x *site) give(command, payload string) wire.TaskID {
	x.t.Helper()
	task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":%q}`, command, payload))
	if err != nil {
		x.t.Fatal(err)
	}
	return task.ID
}

// Each answer of a target does what the table of docs/targets.md says.
func TestATargetEndsTasksByItsAnswers(t *testing.T) {
	g, x := newGoal(t), newSite(t, "--webhook-allow", "127.0.0.0/8")
	x.aim("c", g.server.URL, `,"maxAttempts":2`)
	for _, c := range []struct {
		how      string
		status   wire.Status
		attempts int
		times    int
		says     string
	}{
		{"200", wire.StatusCompleted, 0, 1, `{"width":64}`},
		{"204", wire.StatusCompleted, 0, 1, ""},
		{"422", wire.StatusFailed, 0, 1, "the target answered 422: no such file"},
		{"once 429", wire.StatusCompleted, 0, 2, ""},
		{"once 503", wire.StatusCompleted, 0, 2, ""},
		{"once 500", wire.StatusCompleted, 1, 2, ""},
		{"redirect", wire.StatusFailed, 2, 2, "the target answered 307, and redirects are not followed"},
		{"huge", wire.StatusFailed, 0, 1, "the target answered 200, and its result cannot be kept: it has more than 1048576 bytes"},
		{"410", wire.StatusFailed, 2, 2, "the target answered 410"},
		{"hang", wire.StatusFailed, 2, 2, "the target gave no answer within 2.7s"},
	} {
		id := x.give("c", c.how)
		x.eventually(patience, c.how+" ends", func() bool { return x.read(id).Status.Terminal() })
		task := x.read(id)
		if task.Status != c.status || task.Attempts != c.attempts || g.times(id) != c.times {
			t.Errorf("%s: %s after %d attempts, came %d times", c.how, task.Status, task.Attempts, g.times(id))
		}
		if task.Status == wire.StatusFailed && task.Error != c.says {
			t.Errorf("%s: %s", c.how, task.Error)
		}
		if task.Status == wire.StatusCompleted && c.says != "" {
			if r := x.ask(http.MethodGet, "/tasks/"+id.String()+"/result", ""); !strings.Contains(string(r.Body), `"result":`+c.says) {
				t.Errorf("%s: %s", c.how, r.Body)
			}
		}
	}
}

// A target that answers 202 ends its task by the token later, also after a kill of the server.
func TestATargetThatAcceptsFinishesByToken(t *testing.T) {
	g, x := newGoal(t), newSite(t, "--webhook-allow", "127.0.0.0/8")
	x.aim("c", g.server.URL, `,"maxInProgress":1`)
	id := x.give("c", "202")
	x.eventually(patience, "it comes", func() bool { return g.times(id) > 0 })
	x.ask(http.MethodPost, "/tasks/"+id.String()+"/heartbeat", fmt.Sprintf(`{"leaseToken":%q,"extendSeconds":60}`, g.token(id)))
	for _, wrong := range []string{`{"status":"COMPLETED","result":{}}`, `{"status":"COMPLETED","result":{},"leaseToken":"00000000000000000000000000000001"}`} {
		_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", wrong)
		x.refused(err, map[bool]wire.Code{true: wire.CodeLeaseLost, false: wire.CodeNotOwner}[strings.Contains(wrong, "leaseToken")])
	}
	x.server.Kill()
	x.server.Start()
	x.ask(http.MethodPost, "/tasks/"+id.String()+"/result", fmt.Sprintf(`{"status":"COMPLETED","result":{"by":"token"},"leaseToken":%q}`, g.token(id)))
	if task := x.read(id); task.Status != wire.StatusCompleted || g.times(id) != 1 {
		t.Errorf("%+v came %d times", task, g.times(id))
	}
}

// A target that hangs takes nothing from another queue, and says so while it gets no task.
func TestADeadTargetHoldsUpNobody(t *testing.T) {
	g, x := newGoal(t), newSite(t, "--webhook-allow", "127.0.0.0/8")
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	x.aim("dead", closed.URL, `,"maxAttempts":50`)
	x.aim("hangs", g.server.URL, `,"maxAttempts":2`)
	x.aim("c", g.server.URL, `,"maxAttempts":2`)
	var last wire.TaskID
	for range 40 {
		last = x.give("dead", "200")
		x.give("hangs", "hang")
	}
	begin := time.Now()
	for range 50 {
		id := x.give("c", "200")
		x.eventually(patience, "it ends", func() bool { return x.read(id).Status == wire.StatusCompleted })
	}
	t.Logf("50 tasks one after another beside two dead targets: %v", time.Since(begin))
	x.eventually(patience, "the task says why it waits", func() bool {
		w := x.read(last).Waiting
		return w != nil && w.Reason == wire.WaitingTarget && w.Problem == "the connection to the target failed" && w.UntilMs != 0
	})
	if sick := blackbox.Figure(x.server.Metrics(), `codeq_targets{state="sick"}`); sick < 1 {
		t.Errorf("%v targets are sick", sick)
	}
}

// The server is killed again and again while it posts tasks to a target. Each task that was accepted
// comes, and is completed.
func TestTargetsOverKills(t *testing.T) {
	g, x := newGoal(t), newSite(t, "--webhook-allow", "127.0.0.0/8")
	x.aim("c", g.server.URL, `,"maxAttempts":100`)
	chance := rand.New(rand.NewPCG(52, 1))
	var ids []wire.TaskID
	for range scale(4, 100) {
		for range 30 {
			ids = append(ids, x.give("c", "200"))
		}
		pause(x.ctx, time.Duration(chance.IntN(30))*time.Millisecond)
		x.server.Kill()
		x.server.Start()
	}
	twice := 0
	for _, id := range ids {
		x.eventually(patience, "it is completed", func() bool { return x.read(id).Status == wire.StatusCompleted })
		if g.times(id) > 1 {
			twice++
		}
		if g.times(id) == 0 {
			t.Errorf("%v is completed and never came", id)
		}
	}
	t.Logf("%d tasks, %d came more than once", len(ids), twice)
}
