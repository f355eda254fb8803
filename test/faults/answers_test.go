package faults

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// idsIn are the tasks that a batch made; each item must have made one.
func idsIn(t *testing.T, body []byte) []wire.TaskID {
	t.Helper()
	var answer struct {
		Results []struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	ids := make([]wire.TaskID, len(answer.Results))
	for i, r := range answer.Results {
		id, ok := wire.ParseTaskID(r.Task.ID)
		if !ok {
			t.Fatalf("item %d of a batch made no task: %s", i, body)
		}
		ids[i] = id
	}
	return ids
}

// listed is one session as an admin sees it.
type listed struct {
	SessionID, WorkerID, State string
	Window, Held               int
}

// sessions lists those that are open.
func (x *site) sessions() []listed {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/sessions", "")
	if err != nil {
		x.t.Fatalf("list the sessions: %v", err)
	}
	var page struct{ Sessions []listed }
	if err := json.Unmarshal(answer.Body, &page); err != nil {
		x.t.Fatal(err)
	}
	return page.Sessions
}

// live counts the sessions that have a socket.
func (x *site) live() int {
	x.t.Helper()
	n := 0
	for _, s := range x.sessions() {
		if s.State != wire.SessionGrace {
			n++
		}
	}
	return n
}

// outcome is the result of a task, which ends in time.
func (x *site) outcome(id wire.TaskID) *wire.ResultRecord {
	x.t.Helper()
	late := time.Now().Add(scale(patience, 10*time.Minute))
	answer, err := x.askForResult(id)
	var refusal *wire.Error
	for errors.As(err, &refusal) && refusal.Code == wire.CodeResultNotFound && time.Now().Before(late) {
		answer, err = x.askForResult(id)
	}
	if err != nil {
		x.t.Fatalf("read the result of %v: %v", id, err)
	}
	var parts struct{ Result json.RawMessage }
	if err := json.Unmarshal(answer.Body, &parts); err != nil {
		x.t.Fatal(err)
	}
	record, err := wire.ParseResultRecord(parts.Result)
	if err != nil {
		x.t.Fatal(err)
	}
	return record
}

func (x *site) askForResult(id wire.TaskID) (*blackbox.Answer, error) {
	return x.api.Do(x.ctx, http.MethodGet, "/tasks/"+id.String()+"/result?waitSeconds=30", "")
}

// readAll reads the body of an answer and closes it.
func readAll(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(body)
}
