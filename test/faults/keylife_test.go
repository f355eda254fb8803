package faults

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// keep sets how long ended tasks of a command stay.
func (x *site) keep(command string, seconds int) {
	x.t.Helper()
	x.ask(http.MethodPut, "/admin/queues/"+command, fmt.Sprintf(`{"retentionSeconds":%d,"dlqRetentionSeconds":%d}`, seconds, seconds))
}

// again posts what was posted before, with its key. Whatever comes is a task
// that is there, and a new one only when nothing is left of the first.
func (x *site) again(body string, first wire.TaskID) (replayed bool) {
	x.t.Helper()
	task, err := x.api.Post(x.ctx, body)
	if err != nil {
		x.t.Fatalf("post %s again: %v", body, err)
	}
	if task.ID == first {
		return true
	}
	if left, err := x.api.Read(x.ctx, first); err == nil {
		x.t.Errorf("its key makes a new task beside %+v", left)
	}
	return false
}

// mustStay makes sure that a key still means its first task.
func (x *site) mustStay(when, body string, first wire.TaskID) {
	x.t.Helper()
	if !x.again(body, first) {
		x.t.Errorf("%s: the key made a new task", when)
	}
}

// mustGo waits until a key is free, which nobody tells.
func (x *site) mustGo(when, body string, first wire.TaskID) {
	x.t.Helper()
	x.eventually(patience, when+": the key is free", func() bool { return !x.again(body, first) })
	if _, err := x.api.Read(x.ctx, first); err == nil {
		x.t.Errorf("%s: the key is free and the task is there", when)
	}
}

// do completes the one task that is ready in a queue.
func (x *site) do(command string) {
	x.t.Helper()
	var task struct{ ID, LeaseToken string }
	decode(x.t, x.ask(http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"waitSeconds":30}`, command)).Body, &task)
	x.ask(http.MethodPost, "/tasks/"+task.ID+"/result", fmt.Sprintf(`{"leaseToken":%q,"status":"COMPLETED","result":{}}`, task.LeaseToken))
}

// keyedIn makes a task with a key.
func (x *site) keyedIn(command, key, more string) (body string, id wire.TaskID) {
	x.t.Helper()
	body = fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":1,"idempotencyKey":%q%s}`, command, key, more)
	task, err := x.api.Post(x.ctx, body)
	if err != nil {
		x.t.Fatal(err)
	}
	return body, task.ID
}

// A key lives exactly as long as its task: not shorter because the task has ended
// or waits for longer than ended tasks stay, and not longer because the server
// was down when its time was over.
func TestA48KeysLiveAsLongAsTheirTasks(t *testing.T) {
	x := newSite(t)
	for _, bad := range []string{"0", "-1", "0.001", "1.5", `"1"`, "1e99", "315360001"} {
		_, err := x.api.Do(x.ctx, http.MethodPut, "/admin/queues/odd", `{"retentionSeconds":`+bad+`}`)
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeInvalidArgument || !strings.Contains(refusal.Sentence, "retentionSeconds") {
			t.Errorf("a retention of %s is answered %v", bad, err)
		}
	}
	const hour = 3600
	x.keep("done", hour)
	done, doneID := x.keyedIn("done", "k", "")
	x.do("done")
	x.mustStay("completed", done, doneID)

	x.keep("late", 1)
	late, lateID := x.keyedIn("late", "k", `,"delaySeconds":4`)
	short, shortID := x.keyedIn("short", "k", "")
	x.keep("short", 2)
	x.do("short")
	// Longer than both stay once they have ended, and the server is down.
	x.server.Kill()
	pause(x.ctx, 3*time.Second)
	x.server.Start()
	x.mustGo("over while the server was down", short, shortID)
	x.mustStay("completed, and the server was down", done, doneID)
	x.mustStay("waiting for longer than ended tasks stay", late, lateID)
	x.do("late")
	x.mustGo("ended, and over", late, lateID)

	cancelled, cancelledID := x.keyedIn("cancelled", "k", "")
	x.ask(http.MethodPost, "/tasks/"+cancelledID.String()+"/cancel", "")
	x.mustStay("cancelled", cancelled, cancelledID)
	x.ask(http.MethodPost, "/admin/tasks/cleanup", fmt.Sprintf(`{"before":%q}`, time.Now().Add(hour*time.Second).Format(time.RFC3339)))
	x.mustGo("cleaned up", cancelled, cancelledID)
	x.mustGo("cleaned up", done, doneID)
	x.inOrder()
}

// Ended tasks may stay for no time that anybody could notice. Their keys are
// free as soon as they are gone.
func TestA48KeysOfTasksThatDoNotStay(t *testing.T) {
	x := newSite(t, "--retention", "1ms", "--dlq-retention", "1ms")
	for n := range scale(10, 200) {
		body, id := x.keyedIn(command, fmt.Sprint("k", n), "")
		x.mustStay(fmt.Sprint("ready ", n), body, id)
		x.do(command)
		x.mustGo(fmt.Sprint("done ", n), body, id)
		x.do(command) // the new one
	}
	x.inOrder()
}
