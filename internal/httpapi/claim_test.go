package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

const (
	claimPath      = tasksPath + "/claim"
	claimBatchPath = tasksPath + "/claim/batch"
)

// claimed is a task in the hands of a worker over HTTP.
type claimed struct {
	*wire.Task
	token wire.Token
}

func (c claimed) path(verb string) string { return tasksPath + "/" + c.ID.String() + "/" + verb }

// claim takes one task, which must be there.
func (b *bench) claim(body string, header ...string) claimed {
	b.t.Helper()
	return b.do("POST", claimPath, body, header...).claimed(b.t)
}

func (g got) claimed(t testing.TB) claimed {
	t.Helper()
	if g.status != http.StatusOK {
		t.Fatalf("claim: %d %s", g.status, g.body)
	}
	task, token, err := wire.ParseClaimed([]byte(g.body))
	if err != nil {
		t.Fatalf("claim answered %s: %v", g.body, err)
	}
	return claimed{task, token}
}

func (g got) claimedAll(t testing.TB) []claimed {
	t.Helper()
	var list struct{ Tasks []json.RawMessage }
	if err := json.Unmarshal([]byte(g.body), &list); err != nil || g.status != http.StatusOK {
		t.Fatalf("claim: %d %s (%v)", g.status, g.body, err)
	}
	all := make([]claimed, 0, len(list.Tasks))
	for _, raw := range list.Tasks {
		all = append(all, got{status: g.status, body: string(raw)}.claimed(t))
	}
	return all
}

func (g got) mustBeNothing(t testing.TB) {
	t.Helper()
	if g.status != http.StatusNoContent || g.body != "" || g.header.Get("Content-Type") != "" || g.header.Get("Content-Length") != "" {
		t.Errorf("want 204 and nothing else, got %d %q %v", g.status, g.body, g.header)
	}
}

func (b *bench) read(id wire.TaskID) *wire.Task {
	b.t.Helper()
	g := b.do("GET", tasksPath+"/"+id.String(), "")
	task, err := wire.ParseTask([]byte(g.body))
	if err != nil {
		b.t.Fatalf("%d %s: %v", g.status, g.body, err)
	}
	return task
}

func TestClaimTakesWhatThereIs(t *testing.T) {
	b := newBench(t, setup{})
	b.do("POST", claimPath, "").mustBeNothing(t)
	task := b.post(`{"command":"c","payload":{"n":1e400}}`)
	b.do("POST", claimPath, `{"commands":["d"]}`).mustBeNothing(t)
	got := b.claim(`{"commands":["d","c"],"leaseSeconds":60,"workerId":"ada"}`)
	if got.ID != task.ID || got.Deliveries != 1 || got.WorkerID != "ada" || string(got.Payload) != `{"n":1e400}` ||
		got.Status != wire.StatusInProgress || got.token.IsZero() || got.LeaseUntilMs != got.UpdatedAtMs+60_000 {
		t.Errorf("claimed %+v", got.Task)
	}
	b.do("POST", claimPath, `{"commands":["*"]}`).mustBeNothing(t)
	if seen := b.read(task.ID); seen.WorkerID != "ada" || seen.Status != wire.StatusInProgress {
		t.Errorf("the store says %+v", seen)
	}
	b.post(okBody)
	if unnamed := b.claim(""); unnamed.WorkerID != wire.AnonymousSubject {
		t.Errorf("a worker without a name is called %q", unnamed.WorkerID)
	}
}

func TestClaimBatchTakesWhatThereIsUpToItsCount(t *testing.T) {
	b := newBench(t, setup{})
	for range 30 {
		b.post(okBody)
	}
	if n := len(b.do("POST", claimBatchPath, `{"count":12,"waitSeconds":30}`).claimedAll(t)); n != 12 {
		t.Errorf("asked for 12, got %d", n)
	}
	if n := len(b.do("POST", claimBatchPath, "").claimedAll(t)); n != 1 {
		t.Errorf("asked for no number, got %d", n)
	}
	rest := b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(t)
	if len(rest) != 17 {
		t.Errorf("17 are left, got %d", len(rest))
	}
	b.do("POST", claimBatchPath, `{"count":100}`).mustBeNothing(t)
}

