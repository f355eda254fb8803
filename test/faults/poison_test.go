package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// optional are the members that need not be there, each with the values that
// have poisoned records elsewhere. Whatever the server takes must not harm it.
var optional = map[string][]string{
	"priority": integers, "maxAttempts": integers, "delaySeconds": integers,
	"runAt":          append(texts, `"0001-01-01T00:00:00Z"`, `"1969-12-31T23:59:59.999Z"`, `"9999-12-31T23:59:59Z"`, `0`),
	"idempotencyKey": texts, "traceParent": texts, "traceState": texts, "webhook": texts,
}

var (
	integers = []string{`null`, `0`, `-0`, `1`, `-1`, `9223372036854775807`, `-9223372036854775808`, `18446744073709551616`, `1e400`, `0.5`, `""`, `[]`, `{}`}
	texts    = []string{`null`, `""`, `" "`, `0`, `[]`, `{}`, `"\u0000"`}
)

// bodies are an object with each of the members in each of its values, and one
// with none.
func bodies(always string, members map[string][]string) []string {
	all := []string{"{" + always + "}"}
	for name, values := range members {
		for _, value := range values {
			all = append(all, fmt.Sprintf(`{%s,%q:%s}`, always, name, value))
		}
	}
	return all
}

// Tasks and claims with every optional member missing or strange go through a
// lost lease, a kill and the start after it, and each takes the path that its
// attempts say.
func TestA22NoRecordPoisonsTheServer(t *testing.T) {
	x := newSite(t)
	// A lease without a length of its own is a second.
	if _, err := x.api.Do(x.ctx, http.MethodPut, "/admin/queues/c", `{"leaseSeconds":1}`); err != nil {
		t.Fatal(err)
	}
	var ids []wire.TaskID
	for _, body := range bodies(`"command":"c","payload":null`, optional) {
		task, err := x.api.Post(x.ctx, body)
		if err != nil {
			mustCode(t, body, err, wire.CodeInvalidArgument, wire.CodeInvalidPriority, wire.CodeInvalidTime, wire.CodeInvalidWebhook)
			continue
		}
		ids = append(ids, task.ID)
	}
	claims := bodies(`"commands":["c"]`, map[string][]string{
		"leaseSeconds": integers, "waitSeconds": {`null`, `0`, `-1`, `9223372036854775807`}, "workerId": texts, "count": integers,
	})
	overHTTP := 0
	for _, body := range claims {
		path := "/tasks/claim"
		if strings.Contains(body, "count") {
			path += "/batch"
		}
		answer, err := x.api.Do(x.ctx, http.MethodPost, path, body)
		if err != nil {
			mustCode(t, body, err, wire.CodeInvalidArgument)
			continue
		}
		overHTTP += strings.Count(string(answer.Body), "leaseToken")
	}
	w := x.worker(x.server.Addr, "lost", len(ids), 1)
	x.takeAll(w, len(ids)-overHTTP, patience)
	if overHTTP < 5 || overHTTP == len(ids) {
		t.Errorf("%d of %d tasks were claimed over HTTP", overHTTP, len(ids))
	}
	x.server.Kill()
	pause(x.ctx, 1500*time.Millisecond)
	x.server.Start()
	x.mustGoOn(ids)
	if text := x.metrics(); !strings.Contains(text, "\ncodeq_set_aside_total 0\n") {
		t.Error("a record could not be read")
	}
}

// metrics is the page of figures.
func (x *site) metrics() string {
	x.t.Helper()
	page, err := http.Get(x.server.URL() + "/metrics")
	if err != nil {
		x.t.Fatal(err)
	}
	return readAll(x.t, page)
}

// takeEach waits until each task has come to a worker or is a dead letter.
func (x *site) takeEach(p *blackbox.Peer, ids []wire.TaskID) (frames []*wire.TaskFrame) {
	x.t.Helper()
	missing := make(map[wire.TaskID]bool)
	for _, id := range ids {
		missing[id] = true
	}
	x.eventually(resumeGrace+patience, "each task has come or is dead", func() bool {
		for len(p.Tasks) > 0 {
			f := <-p.Tasks
			frames = append(frames, f)
			delete(missing, f.Task.ID)
		}
		for id := range missing {
			if x.read(id).Location != wire.LocationDead {
				return false
			}
			delete(missing, id)
		}
		return true
	})
	return frames
}

// mustGoOn finishes tasks whose leases were lost: those without a further attempt
// are dead letters, the others come again. Some are given back in strange words
// before. How often a lease was lost depends on the machine.
func (x *site) mustGoOn(ids []wire.TaskID) {
	x.t.Helper()
	w := x.worker(x.server.Addr, "next", len(ids), 3600)
	frames := x.takeEach(w, ids)
	if err := w.Subscribe(x.ctx, "other", len(ids), 60); err != nil { // what it hands back stays there
		x.t.Fatal(err)
	}
	words := bodies(`"exitCode":1`, map[string][]string{"delaySeconds": {`null`, `-1`, `9223372036854775807`}, "reason": texts})
	outcomes := bodies(`"result":{}`, map[string][]string{"artifacts": {`null`, `[]`, `0`, `[null]`, `[{}]`}, "error": texts, "status": texts})
	for n, f := range frames {
		if f.Task.Attempts >= f.Task.Deliveries || f.Task.Attempts >= f.Task.MaxAttempts {
			x.t.Errorf("task %v comes with %d attempts, delivery %d", f.Task.ID, f.Task.Attempts, f.Task.Deliveries)
		}
		path := "/tasks/" + f.Task.ID.String()
		body := words[n%len(words)]
		_, err := x.api.Do(x.ctx, http.MethodPost, path+"/nack", withToken(body, f.Token))
		if err == nil {
			continue // it waits, or is dead if it had two attempts
		}
		mustCode(x.t, body, err, wire.CodeInvalidTime, wire.CodeInvalidArgument)
		body = outcomes[n%len(outcomes)]
		if _, err = x.api.Do(x.ctx, http.MethodPost, path+"/result", withToken(body, f.Token)); err != nil {
			mustCode(x.t, body, err, wire.CodeInvalidResult, wire.CodeInvalidArgument)
			x.complete(w, f, `{}`)
		}
	}
	x.eventually(patience, "nothing is in progress", func() bool { return x.figures(command).InProgress == 0 })
	x.server.Kill()
	x.server.Start()
	for _, id := range ids {
		task := x.read(id)
		defined := task.Status == wire.StatusCompleted || task.Status == wire.StatusPending && task.Attempts >= 1 ||
			task.Location == wire.LocationDead && task.Attempts == task.MaxAttempts && task.Error != ""
		if !defined {
			x.t.Errorf("task %v is on no path: %+v", id, task)
		}
	}
}

