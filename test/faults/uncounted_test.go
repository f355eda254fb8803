package faults

import (
	"fmt"
	"net/http"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
)

// A hand-back that the worker owes to itself, because the work never began or
// because the worker stops, leaves the task alive however often it comes; any
// other ends the task at the eleventh time for each of its attempts.
func TestN01N03HandBackThatIsNotTheTasksFaultDoesNotCount(t *testing.T) {
	x := newSite(t)
	for n, c := range []struct {
		why  wire.ReleaseRequest
		body string
		dead bool
	}{
		{wire.ReleaseRequest{}, `{"started":true}`, true},
		{wire.ReleaseRequest{NotStarted: true}, `{"started":false}`, false},
		{wire.ReleaseRequest{Stopping: true}, `{"stopping":true}`, false},
	} {
		inSession, overHTTP := fmt.Sprintf("session%d", n), fmt.Sprintf("http%d", n)
		api := func(path, body string) []byte {
			t.Helper()
			answer, err := x.api.Do(x.ctx, http.MethodPost, path, body)
			if err != nil {
				t.Fatalf("%s %s: %v", path, body, err)
			}
			return answer.Body
		}
		ids := map[string]wire.TaskID{}
		for _, queue := range []string{inSession, overHTTP} {
			made, err := wire.ParseTask(api("/tasks", fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":1}`, queue)))
			if err != nil {
				t.Fatal(err)
			}
			ids[queue] = made.ID
		}
		p := x.peer(x.server.Addr, "w")
		if err := p.Subscribe(x.ctx, inSession, 1, 60); err != nil {
			t.Fatal(err)
		}
		for range 11 {
			f := x.take(p, patience)
			if err := x.said(p, func(ref wire.Ref) wire.ClientFrame {
				return &wire.Release{Ref: ref, TaskRef: blackbox.RefOf(f), ReleaseRequest: c.why}
			}); err != nil {
				t.Fatal(err)
			}
			task, token, err := wire.ParseClaimed(api("/tasks/claim", fmt.Sprintf(`{"commands":[%q],"waitSeconds":30}`, overHTTP)))
			if err != nil {
				t.Fatal(err)
			}
			api("/tasks/"+task.ID.String()+"/release", withToken(c.body, token))
		}
		for queue, id := range ids {
			task := x.read(id)
			if dead := task.Location == wire.LocationDead; dead != c.dead || task.Attempts != 0 {
				t.Errorf("%s: after 11 releases %s the task is in %s with %d attempts", queue, c.body, task.Location, task.Attempts)
			}
		}
	}
}
