package scale

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/test/blackbox"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit)) }

var tasks = flag.Int("scale.tasks", 40_000, "ready tasks of the larger backlog; as many are delayed")

const (
	// fewTasks are enough for each queue to have some in each shard: figures are
	// kept by queue and shard, and so is the work of reading them.
	fewTasks = 20_000
	// queues is how many the tasks are spread over, evenly and in turn.
	queues = 1000
	// samples is how often each operation is measured.
	samples = 41
	// scrapes is how often a page of figures is measured that is made anew, which
	// it is once in pageFor.
	scrapes = 5
	pageFor = 1100 * time.Millisecond
	// batchTasks is how many tasks are posted at once, posters how many batches
	// are under way.
	batchTasks = 1000
	posters    = 4
	// postFor is how long a batch may be refused for now.
	postFor = time.Minute
)

// TestNothingGrowsWithTheBacklog shows the median time of each operation beside
// few tasks and beside many, and fails only on a wrong answer.
func TestNothingGrowsWithTheBacklog(t *testing.T) {
	few, many := measure(t, fewTasks), measure(t, *tasks)
	t.Logf("%-22s %12s %12s %7s", "median of", fmt.Sprint(2*fewTasks, " tasks"), fmt.Sprint(2**tasks, " tasks"), "ratio")
	for i := range few {
		t.Logf("%-22s %12v %12v %7.2f", few[i].what, few[i].took.Round(time.Microsecond),
			many[i].took.Round(time.Microsecond), float64(many[i].took)/float64(few[i].took))
	}
}

// figure is one line of the table.
type figure struct {
	what string
	took time.Duration
}

// bench is a server with a backlog.
type bench struct {
	t      *testing.T
	server *blackbox.Server
	api    *blackbox.API
	// ready and delayed are the tasks of each queue.
	ready, delayed int
}

func measure(t *testing.T, backlog int) []figure {
	t.Helper()
	s := blackbox.Serve(t)
	b := &bench{t: t, server: s, api: blackbox.NewAPI(s.Addr), ready: backlog / queues, delayed: backlog / queues}
	defer b.api.Close()
	b.post(backlog)
	return []figure{
		{"GET /admin/queues", b.median(b.readQueues)},
		{"GET /metrics", b.readMetrics()},
		{"POST /tasks/claim", b.median(b.claim)},
		{"a page of 10 tasks", b.median(b.list)},
		{"start after kill -9", b.restart()},
	}
}

func queueName(n int) string { return fmt.Sprintf("queue-%04d", n%queues) }

// post makes the backlog: half of it ready, half due in a month.
func (b *bench) post(backlog int) {
	b.t.Helper()
	batches, posted := b.poster()
	for from := 0; from < backlog; from += batchTasks {
		for _, more := range []string{"", `,"delaySeconds":2592000`} {
			items := make([]string, 0, batchTasks)
			for n := from; n < min(from+batchTasks, backlog); n++ {
				items = append(items, fmt.Sprintf(`{"command":%q,"payload":{"n":%d}%s}`, queueName(n), n, more))
			}
			batches <- items
		}
	}
	posted()
}

// poster takes batches and posts them, several at a time. Call posted behind the last.
func (b *bench) poster() (batches chan<- []string, posted func()) {
	to := make(chan []string)
	var posting sync.WaitGroup
	for range posters {
		posting.Go(func() {
			for items := range to {
				if err := b.postBatch(items); err != nil {
					b.t.Errorf("post: %v", err)
				}
			}
		})
	}
	return to, func() {
		close(to)
		posting.Wait()
	}
}

// postBatch posts items until each of them is a task. A server on a busy machine may
// refuse some for now, or all.
func (b *bench) postBatch(items []string) error {
	late := time.Now().Add(postFor)
	for {
		answer, err := b.api.Do(context.Background(), http.MethodPost, "/tasks/batch", `{"tasks":[`+strings.Join(items, ",")+`]}`)
		var refusal *wire.Error
		switch {
		case err == nil:
			items, err = refusedForNow(items, answer.Body)
		case errors.As(err, &refusal) && refusal.Code.Retryable():
			err = nil
		}
		if err != nil || len(items) == 0 {
			return err
		}
		if time.Now().After(late) {
			return fmt.Errorf("%d tasks are refused for %v", len(items), postFor)
		}
		rest(b.t, 50*time.Millisecond)
	}
}