// withToken is a body with the token of a delivery.
func withToken(body string, token wire.Token) string {
	return fmt.Sprintf(`%s,"leaseToken":"%v"}`, body[:len(body)-1], token)
}

// keyed is one key, and what its last post was told.
type keyed struct {
	body string
	id   wire.TaskID
}

// The server is killed at random while tasks with keys are made, finished,
// cancelled and removed. No key is left without its task, no task without its
// key, and each key is good for a task that can be finished.
func TestA49NoKeyIsLeftBehind(t *testing.T) {
	x := newSite(t)
	if _, err := x.api.Do(x.ctx, http.MethodPut, "/admin/queues/c", `{"retentionSeconds":1}`); err != nil {
		t.Fatal(err)
	}
	const keys, hands = 40, 4
	chance := rand.New(rand.NewPCG(4, 9))
	var known [hands][]*keyed
	for n := range keys {
		k := &keyed{body: fmt.Sprintf(`{"command":"c","payload":%d,"idempotencyKey":"k%d"}`, n, n)}
		known[n%hands] = append(known[n%hands], k)
	}
	for range scale(6, 200) {
		var stops []func()
		for n := range hands {
			seed := chance.Uint64()
			stops = append(stops, x.inBackground(func(ctx context.Context) { x.turnKeys(ctx, known[n], seed) }))
		}
		pause(x.ctx, time.Duration(50+chance.IntN(300))*time.Millisecond)
		x.server.Kill()
		for _, stop := range stops {
			stop()
		}
		x.server.Start()
		for _, mine := range known {
			for _, k := range mine {
				x.mustLeadToItsTask(k)
			}
		}
	}
	for _, mine := range known {
		for _, k := range mine {
			x.mustBeFinished(k)
		}
	}
	x.eventually(patience, "everything has its time behind it", func() bool {
		q := x.figures(command)
		return q.Ready+q.Delayed+q.InProgress == 0
	})
}

// turnKeys posts, finishes and cancels the tasks of some keys until ctx ends.
func (x *site) turnKeys(ctx context.Context, mine []*keyed, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		k := mine[chance.IntN(len(mine))]
		task, err := x.api.Post(ctx, k.body)
		if err != nil {
			pause(ctx, lookAgain) // the server is gone
			continue
		}
		k.id = task.ID
		path := "/tasks/" + task.ID.String()
		// What is said of it may be too late, or cut off; only the keys are looked at.
		switch chance.IntN(4) {
		case 0:
			_, _ = x.api.Do(ctx, http.MethodPost, path+"/cancel", "")
		case 1:
			answer, err := x.api.Do(ctx, http.MethodPost, "/tasks/claim", `{"commands":["c"],"leaseSeconds":600}`)
			if err != nil || answer.Status != http.StatusOK {
				continue
			}
			if got, token, err := wire.ParseClaimed(answer.Body); err == nil {
				_, _ = x.api.Do(ctx, http.MethodPost, "/tasks/"+got.ID.String()+"/result", withToken(`{"result":{}}`, token))
			}
		case 2:
			_, _ = x.api.Do(ctx, http.MethodPost, "/admin/tasks/cleanup", `{"before":"2100-01-01T00:00:00Z"}`)
		}
	}
}

// mustLeadToItsTask posts a key: the answer is a task that is there, and the one
// it was before if that still is.
func (x *site) mustLeadToItsTask(k *keyed) {
	x.t.Helper()
	before := k.id
	wasThere := false
	if !before.IsZero() {
		task, err := x.api.Read(x.ctx, before)
		wasThere = err == nil && !task.Status.Terminal() // one that has ended may go at any moment
	}
	task, err := x.api.Post(x.ctx, k.body)
	if err != nil {
		x.t.Errorf("post %s: %v", k.body, err)
		return
	}
	k.id = task.ID
	if wasThere && task.ID != before {
		x.t.Errorf("%s had the task %v, which is there, and now leads to %v", k.body, before, task.ID)
	}
	if task.Status.Terminal() {
		return
	}
	if _, err := x.api.Read(x.ctx, task.ID); err != nil {
		x.t.Errorf("%s leads to %v: %v", k.body, task.ID, err)
	}
}

// mustBeFinished posts a key until its task is a new one or one that has not
// ended, and ends it.
func (x *site) mustBeFinished(k *keyed) {
	x.t.Helper()
	task, err := x.api.Post(x.ctx, k.body)
	if err != nil {
		x.t.Errorf("post %s: %v", k.body, err)
		return
	}
	if task.Status.Terminal() {
		return
	}
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+task.ID.String()+"/cancel", ""); err != nil {
		x.t.Errorf("the task of %s cannot be ended: %v", k.body, err)
	}
}
