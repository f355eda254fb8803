package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"codeq/wire"
)

// bury makes dead letters and returns their ids, oldest first.
func (b *bench) bury(command string, n int) (ids []wire.TaskID) {
	b.t.Helper()
	for range n {
		task := b.post(fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":1}`, command))
		got := b.claim(fmt.Sprintf(`{"commands":[%q]}`, command))
		if got.ID != task.ID {
			b.t.Fatalf("claimed %v, want %v", got.ID, task.ID)
		}
		if g := b.do("POST", got.path("nack"), `{"reason":"no luck"}`); !strings.Contains(g.body, `"dlq"`) {
			b.t.Fatalf("nack: %d %s", g.status, g.body)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

func TestReplayGivesADeadLetterAllItsAttemptsBack(t *testing.T) {
	b := newBench(t, setup{})
	id := b.bury("c", 1)[0]
	replay := "/v1/codeq/admin/tasks/" + id.String() + "/replay"
	if g := b.do("POST", replay, ""); g.status != http.StatusOK || !strings.Contains(g.body, `"status":"PENDING"`) {
		t.Fatalf("replayed: %d %s", g.status, g.body)
	}
	b.do("POST", replay, "{}").mustRefuse(t, wire.CodeNotInDLQ)
	b.do("GET", tasksPath+"/"+id.String()+"/result", "").mustRefuse(t, wire.CodeResultNotFound)
	again := b.claim(`{"commands":["c"]}`)
	if again.ID != id || again.Attempts != 0 || again.Deliveries != 2 {
		t.Errorf("it comes again as %+v", again.Task)
	}
	b.do("POST", "/v1/codeq/admin/tasks/01a21f90-0000-7000-8000-000000000000/replay", "").mustRefuse(t, wire.CodeTaskNotFound)
	b.do("POST", "/v1/codeq/admin/tasks/nonsense/replay", "").mustRefuse(t, wire.CodeTaskNotFound)
}

func TestReplayOfAQueueTakesTheOldestAndSaysWhatIsLeft(t *testing.T) {
	b := newBench(t, setup{})
	ids := b.bury("c", 7)
	b.bury("other", 2)
	replay := func(command, body, want string) {
		t.Helper()
		g := b.do("POST", "/v1/codeq/admin/queues/"+command+"/dlq/replay", body)
		if g.status != http.StatusOK || bareAnswer(g.body) != want {
			t.Errorf("%s is answered %d %s, want %s", body, g.status, g.body, want)
		}
	}
	replay("c", `{"before":"2000-01-01T00:00:00Z"}`, `{"replayed":0,"remaining":7}`)
	replay("c", `{"limit":3}`, `{"replayed":3,"remaining":4}`)
	// Several may have ended in one millisecond, where their ids order them.
	ready := 0
	for _, id := range ids {
		if b.read(id).Status == wire.StatusPending {
			ready++
		}
	}
	if ready != 3 {
		t.Errorf("%d are ready, want 3", ready)
	}
	replay("c", "", `{"replayed":4,"remaining":0}`)
	replay("c", "", `{"replayed":0,"remaining":0}`)
	replay("other", `{"limit":1}`, `{"replayed":1,"remaining":1}`)
	for _, body := range []string{`{"limit":0}`, `{"limit":10001}`, `{"limit":"1"}`} {
		b.do("POST", "/v1/codeq/admin/queues/c/dlq/replay", body).mustRefuse(t, wire.CodeInvalidArgument)
	}
}

// A queue with more dead letters than one piece is replayed whole, while a
// handler that fails again brings each of them back only once.
func TestReplayGoesOnOverPieces(t *testing.T) {
	b := newBench(t, setup{})
	n := bulkChunk + 20
	b.bury("c", n)
	g := b.do("POST", "/v1/codeq/admin/queues/c/dlq/replay", "")
	if want := fmt.Sprintf(`{"replayed":%d,"remaining":0}`, n); g.body != want {
		t.Errorf("answered %d %s, want %s", g.status, g.body, want)
	}
}

// bareAnswer is an answer about dead letters without its cursor.
func bareAnswer(body string) string {
	bare, _, more := strings.Cut(body, `,"cursor":`)
	if more {
		return bare + "}"
	}
	return bare
}

// What its worker ended FAILED is a dead letter with a cause: listed, grouped and
// counted by it, left by a replay of the queue that does not name it.
func TestU01FailedTasksAreDeadLettersOfTheirOwnCause(t *testing.T) {
	b := newBench(t, setup{})
	const queue = "/v1/codeq/admin/queues/c"
	b.bury("c", 2)
	failed := b.post(`{"command":"c","payload":1,"idempotencyKey":"k"}`)
	got := b.claim(`{"commands":["c"]}`)
	record := b.do("POST", got.path("result"), `{"error":"no use"}`)
	if record.status != http.StatusOK || !strings.Contains(record.body, `"status":"FAILED"`) {
		t.Fatalf("the result: %d %s", record.status, record.body)
	}
	if again := b.do("POST", got.path("result"), `{"error":"something else"}`); again.body != record.body {
		t.Errorf("the same status again: %d %s, want %s", again.status, again.body, record.body)
	}
	if task := b.read(failed.ID); task.Location != wire.LocationDead || task.DeadCause != wire.DeadFailed || task.Error != "no use" {
		t.Errorf("the task is %+v", task)
	}
	lists := func(query string, want int) {
		t.Helper()
		if g := b.do("GET", queue+query, ""); g.status != http.StatusOK || strings.Count(g.body, `"id":`)+strings.Count(g.body, `"count":`) != want {
			t.Errorf("%s lists %d %s, want %d", query, g.status, g.body, want)
		}
	}
	lists("/tasks?state=dlq", 3)
	lists("/tasks?state=dlq&cause=failed", 1)
	lists("/tasks?state=dlq&cause=exhausted&error=luck", 2)
	lists("/tasks?state=dlq&cause=released_too_often", 0)
	lists("/tasks?state=dlq&cause=all", 3)
	lists("/tasks?state=done", 0)
	lists("/dlq/reasons", 2)
	lists("/dlq/reasons?cause=failed", 1)
	for _, query := range []string{"/tasks?state=dlq&cause=bad", "/tasks?state=ready&cause=failed", "/tasks?state=dlq&cause=", "/dlq/reasons?cause=bad"} {
		b.do("GET", queue+query, "").mustRefuse(t, wire.CodeInvalidArgument)
	}
	b.do("POST", deadPath+"/replay", `{"cause":"bad"}`).mustRefuse(t, wire.CodeInvalidArgument)
	b.do("DELETE", deadPath+"?cause=bad", "").mustRefuse(t, wire.CodeInvalidArgument)
	if g := b.do("GET", queue, ""); !strings.Contains(g.body, `"dlq":3,"dlqCauses":{"exhausted":2,"failed":1}`) {
		t.Errorf("the queue is %s", g.body)
	}
	b.mustSay("POST", deadPath+"/replay", "", `{"replayed":2,"remaining":1,"remainingFailed":1}`)
	b.mustSay("POST", deadPath+"/replay", `{"cause":"failed"}`, `{"replayed":1,"remaining":0}`)
	b.do("POST", got.path("result"), `{"error":"no use"}`).mustRefuse(t, wire.CodeLeaseLost)
	b.do("GET", tasksPath+"/"+failed.ID.String()+"/result", "").mustRefuse(t, wire.CodeResultNotFound)
}

// One that failed is replayed by its id like any other, and purged by its cause.
func TestU01FailedTaskIsReplayedByIdAndPurgedByCause(t *testing.T) {
	b := newBench(t, setup{})
	b.bury("c", 1)
	task := b.post(`{"command":"c","payload":1}`)
	for range 2 {
		b.do("POST", b.claim(`{"commands":["c"]}`).path("result"), `{"error":"no use"}`)
		if g := b.do("POST", "/v1/codeq/admin/tasks/"+task.ID.String()+"/replay", ""); g.status != http.StatusOK {
			t.Fatalf("replayed: %d %s", g.status, g.body)
		}
	}
	b.do("POST", b.claim(`{"commands":["c"]}`).path("result"), `{"error":"no use"}`)
	b.mustSay("DELETE", deadPath+"?cause=failed", "", `{"purged":1,"remaining":1}`)
	b.mustSay("DELETE", deadPath, "", `{"purged":1,"remaining":0}`)
}
