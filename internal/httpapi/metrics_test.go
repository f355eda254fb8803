package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/auth"
	"codeq/internal/meter"
	"codeq/wire"
)

// scrapeNow is a page made for this call.
func (b *bench) scrapeNow(t *testing.T) *scraped {
	t.Helper()
	b.api.scrape.text = nil
	g := b.do("GET", "/metrics", "")
	if g.status != http.StatusOK || g.header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %v %s", g.status, g.header, g.body)
	}
	return readPage(t, g.body)
}

// queue is the value of a family for one queue, -1 if it is not shown.
func (s *scraped) queue(family, tenant, command string) float64 {
	value, shown := s.values[fmt.Sprintf("codeq_queue_%s{tenant=%q,command=%q}", family, tenant, command)]
	if !shown {
		return -1
	}
	return value
}

func TestMetricsShowWhatEachQueueHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		b.post(`{"command":"slow","payload":1}`)
		time.Sleep(3 * time.Second)
		b.post(`{"command":"slow","payload":1}`)
		b.post(`{"command":"slow","payload":1,"delaySeconds":60}`)
		b.post(`{"command":"busy","payload":1}`)
		w := b.newWorker("busy")
		held := w.take()
		for family, want := range map[string]float64{
			"ready_tasks": 2, "delayed_tasks": 1, "in_progress_tasks": 0, "dead_tasks": 0, "oldest_ready_age_seconds": 3,
		} {
			if got := b.scrapeNow(t).queue(family, "default", "slow"); got != want {
				t.Errorf("slow: %s is %v, want %v", family, got, want)
			}
		}
		page := b.scrapeNow(t)
		if page.queue("in_progress_tasks", "default", "busy") != 1 || page.queue("oldest_ready_age_seconds", "default", "busy") != 0 {
			t.Errorf("busy is shown otherwise: %v", page.values)
		}
		if page.values["codeq_queues"] != 2 || page.values["codeq_queues_in_other"] != 0 || page.queue("ready_tasks", "other", "other") != -1 {
			t.Errorf("queues: %v", page.values)
		}
		w.finish(held, `{}`)
		synctest.Wait()
		if page := b.scrapeNow(t); page.queue("in_progress_tasks", "default", "busy") != -1 || page.values["codeq_queues"] != 1 {
			t.Error("an idle queue is still shown")
		}
	})
}

func TestMetricsShowTheWholeServer(t *testing.T) {
	b := newBench(t, setup{})
	b.sessions.open = map[string][]wire.SessionFigures{"a": manySessions(2), "b": manySessions(1)}
	b.post(okBody)
	w := b.newWorker("c")
	w.finish(w.take(), `{}`)
	b.do("POST", tasksPath, `{}`)
	b.do("GET", "/nothing/here?at=all", "")
	b.do("GET", "//", "")
	b.upgrade(upgradeText)
	b.do("POST", "/healthz", "")
	b.ready.Store(false)
	b.do("GET", "/readyz", "")
	b.stopEngine()
	page := b.scrapeNow(t)
	for series, want := range map[string]float64{
		`codeq_build_info{version="1.2.3"}`:                                    1,
		`codeq_ready`:                                                          0,
		`codeq_sessions`:                                                       3,
		`codeq_transitions_total{cause="enqueue"}`:                             1,
		`codeq_transitions_total{cause="grant"}`:                               1,
		`codeq_transitions_total{cause="result"}`:                              1,
		`codeq_transitions_total{cause="nack"}`:                                0,
		`codeq_http_requests_total{route="/v1/codeq/tasks",class="2xx"}`:       1,
		`codeq_http_requests_total{route="/v1/codeq/tasks",class="4xx"}`:       1,
		`codeq_http_requests_total{route="/v1/codeq/tasks/batch",class="2xx"}`: 0,
		`codeq_http_requests_total{route="none",class="4xx"}`:                  2,
		`codeq_http_requests_total{route="/v1/codeq/session",class="none"}`:    1,
		`codeq_http_requests_total{route="/healthz",class="4xx"}`:              1,
		`codeq_http_requests_total{route="/readyz",class="5xx"}`:               1,
		`codeq_http_requests_total{route="/v1/codeq/tasks/{id}",class="2xx"}`:  0,
		`codeq_mailbox_messages{shard="3"}`:                                    0,
		`codeq_disk_guard_level`:                                               0,
	} {
		if got, shown := page.values[series]; got != want || !shown {
			t.Errorf("%s is %v (shown %t), want %v", series, got, shown, want)
		}
	}
	for _, name := range []string{
		"codeq_commits_total", "codeq_sync_seconds_count", "codeq_commit_batch_bytes_sum", "codeq_pebble_wal_bytes", "codeq_pebble_memtable_bytes",
		"go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total",
	} {
		if page.values[name] <= 0 {
			t.Errorf("%s is %v", name, page.values[name])
		}
	}
}

func TestMetricsNeedNoCredential(t *testing.T) {
	b := newBench(t, setup{auth: keys{}})
	if g := b.do("GET", "/metrics", ""); g.status != http.StatusOK {
		t.Errorf("%d %s", g.status, g.body)
	}
}

func TestOnePageServesEverybodyForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		ask := func() string { return b.do("GET", "/metrics", "").body }
		first := ask()
		b.post(okBody)
		time.Sleep(scrapeFor - time.Millisecond)
		if ask() != first {
			t.Error("a page was made anew within the second")
		}
		time.Sleep(time.Millisecond)
		if second := ask(); !strings.Contains(second, `codeq_queue_ready_tasks{tenant="default",command="c"} 1`) {
			t.Error("the page of the next second is the old one")
		}
	})
}