// A batch of large tasks ends soon after a mebibyte: a shard that knows of it
// adds no more, and each may be on its way with one.
func TestClaimBatchIsBoundedInBytes(t *testing.T) {
	b := newBench(t, setup{})
	const each, posted = 300 << 10, 24
	for range posted {
		b.post(`{"command":"c","payload":"` + strings.Repeat("x", each) + `"}`)
	}
	taken := 0
	for taken < posted {
		n := len(b.do("POST", claimBatchPath, `{"count":100}`).claimedAll(t))
		if n > 4+b.engine.Shards() {
			t.Errorf("one answer has %d tasks of %d bytes", n, each)
		}
		taken += n
	}
}

func TestWaitingClaimIsWokenByTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		answers := make(chan got, 5)
		startedAt := time.Now()
		for range 4 {
			go func() { answers <- b.do("POST", claimPath, `{"waitSeconds":30,"commands":["c","d"]}`) }()
		}
		go func() { answers <- b.do("POST", claimBatchPath, `{"waitSeconds":30,"count":7,"commands":["*"]}`) }()
		synctest.Wait()
		<-time.After(3 * time.Second)
		for range 5 {
			b.post(okBody)
			g := <-answers
			if g.status != http.StatusOK {
				t.Errorf("a claim that waited: %d %s", g.status, g.body)
			}
		}
		if waited := time.Since(startedAt); waited != 3*time.Second {
			t.Errorf("answered after %v", waited)
		}
		b.post(okBody)
		b.claim("")
	})
}

func TestWaitingClaimEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		startedAt := time.Now()
		b.do("POST", claimPath, `{"waitSeconds":7}`).mustBeNothing(t)
		if waited := time.Since(startedAt); waited != 7*time.Second {
			t.Errorf("waited %v", waited)
		}
		// Nobody sits there any more.
		task := b.post(okBody)
		synctest.Wait()
		if seen := b.read(task.ID); seen.Deliveries != 0 {
			t.Errorf("a claim that is over got %+v", seen)
		}
	})
}

func TestWaitingClaimIsSentAwayByAServerThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		answers := make(chan got, 1)
		go func() { answers <- b.do("POST", claimPath, `{"waitSeconds":30}`) }()
		synctest.Wait()
		close(b.draining)
		(<-answers).mustRefuse(t, wire.CodeDraining)
		b.post(okBody)
		b.do("POST", claimPath, "").mustRefuse(t, wire.CodeDraining)
	})
}

// leave makes a claim whose client has gone by the time there is an answer.
func (b *bench) leave(body string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", claimBatchPath, strings.NewReader(body))
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || w.Body.Len() > 0 {
			b.t.Errorf("a client that left is answered %d %s (%v)", w.Code, w.Body, p)
		}
	}()
	b.api.ServeHTTP(w, r)
}

func TestWhatAClientThatLeftDidNotGetGoesBackToItsPlace(t *testing.T) {
	b := newBench(t, setup{})
	var ids []wire.TaskID
	for range 3 {
		ids = append(ids, b.post(okBody).ID)
	}
	b.leave(`{"count":2,"leaseSeconds":43200}`)
	b.leave(`{"count":3,"leaseSeconds":43200}`)
	all := b.do("POST", claimBatchPath, `{"count":3}`).claimedAll(t)
	if len(all) != 3 {
		t.Fatalf("%d of 3 tasks came back", len(all))
	}
	for _, c := range all {
		if c.Attempts != 0 || c.Deliveries < 2 {
			t.Errorf("came back as %+v", c.Task)
		}
	}
	for _, id := range ids {
		g := b.do("POST", tasksPath+"/"+id.String()+"/result", `{"result":{}}`)
		if g.status != http.StatusOK {
			t.Errorf("%d %s", g.status, g.body)
		}
	}
}

