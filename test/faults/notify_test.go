package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"codeq/wire"
)

// A subscriber is told while a queue has work and no worker, also after a kill of the server, and not
// once a worker has it.
func TestASubscriberIsToldOfWorkOverAKill(t *testing.T) {
	type signal struct {
		EventType, NotificationID string
		QueueDepth                int
	}
	told := make(chan signal, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var s signal
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the server was killed
		}
		if err := json.Unmarshal(body, &s); err != nil || s.NotificationID != r.Header.Get("webhook-id") {
			t.Errorf("%s: %v", body, err)
		}
		told <- s
	}))
	t.Cleanup(receiver.Close)
	x := newSite(t, "--webhook-allow", "127.0.0.0/8")
	made := x.ask(http.MethodPost, "/workers/subscriptions", fmt.Sprintf(`{"callbackUrl":%q,"eventTypes":[%q],"minIntervalSeconds":1}`, receiver.URL, command))
	var s struct{ SubscriptionID string }
	decode(t, made.Body, &s)
	ids := x.post(command, 2, 1)
	for range 2 {
		if got := <-told; got.EventType != command || got.QueueDepth != 2 {
			t.Errorf("%+v", got)
		}
	}
	x.server.Kill()
	for len(told) > 0 {
		<-told
	}
	x.server.Start()
	<-told
	x.ask(http.MethodPost, "/workers/subscriptions/"+s.SubscriptionID+"/heartbeat", "")
	p := x.worker(x.server.Addr, "w", 10, 60)
	x.takeAll(p, 2, patience)
	pause(x.ctx, aWhile) // a call may have been on its way
	for len(told) > 0 {
		<-told
	}
	pause(x.ctx, aWhile)
	if len(told) > 0 {
		t.Errorf("told of work that a worker has: %+v", <-told)
	}
	if task := x.read(ids[0]); task.Status != wire.StatusInProgress {
		t.Errorf("%+v", task)
	}
}
