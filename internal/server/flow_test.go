package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"codeq/client"
	"codeq/internal/audit"
	"codeq/wire"
)

// oddPayloads are values that a careless copy would change.
var oddPayloads = []string{
	`{"z":1,"a":{"y":[ 1 , 2 ],"b":null}}`, `123456789012345678901234567890.10`, `1e400`, `-0`, `-0.0E-7`,
	`"\u0000"`, `"\ud83d"`, `"\udc00\ud800"`, `"\u00e9\/\b"`, "\"é😀\u202e\"", `""`, `[]`, `{"":{}}`, `{"a":1,"a":2}`, `null`,
}

func TestPayloadsAndResultsPassUntouched(t *testing.T) {
	x := openSite(t, t.TempDir())
	ids := make(map[string]wire.TaskID)
	for _, payload := range oddPayloads {
		ids[payload] = x.post(`{"command":"c","payload":` + payload + `}`).ID
	}
	k := x.dial()
	k.say(fmt.Sprintf(`{"type":"subscribe","ref":1,"commands":["c"],"window":%d}`, len(oddPayloads)))
	hear[*wire.OK](k)
	for range oddPayloads {
		f := hear[*wire.TaskFrame](k)
		payload := string(f.Task.Payload)
		if ids[payload] != f.Task.ID {
			t.Errorf("pushed %v with %s", f.Task.ID, payload)
		}
		k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","result":{"r":%s}}`, f.Task.ID, f.Token, payload))
	}
	for payload, id := range ids {
		if read := x.read(id); string(read.Payload) != payload {
			t.Errorf("posted %s, read %s", payload, read.Payload)
		}
		a := x.ask("GET", "/v1/codeq/tasks/"+id.String()+"/result?waitSeconds=20", "")
		if record := a.record(t); string(record.Result) != `{"r":`+payload+`}` || record.Status != wire.StatusCompleted {
			t.Errorf("handed in {\"r\":%s}, read %+v", payload, record)
		}
	}
}

// record is the ResultRecord of an answer.
func (a answer) record(t *testing.T) *wire.ResultRecord {
	t.Helper()
	var body struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	record, err := wire.ParseResultRecord(body.Result)
	if err != nil {
		t.Fatalf("%s: %v", body.Result, err)
	}
	return record
}

func TestWaiterGetsTheResultAWorkerHandsIn(t *testing.T) {
	x := openSite(t, t.TempDir())
	task := x.post(okTask)
	waited := make(chan answer)
	go func() {
		waited <- x.ask("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "")
	}()
	c, err := client.New(x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := c.NewWorker(client.WorkerOptions{
		Commands: []string{"c"},
		Handler: func(_ context.Context, d client.Delivery) client.Outcome {
			return client.Complete([]byte(`{"got":` + string(d.Task.Payload) + `}`))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	if record := (<-waited).record(t); string(record.Result) != `{"got":{"n":1}}` {
		t.Errorf("the result is %s", record.Result)
	}
	stop()
	<-ended
}

func TestRestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	x := openSite(t, dir)
	if !x.server.Created() || x.server.Shards() != 4 {
		t.Errorf("created %v with %d shards", x.server.Created(), x.server.Shards())
	}
	pending := x.post(`{"command":"p","payload":{"big":123456789012345678901},"priority":7,"idempotencyKey":"k"}`)
	delayed := x.post(`{"command":"d","payload":"\u0000","delaySeconds":3600}`)
	done := x.post(okTask)
	k := x.dial()
	k.say(`{"type":"subscribe","ref":1,"commands":["c"]}`)
	hear[*wire.OK](k)
	f := hear[*wire.TaskFrame](k)
	k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","result":{"x":1e400}}`, f.Task.ID, f.Token))
	hear[*wire.OK](k)
	paths := []string{"/v1/codeq/admin/queues", "/v1/codeq/tasks/" + done.ID.String() + "/result"}
	for _, task := range []*wire.Task{pending, delayed, done} {
		paths = append(paths, "/v1/codeq/tasks/"+task.ID.String())
	}
	var before []answer
	for _, path := range paths {
		before = append(before, x.ask("GET", path, ""))
	}
	x.close()

	x = openSite(t, dir)
	if x.server.Created() || x.server.Shards() != 4 {
		t.Errorf("after the restart: created %v, %d shards", x.server.Created(), x.server.Shards())
	}
	for i, path := range paths {
		if after := x.ask("GET", path, ""); after.body != before[i].body || after.status != before[i].status {
			t.Errorf("%s\nbefore %d %s\nafter  %d %s", path, before[i].status, before[i].body, after.status, after.body)
		}
	}
	again := x.ask("POST", "/v1/codeq/tasks", `{"command":"p","payload":{"big":123456789012345678901},"priority":7,"idempotencyKey":"k"}`)
	if again.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(again.body, pending.ID.String()) {
		t.Errorf("the key is forgotten: %d %s", again.status, again.body)
	}
	if findings, err := audit.Check(x.server.store); err != nil || len(findings) > 0 {
		t.Errorf("check: %v %v", findings, err)
	}
}

func TestTimesComeFromTheEngineAndTheyOnlyGrow(t *testing.T) {
	x := openSite(t, t.TempDir())
	var before int64
	for range 20 {
		task := x.post(okTask)
		if task.CreatedAtMs < before {
			t.Fatalf("created at %d after %d", task.CreatedAtMs, before)
		}
		before = task.CreatedAtMs
	}
	var ready struct {
		Status            string
		Durability        string
		ClockDifferenceMs *int64
	}
	a := x.ask("GET", "/readyz", "")
	if err := json.Unmarshal([]byte(a.body), &ready); err != nil {
		t.Fatal(err)
	}
	if ready.Status != "ready" || ready.Durability != Durability || ready.ClockDifferenceMs == nil || *ready.ClockDifferenceMs > 1000 {
		t.Errorf("readyz: %s", a.body)
	}
}