func TestN11AClientThatLeavesMakesASuspectAndCostsNoAttempt(t *testing.T) {
	b := newBench(t, setup{})
	b.do("PUT", "/v1/codeq/admin/queues/c", `{"backoff":{"policy":"fixed","baseSeconds":1}}`)
	id := b.post(`{"command":"c","payload":1,"maxAttempts":1}`).ID
	for range 3 {
		b.leave(`{"commands":["c"]}`)
	}
	// What was handed back may be on its way to the shard for a moment.
	for task := b.read(id); task.Waiting == nil || task.Waiting.Reason != wire.WaitingSuspect; task = b.read(id) {
		if task.Deliveries > 3 || task.Attempts > 0 {
			t.Fatalf("after three in a row it is %+v", task)
		}
	}
	b.post(`{"command":"c","payload":2}`)
	all := b.do("POST", claimBatchPath, `{"commands":["c"],"count":3}`).claimedAll(t)
	if len(all) != 1 || all[0].ID == id {
		t.Fatalf("before its time %d tasks came", len(all))
	}
	all = b.do("POST", claimBatchPath, `{"commands":["c"],"count":3,"waitSeconds":30}`).claimedAll(t)
	if len(all) != 1 || all[0].ID != id || all[0].Attempts != 0 || all[0].Deliveries != 4 {
		t.Errorf("at its time came %+v", all)
	}
}

func TestAConnectionThatEndsWhileItsClaimWaitsTakesNothing(t *testing.T) {
	wireTest(t, func(t *testing.T, b *bench, c *byHand) {
		c.say("POST " + claimPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n" + `{"waitSeconds":30}`)
		synctest.Wait()
		if strings.Contains(b.log.String(), "/claim") {
			t.Fatalf("the claim is over already: %s", b.log)
		}
		if err := c.conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		task := b.post(okBody)
		synctest.Wait()
		if seen := b.read(task.ID); seen.Status != wire.StatusPending || seen.Deliveries != 0 {
			t.Errorf("a client that has gone got %+v", seen)
		}
	})
}

func TestClaimsAreHeldToTheCredential(t *testing.T) {
	known := keys{
		"all":   {Tenant: "t", Subject: "s"},
		"c":     {Tenant: "t", Subject: "s", Scopes: auth.WorkerScopes(), Commands: []string{"c"}},
		"none":  {Tenant: "t", Subject: "s", Scopes: auth.WorkerScopes(), Commands: []string{}},
		"maker": {Tenant: "t", Subject: "s", Scopes: []string{auth.ScopeProduce}},
	}
	b := newBench(t, setup{auth: known})
	ask := func(path, body, who string) got { return b.do("POST", path, body, "Authorization", "Bearer "+who) }
	b.post(`{"command":"d","payload":1}`, "Authorization", "Bearer all")
	for _, path := range []string{claimPath, claimBatchPath} {
		ask(path, "", "maker").mustRefuse(t, wire.CodeForbidden)
		ask(path, `{"commands":["c","d"]}`, "c").mustRefuse(t, wire.CodeForbidden)
		for _, who := range []string{"c", "none"} {
			ask(path, "", who).mustBeNothing(t)
			ask(path, `{"commands":["*"]}`, who).mustBeNothing(t)
		}
	}
	if got := ask(claimPath, "", "all").claimed(t); got.Command != "d" || got.WorkerID != "s" {
		t.Errorf("claimed %+v", got.Task)
	}
}

// A token may be taken back while a claim waits.
func TestACredentialThatEndedWhileTheClaimWaitedTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(2 * time.Second).UnixMilli()
		b := newBench(t, setup{auth: keys{"old": {Tenant: wire.DefaultTenant, Subject: "s", ExpiresAtMs: soon}, "good": {Tenant: wire.DefaultTenant, Subject: "g"}}})
		answers := make(chan got, 1)
		go func() { answers <- b.do("POST", claimPath, `{"waitSeconds":30}`, "Authorization", "Bearer old") }()
		<-time.After(3 * time.Second)
		b.post(okBody, "Authorization", "Bearer good")
		(<-answers).mustRefuse(t, wire.CodeUnauthenticated)
		if c := b.claim("", "Authorization", "Bearer good"); c.Attempts != 0 || c.Deliveries != 2 {
			t.Errorf("the task came back as %+v", c.Task)
		}
	})
}