// refusedForNow is what of a batch may be posted again. An item that may not is an error.
func refusedForNow(items []string, answer []byte) (again []string, err error) {
	var said struct {
		Results []struct {
			Task      *struct{ ID string }
			Retryable bool
		}
	}
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Results) != len(items) {
		return nil, fmt.Errorf("%d items are answered with %.200s", len(items), answer)
	}
	for i, r := range said.Results {
		switch {
		case r.Task != nil && r.Task.ID != "":
		case r.Retryable:
			again = append(again, items[i])
		default:
			return nil, fmt.Errorf("item %d, %s, is refused: %.200s", i, items[i], answer)
		}
	}
	return again, nil
}

func TestItemsOfABatchThatAreRefusedForNowArePostedAgain(t *testing.T) {
	const made, busy, wrong = `{"task":{"id":"1"}}`, `{"error":"later","code":"overloaded","retryable":true}`, `{"error":"no","code":"invalid_command","retryable":false}`
	items := []string{"a", "b", "c"}
	for answer, want := range map[string][]string{
		made + "," + made + "," + made: nil,
		busy + "," + made + "," + busy: {"a", "c"},
	} {
		if again, err := refusedForNow(items, []byte(`{"results":[`+answer+`]}`)); err != nil || !slices.Equal(again, want) {
			t.Errorf("%s: %q, %v, want %q", answer, again, err, want)
		}
	}
	for _, answer := range []string{made + "," + wrong + "," + made, made + "," + made, made + `,{},` + made} {
		if again, err := refusedForNow(items, []byte(`{"results":[`+answer+`]}`)); err == nil {
			t.Errorf("%s is taken, and %q are posted again", answer, again)
		}
	}
}

// median runs an operation several times; the first time does not count.
func (b *bench) median(operation func(n int)) time.Duration {
	b.t.Helper()
	took := make([]time.Duration, 0, samples)
	for n := range samples + 1 {
		began := time.Now()
		operation(n)
		if n > 0 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// do asks and decodes what came.
func (b *bench) do(method, path, body string, into any) {
	b.t.Helper()
	answer, err := b.api.Do(context.Background(), method, path, body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (b *bench) readQueues(int) {
	var list struct {
		Queues []struct{ Ready, Delayed, InProgress int }
	}
	b.do(http.MethodGet, "/admin/queues", "", &list)
	if len(list.Queues) != queues {
		b.t.Fatalf("%d queues are listed, want %d", len(list.Queues), queues)
	}
	for _, q := range list.Queues {
		if q.Ready+q.InProgress != b.ready || q.Delayed != b.delayed {
			b.t.Fatalf("a queue has %+v, want %d and %d", q, b.ready, b.delayed)
		}
	}
}

// readMetrics is the median of a few: a page serves everybody for a second.
func (b *bench) readMetrics() time.Duration {
	took := make([]time.Duration, 0, scrapes)
	for range scrapes {
		began := time.Now()
		b.readPage()
		took = append(took, time.Since(began))
		rest(b.t, pageFor)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func (b *bench) readPage() {
	page := b.server.Metrics()
	if !strings.Contains(page, fmt.Sprintf("codeq_queues %d\n", queues)) {
		b.t.Fatalf("the figures do not know of %d queues", queues)
	}
}

// claim takes the head of a queue that nobody has taken from.
func (b *bench) claim(n int) {
	var task struct{ Command, LeaseToken string }
	b.do(http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"leaseSeconds":3600}`, queueName(n)), &task)
	if task.Command != queueName(n) || task.LeaseToken == "" {
		b.t.Fatalf("claimed %+v from %s", task, queueName(n))
	}
}

func (b *bench) list(n int) {
	var page struct{ Tasks []struct{ Command string } }
	name := queueName(queues - 1 - n)
	b.do(http.MethodGet, "/admin/queues/"+name+"/tasks?state=delayed&limit=10", "", &page)
	if want := min(b.delayed, 10); len(page.Tasks) != want || page.Tasks[0].Command != name {
		b.t.Fatalf("%d tasks are listed, want %d", len(page.Tasks), want)
	}
}

// restart is the time from the start of the process to the first answer.
func (b *bench) restart() time.Duration {
	b.t.Helper()
	b.server.Kill()
	began := time.Now()
	b.server.Start()
	b.readQueues(0)
	return time.Since(began)
}
