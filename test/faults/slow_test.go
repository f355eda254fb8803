package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// A worker behind a thin line, with room for everything, has it all
// in the time that the line needs: it is never cut, nothing lapses on its way, and
// nothing is charged for the wait.
func TestN11SlowLineLosesNoTask(t *testing.T) {
	tasks, bytes, perSecond, lease := scale(20, 40), scale(100, 200)<<10, scale(64, 64)<<10, scale(12, 30)
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.Slow(perSecond, blackbox.Down)
	ids := x.post(command, tasks, bytes)
	w := x.worker(proxy.Addr, "far", tasks, lease)
	late := time.Now().Add(2*time.Duration(tasks*bytes/perSecond)*time.Second + slack)
	for range tasks {
		f := x.take(w, time.Until(late))
		if f.Task.Deliveries > 1 || f.Task.Attempts > 0 {
			t.Errorf("task %v comes as delivery %d, attempts %d", f.Task.ID, f.Task.Deliveries, f.Task.Attempts)
		}
		// The answers stand behind tasks, and the worker has other things to do.
		done := &wire.Result{TaskRef: blackbox.RefOf(f), ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)}}
		if err := w.Say(done); err != nil {
			t.Fatal(err)
		}
	}
	x.eventually(patience, "all are done", func() bool { return x.figures(command).InProgress == 0 })
	if n := proxy.Taken(); n != 1 {
		t.Errorf("it connected %d times", n)
	}
	for _, id := range ids {
		if task := x.read(id); task.Status != wire.StatusCompleted || len(task.History) > 0 {
			t.Errorf("task %v is %s, %v", id, task.Status, task.History)
		}
	}
}

// One message that takes many times as long as the server waits for a sign of life
// ends no session, whose pongs stand behind it.
func TestN11LongMessageEndsNoSession(t *testing.T) {
	// It has to last for longer than a ping may wait, which is paced.Window, and three
	// more pings.
	bytes, perSecond := scale(640, 900)<<10, scale(24, 8)<<10
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	w := x.peer(proxy.Addr, "far")
	proxy.Slow(perSecond, blackbox.Down)
	x.post(command, 1, bytes)
	if err := w.Say(&wire.Subscribe{Commands: []string{command}, Window: 1, LeaseSeconds: 3600}); err != nil {
		t.Fatal(err)
	}
	f := x.take(w, 2*time.Duration(bytes/perSecond)*time.Second+slack)
	x.complete(w, f, `{}`)
}

// So it is for the SDK: a large task that comes slowly is a sign of the server, and
// a large result that goes slowly is taken.
func TestN11SlowLineAndTheSDK(t *testing.T) {
	bytes, perSecond := 200<<10, 16<<10
	x := newWatchfulSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.Slow(perSecond, blackbox.Up, blackbox.Down)
	ids := x.post(command, 1, bytes)
	c := x.sdk(proxy.Addr)
	x.inBackground(func(ctx context.Context) {
		_ = client.Work(ctx, c, command, func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			return in, nil
		}) // ends with the test
	})
	if record := x.outcome(ids[0]); record.Status != wire.StatusCompleted || len(record.Result) < bytes {
		t.Errorf("the result is %s with %d bytes", record.Status, len(record.Result))
	}
	if task := x.read(ids[0]); task.Deliveries != 1 {
		t.Errorf("it took %d deliveries", task.Deliveries)
	}
}

// A claim over a thin line takes longer than the lease of what it brings: the lease
// is kept until the answer is written, and nothing is charged.
func TestN11ClaimOverASlowLine(t *testing.T) {
	tasks, bytes, perSecond := 5, scale(100, 200)<<10, scale(64, 32)<<10
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.Slow(perSecond, blackbox.Down)
	ids := x.post(command, tasks, bytes)
	api := blackbox.NewAPI(proxy.Addr)
	t.Cleanup(api.Close)
	ctx, cancel := context.WithTimeout(x.ctx, patience+4*time.Duration(tasks*bytes/perSecond)*time.Second)
	defer cancel()
	answer, err := api.Do(ctx, http.MethodPost, "/tasks/claim/batch", fmt.Sprintf(`{"count":%d,"leaseSeconds":5}`, tasks))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(answer.Body), `"leaseToken"`); n != tasks {
		t.Fatalf("%d tasks came, want %d", n, tasks)
	}
	for _, id := range ids {
		if task := x.read(id); task.Status != wire.StatusInProgress || task.Deliveries != 1 {
			t.Errorf("task %v is %s, %v when it has arrived", id, task.Status, task.History)
		}
	}
}

// A client that reads slowly but steadily gets its answer, however long that takes,
// and one that sends slowly but steadily is heard.
func TestN11SlowBodiesBothWays(t *testing.T) {
	bytes, perSecond := 300<<10, 8<<10
	x := newSite(t)
	proxy := blackbox.NewProxy(t, x.server.Addr)
	proxy.Slow(perSecond, blackbox.Up)
	proxy.Slow(scale(64<<10, perSecond), blackbox.Down)
	api := blackbox.NewAPI(proxy.Addr)
	t.Cleanup(api.Close)
	ctx, cancel := context.WithTimeout(x.ctx, patience+8*time.Duration(bytes/perSecond)*time.Second)
	defer cancel()
	body := fmt.Sprintf(`{"command":"c","payload":"%s"}`, strings.Repeat("x", bytes))
	answer, err := api.Do(ctx, http.MethodPost, "/tasks", body)
	if err != nil {
		t.Fatalf("a body that comes slowly: %v", err)
	}
	if !strings.Contains(string(answer.Body), `"PENDING"`) || len(answer.Body) < bytes {
		t.Errorf("the answer has %d bytes", len(answer.Body))
	}
}
