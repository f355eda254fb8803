package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/internal/httpapi"
	"codeq/wire"
)

// hiddenMark is in every payload, result and error of the tasks of a viewed queue.
const hiddenMark = "xmarkx"

// viewedTasks makes a task in each state, with the mark in all that a producer and a worker
// write. It returns their ids.
func (x *site) viewedTasks() (ids []string) {
	x.t.Helper()
	claimed := func() *wire.Task {
		a := x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["viewed"]}`)
		task, err := wire.ParseTask([]byte(a.body))
		if err != nil || !strings.Contains(a.body, hiddenMark) {
			x.t.Fatalf("claim: %d %s", a.status, a.body)
		}
		return task
	}
	answer := func(id wire.TaskID, verb, body string) {
		if a := x.ask("POST", fmt.Sprintf("/v1/codeq/tasks/%v/%s", id, verb), body); a.status != http.StatusOK {
			x.t.Fatalf("%s: %d %s", verb, a.status, a.body)
		}
	}
	post := func(members string) {
		ids = append(ids, x.post(`{"command":"viewed","payload":{"a":"`+hiddenMark+`"}`+members+`}`).ID.String())
	}
	post("")
	answer(claimed().ID, "result", `{"status":"COMPLETED","result":{"r":"`+hiddenMark+`"}}`)
	post("")
	answer(claimed().ID, "result", `{"status":"FAILED","error":"`+hiddenMark+`"}`)
	post(`,"maxAttempts":1`)
	answer(claimed().ID, "nack", `{"reason":"`+hiddenMark+`"}`)
	post("")
	answer(claimed().ID, "nack", `{"reason":"`+hiddenMark+`","delaySeconds":0}`)
	for len(x.ask("GET", "/v1/codeq/admin/queues/viewed/tasks?state=ready", "").body) < 100 {
		time.Sleep(time.Millisecond) // the task of the nack becomes ready at the next round
	}
	claimed()
	post(`,"delaySeconds":600`)
	post("")
	return ids
}

// TestATokenThatOnlyViewsSeesNoContents asks every route, with every parameter that it has, and
// speaks to both sockets.
func TestATokenThatOnlyViewsSeesNoContents(t *testing.T) {
	f := newTokenFile(t)
	admin, viewer := f.addAll("one"), f.add("one", []string{auth.ScopeView}, []string{wire.AllCommands})
	x := openGuarded(f, io.Discard)
	ids := x.as(admin).viewedTasks()
	seen := 0
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		pattern = strings.Replace(pattern, "{command}", "viewed", 1)
		for _, id := range ids {
			for _, query := range viewedQueries(route) {
				a := x.as(viewer).ask(method, strings.Replace(pattern, "{id}", id, 1)+query, "")
				if strings.Contains(a.body, hiddenMark) {
					t.Errorf("%s%s shows what is in the task: %s", route, query, a.body)
				}
				if method != "GET" && pattern != loginPath && a.code() != wire.CodeForbidden {
					t.Errorf("%s changes something: %d %s", route, a.status, a.body)
				}
				if strings.Contains(a.body, ids[0]) {
					seen++
				}
			}
			if !strings.Contains(pattern, "{id}") {
				break
			}
		}
	}
	if seen < 2 { // the task alone and in a list
		t.Errorf("the walk has seen the first task %d times", seen)
	}
	for path, want := range map[string]int{
		"/v1/codeq/tasks/" + ids[0]: http.StatusOK, "/v1/codeq/tasks/" + ids[0] + "/result": http.StatusForbidden,
		"/v1/codeq/admin/queues": http.StatusOK, "/v1/codeq/admin/queues/viewed": http.StatusOK, "/v1/codeq/admin/sessions": http.StatusOK,
		"/v1/codeq/admin/queues/viewed/tasks?state=dlq": http.StatusOK, "/v1/codeq/admin/queues/viewed/tasks?state=dlq&error=x": http.StatusForbidden,
		"/v1/codeq/admin/queues/viewed/dlq/reasons": http.StatusForbidden, "/v1/codeq/admin/config": http.StatusForbidden,
		"/v1/codeq/events?kind=task&taskId=1": http.StatusBadRequest,
	} {
		if a := x.as(viewer).ask("GET", path, ""); a.status != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	x.as(viewer).viewedSession(ids[5])
	x.as(viewer).viewedEvents(ids)
}

// viewedQueries are queries with which a route is asked.
func viewedQueries(route string) []string {
	switch {
	case strings.HasPrefix(route, "GET") && strings.HasSuffix(route, "/tasks"):
		var all []string
		for _, state := range []string{"ready", "delayed", "inProgress", "dlq", "done"} {
			for _, filter := range []string{"", "error", "payload", "text"} {
				query := "?command=viewed&state=" + state
				if !strings.Contains(route, "{command}") {
					all = append(all, query)
				}
				query = "?state=" + state
				if filter != "" {
					query += "&" + filter + "=mark"
				}
				all = append(all, query)
			}
		}
		return all
	case strings.HasSuffix(route, "/result"):
		return []string{"", "?waitSeconds=1"}
	}
	return []string{""}
}

// viewedSession speaks the frames of a producer and of a worker.
func (x *site) viewedSession(id string) {
	k := x.dial()
	for i, frame := range []string{
		`"subscribe","commands":["viewed"],"window":9`, `"window","size":9`, `"cancel","taskId":"` + id + `"`, `"enqueue","command":"viewed","payload":1`,
	} {
		k.say(fmt.Sprintf(`{"type":%s,"ref":%d}`, frame, i+1))
		if e, ok := k.next().(*wire.ErrorFrame); !ok || e.Err.Code != wire.CodeForbidden {
			x.t.Errorf("%s is answered %+v", frame, e)
		}
	}
}

// watchedText collects what a socket that watches is told.
type watchedText struct {
	gws.BuiltinEventHandler
	said chan string
	code uint16 // set before said is closed
}

// OnMessage implements gws.Event.
func (w *watchedText) OnMessage(_ *gws.Conn, m *gws.Message) {
	w.said <- m.Data.String()
	_ = m.Close() // only returns the buffer
}

// OnClose implements gws.Event.
func (w *watchedText) OnClose(_ *gws.Conn, err error) {
	var end *gws.CloseError
	if errors.As(err, &end) {
		w.code = end.Code
		w.said <- string(end.Reason)
	}
	close(w.said)
}

// heard is what a socket that watches is told after messages, until the answer to ref 77 or its
// end, whose code and reason come with it.
func (x *site) heard(messages ...string) (text string, code uint16) {
	x.t.Helper()
	w := &watchedText{said: make(chan string, 1000)}
	conn, _, err := gws.NewClient(w, &gws.ClientOption{Addr: "ws://" + x.server.Addr() + "/v1/codeq/events"})
	if err != nil {
		x.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { conn.ReadLoop(); close(done) }()
	defer func() { _ = conn.NetConn().Close(); <-done }() // the server may have closed it
	for _, message := range messages {
		if err := conn.WriteMessage(gws.OpcodeText, []byte(message)); err != nil {
			break // the server has closed it, which follows
		}
	}
	for !strings.Contains(text, `"ref":77`) {
		select {
		case said, open := <-w.said:
			if !open {
				return text, w.code
			}
			text += said + "\n"
		case <-time.After(patience):
			x.t.Fatalf("the socket says only %s", text)
		}
	}
	return text, 0
}

// viewedEvents subscribes to every kind, and reads a stream of each task.
func (x *site) viewedEvents(ids []string) {
	x.t.Helper()
	say := `[{"type":"hello","token":"` + x.token + `"}`
	for _, kind := range []string{
		`"queues"`, `"events","from":{"0":0,"1":0,"2":0,"3":0}`, `"workers"`, `"server"`,
		`"page","command":"viewed","state":"dlq"`, `"page","command":"viewed","state":"inProgress"`,
	} {
		say += fmt.Sprintf(`,{"type":"subscribe","id":"s%d","kind":%s}`, len(say), kind)
	}
	say += `,{"type":"subscribe","id":"found","kind":"page","filter":{"payload~":"mark"}},` +
		`{"type":"subscribe","id":"seen","kind":"page","filter":{"command":"viewed"}}`
	for i, id := range ids {
		say += fmt.Sprintf(`,{"type":"subscribe","id":"t%d","kind":"task","taskId":"%s"}`, i, id)
	}
	text, _ := x.heard(say + `,{"type":"unsubscribe","id":"t0","ref":77}]`)
	if !strings.Contains(text, `,"id":"found"}`) || !strings.Contains(text, `"id":"seen","at"`) {
		x.t.Errorf("a search of payloads is not refused, or one of a queue is: %s", text)
	}
	if strings.Contains(text, hiddenMark) || !strings.Contains(text, `"cause":"nack"`) || !strings.Contains(text, `"command":"viewed"`) {
		x.t.Errorf("the socket says %s", text)
	}
	for _, id := range ids {
		if first := x.firstOfStream("kind=task&taskId=" + id); strings.Contains(first, hiddenMark) || !strings.Contains(first, id) {
			x.t.Errorf("the stream of a task says %s", first)
		}
	}
}

// firstOfStream is the second line of a stream, which has the first frame after the welcome.
func (x *site) firstOfStream(query string) string {
	x.t.Helper()
	r, err := http.NewRequest("GET", "http://"+x.server.Addr()+"/v1/codeq/events?"+query, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Accept", "text/event-stream")
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the stream has no end
	text := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan() && !strings.Contains(text, `"type":"snapshot"`); {
		text += lines.Text() + "\n"
	}
	return text
}
