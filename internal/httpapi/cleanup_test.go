package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"codeq/wire"
)

// A shard is asked once for all of its queues, and not at all when none has
// anything.
func TestCleanupAsksEachShardOnce(t *testing.T) {
	b := newBench(t, setup{})
	for n := range 50 {
		task := b.post(fmt.Sprintf(`{"command":"c%d","payload":1}`, n))
		b.do("POST", tasksPath+"/"+task.ID.String()+"/cancel", "")
	}
	b.post(`{"command":"waits","payload":1}`)
	asked := func() (messages uint64) {
		for shard := range b.engine.Shards() {
			messages += b.engine.MailboxFigures(shard).Pushed
		}
		return messages
	}
	later := `{"before":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	for _, want := range []struct {
		body string
		most int
	}{{`{"deleted":50}`, b.engine.Shards()}, {`{"deleted":0}`, 0}} {
		before := asked()
		if g := b.do("POST", "/v1/codeq/admin/tasks/cleanup", later); g.body != want.body {
			t.Errorf("%d %s, want %s", g.status, g.body, want.body)
		}
		if n := int(asked() - before); n > want.most {
			t.Errorf("the shards were asked %d times, want %d at most", n, want.most)
		}
	}
}

func TestCleanupRemovesWhatHasEndedAndNothingElse(t *testing.T) {
	b := newBench(t, setup{})
	waiting := b.post(`{"command":"c","payload":1,"delaySeconds":9000}`)
	var ended []wire.TaskID
	for n := range 10 {
		body := `{"command":"c","payload":1}`
		if n%2 == 1 {
			body = `{"command":"d","payload":1}`
		}
		task := b.post(body)
		b.do("POST", tasksPath+"/"+task.ID.String()+"/cancel", "")
		ended = append(ended, task.ID)
	}
	clean := func(body, want string) {
		t.Helper()
		if g := b.do("POST", "/v1/codeq/admin/tasks/cleanup", body); g.status != http.StatusOK || g.body != want {
			t.Errorf("%s is answered %d %s, want %s", body, g.status, g.body, want)
		}
	}
	clean("", `{"deleted":0}`) // they are kept for ever here
	clean(`{"before":"2000-01-01T00:00:00Z"}`, `{"deleted":0}`)
	later := `"before":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"`
	clean(`{`+later+`,"limit":3}`, `{"deleted":3}`)
	clean(`{`+later+`}`, `{"deleted":7}`)
	for _, id := range ended {
		b.do("GET", tasksPath+"/"+id.String(), "").mustRefuse(t, wire.CodeTaskNotFound)
	}
	if g := b.do("GET", tasksPath+"/"+waiting.ID.String(), ""); g.status != http.StatusOK {
		t.Errorf("a task that waits: %d %s", g.status, g.body)
	}
}