// allowedLabels are all label names a page may have.
var allowedLabels = []string{"tenant", "command", "cause", "shard", "le", "route", "class", "level", "version", "quantile", "state"}

// TestMetricsStaySmallWithManyQueues has ten thousand queues, tasks with keys
// and workers with names.
func TestMetricsStaySmallWithManyQueues(t *testing.T) {
	b := newBench(t, setup{})
	const queues = manyQueues
	for from := 0; from < queues; from += wire.MaxBatchTasks {
		var items []string
		for i := from; i < from+wire.MaxBatchTasks; i++ {
			items = append(items, fmt.Sprintf(`{"command":"queue-%d","payload":"SECRET","idempotencyKey":"SECRET-%d"}`, i, i))
		}
		results(t, b.do("POST", batchPath, batchOf(items...), "Prefer", "return=minimal"))
	}
	for range TopQueues + 5 {
		b.post(`{"command":"queue-7","payload":1}`)
	}
	task := b.newWorker("queue-9").take().Task
	b.sessions.open = map[string][]wire.SessionFigures{"default": manySessions(10_000)}
	g := b.do("GET", "/metrics", "")
	page := readPage(t, g.body)
	if len(g.body) >= 1<<20 {
		t.Errorf("the page has %d bytes", len(g.body))
	}
	if strings.Contains(g.body, "SECRET") || strings.Contains(g.body, task.ID.String()) ||
		strings.Contains(g.body, benchWorkerID) {
		t.Error("a key, a task or a worker is on the page")
	}
	shown := 0
	for series, labels := range page.labels {
		for name := range maps.Keys(labels) {
			if !slices.Contains(allowedLabels, name) {
				t.Errorf("%s has the label %s", series, name)
			}
		}
		if strings.HasPrefix(series, "codeq_queue_ready_tasks{") {
			shown++
		}
	}
	if shown != TopQueues+1 || len(page.values) > 3000 {
		t.Errorf("%d queues and %d series", shown, len(page.values))
	}
	if page.queue("ready_tasks", "default", "queue-7") != TopQueues+6 {
		t.Error("the largest queue is not shown")
	}
	others := page.queue("ready_tasks", "other", "other") + page.queue("in_progress_tasks", "other", "other")
	if page.values["codeq_queues_in_other"] != queues-TopQueues || others < queues-TopQueues-1 || others > queues-TopQueues {
		t.Errorf("%v queues in other, with %v tasks", page.values["codeq_queues_in_other"], others)
	}
}

func TestLargestQueuesAreShownAndTheOthersAddedUp(t *testing.T) {
	var all []wire.QueueFigures
	for i := range TopQueues + 30 {
		all = append(all, wire.QueueFigures{
			TenantID: "t", Command: fmt.Sprintf("c%03d", i), Ready: int64(i), Dead: 1, Delayed: 2, InProgress: 3, OldestReadyAtMs: int64(1000 - i),
		})
	}
	shown, others := largest(all)
	if len(shown) != TopQueues+1 || others != 30 || shown[0].Command != "c129" || shown[TopQueues-1].Command != "c030" {
		t.Fatalf("%d others, shown %+v", others, shown)
	}
	want := wire.QueueFigures{
		TenantID: "other", Command: "other", Ready: 29 * 30 / 2, Dead: 30, Delayed: 60, InProgress: 90, OldestReadyAtMs: 1000 - 29,
	}
	if shown[TopQueues] != want {
		t.Errorf("the others are %+v, want %+v", shown[TopQueues], want)
	}
	named := wire.QueueFigures{TenantID: "other", Command: "other", Ready: 1e6}
	shown, others = largest([]wire.QueueFigures{named, {TenantID: "other", Command: "c", Ready: 1}})
	if len(shown) != 2 || others != 1 || shown[0].Command != "c" || shown[1] != named {
		t.Errorf("a queue that is called other: %d, %+v", others, shown)
	}
	if shown, others = largest(nil); len(shown) != 0 || others != 0 {
		t.Errorf("without queues: %d, %+v", others, shown)
	}
}

func TestTenantsOfAnyNameAreShown(t *testing.T) {
	tenants := []string{`a"b`, `back\slash`, "line\nfeed", `"} 1`, "é😀", "x y", `\"`, "other"}
	known := keys{}
	for i, tenant := range tenants {
		known[fmt.Sprint(i)] = &auth.Principal{Tenant: tenant, Subject: "s"}
	}
	b := newBench(t, setup{auth: known})
	for i := range tenants {
		b.post(`{"command":"other","payload":1}`, "Authorization", fmt.Sprint("Bearer ", i))
	}
	var got []string
	page := b.scrapeNow(t)
	for series, labels := range page.labels {
		if strings.HasPrefix(series, "codeq_queue_ready_tasks{") && page.values[series] == 1 && labels["command"] == "other" {
			got = append(got, labels["tenant"])
		}
	}
	slices.Sort(got)
	slices.Sort(tenants)
	if !slices.Equal(got, tenants) {
		t.Errorf("shown are %q, want %q", got, tenants)
	}
}

func BenchmarkMetrics(b *testing.B) {
	for _, queues := range []int{10, 1000, 10_000} {
		x := newBench(b, setup{})
		for from := 0; from < queues; from += wire.MaxBatchTasks {
			var items []string
			for i := from; i < min(queues, from+wire.MaxBatchTasks); i++ {
				items = append(items, fmt.Sprintf(`{"command":"queue-%d","payload":1}`, i))
			}
			x.do("POST", batchPath, batchOf(items...), "Prefer", "return=minimal")
		}
		b.Run(fmt.Sprint(queues), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var p meter.Page
				x.api.writeMetrics(&p)
			}
		})
	}
}