// A shard that is too busy is an answer only if the others had nothing.
func TestAClaimOfABusyServerIsRefused(t *testing.T) {
	b := newBench(t, setup{idle: true, mailbox: mailbox.Limits{Messages: 2, Bytes: 1 << 20}})
	for shardNo := range b.engine.Shards() {
		for b.engine.Post(shardNo, []shard.Message{&shard.SpaceChanged{}}, 1, mailbox.ClassKeep) == mailbox.Accepted {
		}
	}
	for _, path := range []string{claimPath, claimBatchPath} {
		b.do("POST", path, `{"waitSeconds":30}`).mustRefuse(t, wire.CodeOverloaded)
	}
}

// Sessions and claims wait in one line, and what one hands back reaches the
// other at once.
func TestA04WhatOneWorkerHandsBackReachesOneThatWaitsTheOtherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		w := b.newWorker("c")
		b.post(okBody)
		inHand := w.take()
		answers := make(chan got, 1)
		go func() { answers <- b.do("POST", claimPath, `{"waitSeconds":30}`) }()
		synctest.Wait()
		startedAt := time.Now()
		// The session ends before its task was confirmed.
		w.consumer.Close(0)
		c := (<-answers).claimed(t)
		if c.ID != inHand.Task.ID || c.Attempts != 0 || time.Since(startedAt) != 0 {
			t.Errorf("after %v the claim got %+v", time.Since(startedAt), c.Task)
		}
		next := b.newWorker("c")
		if g := b.do("POST", c.path("nack"), `{"delaySeconds":0}`); g.status != http.StatusOK {
			t.Fatalf("%d %s", g.status, g.body)
		}
		if again := next.take(); again.Task.ID != c.ID || again.Task.Attempts != 1 {
			t.Errorf("the session got %+v", again.Task)
		}
		next.consumer.Close(0)
	})
}

// Three queues of one shard and one of another, full all the time, a session with a
// window of 1 and a claimer, both of all queues: each queue has a quarter of what
// the two get, and the shard of three has three quarters of either.
func TestU02QueuesOfAllShardsShareClaimsAndASession(t *testing.T) {
	b := newBench(t, setup{})
	names := []string{}
	for n, left := 0, map[int]int{1: 3, 2: 1}; len(left) > 0; n++ {
		name := fmt.Sprint("queue", n)
		home := wire.ShardOfQueue(wire.DefaultTenant, name, b.engine.Shards())
		if left[home] > 0 {
			names = append(names, name)
			left[home]--
		}
		if left[home] == 0 {
			delete(left, home)
		}
	}
	const rounds = 240
	w := b.newWorker(wire.AllCommands)
	w.consumer.SetWindow(1)
	for _, name := range names {
		b.do("POST", batchPath, batchOf(slices.Repeat([]string{`{"command":"` + name + `","payload":1}`}, rounds)...))
	}
	var ofOneShard [2]int // of claimer and session
	all := map[string]int{}
	count := func(who int, command string) {
		all[command]++
		if wire.ShardOfQueue(wire.DefaultTenant, command, b.engine.Shards()) == 1 {
			ofOneShard[who]++
		}
	}
	for range rounds {
		count(0, b.claim("").Command)
		g := w.take()
		count(1, g.Task.Command)
		w.consumer.Taken(len(g.Task.Payload), shard.MaxUntakenBytes)
		w.finish(g, `{}`)
		w.consumer.Return(1)
	}
	for _, name := range names {
		if share := float64(100*all[name]) / (2 * rounds); share < 22 || share > 28 {
			t.Errorf("%s got %.1f %% of the turns: %v", name, share, all)
		}
	}
	for who, n := range ofOneShard {
		if share := float64(100*n) / rounds; share < 72 || share > 78 {
			t.Errorf("%s got %.1f %% of its tasks from the shard with three of the four queues", []string{"the claimer", "the session"}[who], share)
		}
	}
}
