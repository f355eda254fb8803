package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/wire"
)

// Ended tasks and dead letters go when their own retention says so.
func TestEachRetentionIsForItsOwnKind(t *testing.T) {
	for name, o := range map[string]Options{
		"done": {RetentionFor: time.Millisecond},
		"dead": {DLQRetentionFor: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.DataDir, o.Listen, o.Log = t.TempDir(), "127.0.0.1:0", zerolog.Nop()
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			x := newSite(t, s)
			ended := map[string]wire.TaskID{"done": x.post(`{"command":"c","payload":1}`).ID}
			x.settle("c", "result", `{"status":"COMPLETED","result":{}}`)
			ended["dead"] = x.post(`{"command":"c","payload":1,"maxAttempts":1}`).ID
			x.settle("c", "nack", `{}`)
			for until := time.Now().Add(patience); ; {
				if x.ask("GET", "/v1/codeq/tasks/"+ended[name].String(), "").status == http.StatusNotFound {
					break
				}
				if time.Now().After(until) {
					t.Fatal("the task stays")
				}
				<-time.After(20 * time.Millisecond)
			}
			delete(ended, name)
			for other, id := range ended {
				if got := x.ask("GET", "/v1/codeq/tasks/"+id.String(), ""); got.status != http.StatusOK {
					t.Errorf("the task that is %s is gone, too: %d %s", other, got.status, got.body)
				}
			}
		})
	}
}

// settle claims the one task of a command and ends it.
func (x *site) settle(command, verb, body string) {
	x.t.Helper()
	claimed := x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["`+command+`"],"waitSeconds":20}`)
	task, err := wire.ParseTask([]byte(claimed.body))
	if err != nil {
		x.t.Fatalf("claim: %d %s", claimed.status, claimed.body)
	}
	if a := x.ask("POST", "/v1/codeq/tasks/"+task.ID.String()+"/"+verb, body); a.status != http.StatusOK {
		x.t.Fatalf("%s: %d %s", verb, a.status, a.body)
	}
}
