package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestNothingIsToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted, listed := make(chan got, 1), make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		go func() { listed <- b.do("GET", "/v1/codeq/admin/queues", "") }()
		synctest.Wait()
		select {
		case g := <-posted:
			t.Errorf("answered without a sync: %d %s", g.status, g.body)
		case g := <-listed:
			t.Errorf("read without a sync: %d %s", g.status, g.body)
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		if g := <-posted; g.status != http.StatusAccepted {
			t.Errorf("posted: %d %s", g.status, g.body)
		}
		if g := <-listed; !strings.Contains(g.body, `"ready":1`) {
			t.Errorf("listed: %d %s", g.status, g.body)
		}
	})
}

// The figures in the answer of a replay are read like any other.
func TestWhatAReplayLeavesIsNotToldBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted, replayed := make(chan got, 1), make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		go func() { replayed <- b.do("POST", "/v1/codeq/admin/queues/c/dlq/replay", "") }()
		synctest.Wait()
		select {
		case g := <-replayed:
			t.Errorf("told without a sync: %d %s", g.status, g.body)
			replayed <- g
		default:
		}
		if err := b.store.Barrier(); err != nil {
			t.Fatal(err)
		}
		<-posted
		if g := <-replayed; g.body != `{"replayed":0,"remaining":0}` {
			t.Errorf("replayed: %d %s", g.status, g.body)
		}
	})
}

func TestStopOfTheEngineAnswersProducersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		posted := make(chan got, 1)
		go func() { posted <- b.do("POST", tasksPath, okBody) }()
		synctest.Wait()
		b.stopEngine()
		if g := <-posted; g.status != http.StatusAccepted {
			t.Errorf("posted: %d %s", g.status, g.body)
		}
	})
}

// notOfTheStore are the routes that tell nothing of what shards do.
var notOfTheStore = map[string]string{
	loginPath:  "it says who asks",
	"/healthz": "says that the process lives", "/readyz": "counts what waits", "/version": "is fixed",
	"/metrics":          "is a page of figures for a graph, which a restart begins anew",
	"/v1/codeq/session": "is a socket", "/v1/codeq/events": "is a socket", "/v1/codeq/admin/sessions": "is of this process", "/v1/codeq/admin/backup": "makes its own sync",
	clusterPath:              "asks the other nodes",
	"/v1/codeq/admin/config": "is fixed", "/v1/codeq/admin/webhooks/secret": "is that of the directory",
	base + "/workers/subscriptions": "tells what every shard has on disk",
	webhooksPath:                    "tells what every shard has on disk", webhooksPath + "/{name}": "tells what every shard has on disk",
	limitsPath: "tells what every shard has on disk", limitsPath + "/{tenant}": "tells what every shard has on disk",
}

// Every route that reads waits until what it read is on disk: a crash would take it back.
// A replay, purge or cleanup that finds nothing tells of what is left.
func TestEveryRouteThatReadsWaitsForTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{unsynced: true})
		sync := func() {
			synctest.Wait()
			if err := b.store.Barrier(); err != nil {
				t.Fatal(err)
			}
		}
		begin := func(method, target, body string) chan got {
			answered := make(chan got, 1)
			go func() { answered <- b.do(method, target, body) }()
			return answered
		}
		posted := begin("POST", tasksPath, `{"command":"c","payload":1,"maxAttempts":1}`)
		sync()
		claimed := begin("POST", claimPath, `{}`)
		sync()
		task := (<-claimed).claimed(t)
		if g := <-posted; g.status != http.StatusAccepted {
			t.Fatalf("posted: %d %s", g.status, g.body)
		}
		died := begin("POST", task.path("nack"), `{"reason":"no luck"}`)
		synctest.Wait()
		reads := make(map[string]chan got)
		fill := strings.NewReplacer("{id}", task.ID.String(), "{command}", "c", "{name}", "w", "{artifact}", "f")
		for _, route := range Routes() {
			method, pattern, _ := strings.Cut(route, " ")
			if method == "GET" && notOfTheStore[pattern] == "" {
				reads[route] = begin(method, fill.Replace(pattern)+map[bool]string{true: "?state=dlq"}[strings.HasSuffix(pattern, "/tasks")], "")
			}
		}
		reads["GET waiting"] = begin("GET", fill.Replace(tasksPath+"/{id}/result?waitSeconds=9"), "")
		reads["HEAD"] = begin("HEAD", fill.Replace(tasksPath+"/{id}"), "")
		reads["purge"] = begin("DELETE", deadPath+"?error=nothing", "")
		reads["replay"] = begin("POST", deadPath+"/replay", `{"error":"nothing"}`)
		synctest.Wait()
		for route, answered := range reads {
			if len(answered) > 0 || len(died) > 0 {
				g := <-answered
				t.Errorf("%s is answered before the sync: %d %s", route, g.status, g.body)
				answered <- g
			}
		}
		if len(reads) < 10 {
			t.Errorf("only %d routes read", len(reads))
		}
		sync()
		<-died
		for route, answered := range reads {
			want := http.StatusOK
			if strings.Contains(route, "{artifact}") {
				want = http.StatusNotFound // the result has none
			}
			if g := <-answered; g.status != want {
				t.Errorf("%s is answered %d %s", route, g.status, g.body)
			}
		}
	})
}
