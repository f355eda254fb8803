package scale

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

var pageTasks = flag.Int("scale.pages", 12_000, "tasks beside which the first pages of lists are read")

const (
	// pageQueues is how many queues there are; the first one has half of the tasks.
	pageQueues = 150
	// heldTasks stay with their worker.
	heldTasks = 300
	// pageSamples is how often each page is read.
	pageSamples = 15
	// snapshotWithin and pageWithin are what this should take on an idle machine.
	snapshotWithin = 50 * time.Millisecond
	pageWithin     = 300 * time.Millisecond
)

func pageQueue(n int) string {
	if n%2 == 0 {
		n = 0
	}
	return fmt.Sprintf("page-%03d", n/2%pageQueues)
}

// TestFirstPagesBesideManyTasks shows how long the figures of all queues and the first pages of
// lists take beside tasks in every state, and the start. It fails only on a wrong answer.
func TestFirstPagesBesideManyTasks(t *testing.T) {
	b := &bench{t: t, server: blackbox.Serve(t)}
	b.api = blackbox.NewAPI(b.server.Addr)
	defer b.api.Close()
	began := time.Now()
	b.postPages()
	t.Logf("%d tasks made in %v", *pageTasks, time.Since(began).Round(time.Second))
	b.showPages()
	b.server.Kill()
	began = time.Now()
	b.server.Start()
	b.page("GET /admin/queues", "/admin/queues", pageWithin)
	t.Logf("%-60s %10v", "start after kill -9 until the figures are read", time.Since(began).Round(time.Millisecond))
	b.showPages()
	t.Logf("the server has %.0f MiB", blackbox.Figure(b.server.Metrics(), "process_resident_memory_bytes")/(1<<20))
}

func (b *bench) showPages() {
	b.snapshot()
	for _, query := range []string{
		"state=ready", "state=delayed", "state=inProgress", "state=dlq", "state=done", "state=dlq&error=host+3",
		"state=dlq&error=of+no+task", "state=done&status=CANCELLED", "state=ready&worker=nobody", "state=dlq&cause=exhausted",
	} {
		b.page("page of "+query, "/admin/queues/page-000/tasks?"+query, pageWithin)
	}
	for _, search := range []string{
		"label=customer=7", "command=page-000&error~=host+3", "payload~=no+such+text", "olderThan=1m&attempts%3E=1", "worker=nobody",
	} {
		b.page("search by "+search, "/admin/tasks?"+search, pageWithin)
	}
	b.page("reasons", "/admin/queues/page-000/dlq/reasons", pageWithin)
}

// postPages makes the tasks: a tenth ends, a few stay with a worker, the others are ready or
// delayed by a month.
func (b *bench) postPages() {
	ended := *pageTasks / 10
	b.postRange(0, ended+heldTasks, "")
	b.answer(ended)
	b.postRange(ended+heldTasks, *pageTasks/2, "")
	b.postRange(*pageTasks/2, *pageTasks, `,"delaySeconds":2592000`)
}

func (b *bench) postRange(from, to int, more string) {
	batches, posted := b.poster()
	for ; from < to; from += batchTasks {
		var items []string
		for n := from; n < min(from+batchTasks, to); n++ {
			items = append(items, fmt.Sprintf(`{"command":%q,"payload":{"customer":%d},"labels":{"customer":"%d"}%s}`, pageQueue(n), n%5000, n%5000, more))
		}
		batches <- items
	}
	posted()
}

// answer claims all tasks, and ends the first so many of them, every second one FAILED.
func (b *bench) answer(ended int) {
	var working sync.WaitGroup
	left := make(chan struct{}, ended)
	for range ended {
		left <- struct{}{}
	}
	for range posters {
		working.Go(func() {
			api := blackbox.NewAPI(b.server.Addr)
			defer api.Close()
			for answerSome(b.t, api, left) {
			}
		})
	}
	working.Wait()
}

// answerSome claims and answers tasks, and reports whether there were some.
func answerSome(t *testing.T, api *blackbox.API, left <-chan struct{}) bool {
	var claimed struct {
		Tasks []struct{ ID, LeaseToken string }
	}
	answer, err := api.Do(context.Background(), http.MethodPost, "/tasks/claim/batch", `{"count":100,"leaseSeconds":3600}`)
	if err == nil && answer.Status != http.StatusNoContent {
		err = json.Unmarshal(answer.Body, &claimed)
	}
	if err != nil {
		t.Errorf("claim: %v", err)
	}
	var items []string
	for i, task := range claimed.Tasks {
		outcome := `"result":{}`
		if i%2 == 0 {
			outcome = fmt.Sprintf(`"status":"FAILED","error":"timeout talking to host %d"`, i%7)
		}
		select {
		case <-left:
			items = append(items, fmt.Sprintf(`{"taskId":%q,"leaseToken":%q,%s}`, task.ID, task.LeaseToken, outcome))
		default: // it stays with this worker
		}
	}
	if len(items) > 0 {
		if err := (caller{context.Background(), api}).ask(http.MethodPost, "/tasks/batch/results", `{"results":[`+strings.Join(items, ",")+`]}`, nil); err != nil {
			t.Error(err)
		}
	}
	return len(claimed.Tasks) > 0
}

// snapshot shows how long it takes from connecting until the figures of all queues are there,
// which must add up to all tasks.
func (b *bench) snapshot() {
	c, err := client.New(b.server.URL())
	if err != nil {
		b.t.Fatal(err)
	}
	b.show("connect and snapshot of queues", snapshotWithin, func() {
		for news, err := range c.Watch(b.t.Context(), client.QueueWatch{}) {
			if err != nil {
				b.t.Fatal(err)
			}
			sum := int64(0)
			for i := range news.Queues {
				for _, tasks := range news.Queues[i].Figures[wire.FigureReady : wire.FigureDone+1] {
					sum += tasks
				}
			}
			if len(news.Queues) != pageQueues || sum != int64(*pageTasks) {
				b.t.Fatalf("%d queues with %d tasks, want %d and %d", len(news.Queues), sum, pageQueues, *pageTasks)
			}
			break
		}
	})
}

func (b *bench) page(what, path string, within time.Duration) {
	b.t.Helper()
	size := 0
	b.show(what, within, func() {
		answer, err := b.api.Do(context.Background(), http.MethodGet, path, "")
		if err != nil {
			b.t.Fatalf("GET %s: %v", path, err)
		}
		size = len(answer.Body)
	})
	if size < len(`{"tasks":[]}`) {
		b.t.Errorf("GET %s: %d bytes", path, size)
	}
}

// show logs the median and the longest of some times.
func (b *bench) show(what string, within time.Duration, do func()) {
	b.t.Helper()
	var took []time.Duration
	for range pageSamples {
		began := time.Now()
		do()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.t.Logf("%-60s %10v, at most %10v of %v", what, took[len(took)/2].Round(10*time.Microsecond),
		took[len(took)-1].Round(10*time.Microsecond), within)
}
