package scale

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"codeq/loadtest"
	"codeq/test/blackbox"
)

var (
	shortTasks = flag.Int64("scale.short", 20_000, "short tasks that come and go beside two that stay")
	loadFor    = flag.Duration("scale.load", time.Second, "how long each load is measured with and without removal")
	pairs      = flag.Int("scale.pairs", 1, "how often removal is measured beside none")
)

const (
	// keptBytes is what a directory may have beside twice its live data: logs and
	// memtables that are not flushed, level 0 before it is compacted, the level
	// below before it is worth another compaction.
	keptBytes = 256 << 20
	// removeFor bounds how long what has ended may stay when its time is over.
	removeFor = 2 * time.Minute
)

// TestSpaceComesBack lets short tasks come and go beside one that is delayed by
// a month and one dead letter. The directory is no larger at the end than what
// lives and a constant, and the two are there after a kill.
func TestSpaceComesBack(t *testing.T) {
	s := blackbox.Serve(t, "--retention", "1s")
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	delayed := postOne(t, api, `{"command":"late","payload":1,"delaySeconds":2592000}`)
	dead := postOne(t, api, `{"command":"poison","payload":1,"maxAttempts":1}`)
	var task struct{ ID, LeaseToken string }
	asker{t, api}.do(http.MethodPost, "/tasks/claim", `{"commands":["poison"]}`, &task)
	asker{t, api}.do(http.MethodPost, "/tasks/"+task.ID+"/nack", fmt.Sprintf(`{"leaseToken":%q,"reason":"bad"}`, task.LeaseToken), nil)
	began := time.Now()
	var done, most int64
	for done < *shortTasks {
		done += load(t, s, 0, *loadFor).Verdict.Completed
		most = max(most, s.DirBytes())
	}
	took := time.Since(began)
	awaitReaped(t, api, "bench")
	size := s.DirBytes()
	t.Logf("%d tasks in %v; the directory had at most %d MiB, and %d MiB when all had gone", done, took.Round(time.Second), most>>20, size>>20)
	if size > keptBytes {
		t.Errorf("the directory has %d bytes for two tasks", size)
	}
	s.Kill()
	s.Start()
	for id, want := range map[string]string{delayed: "DELAYED_ZSET", dead: "DLQ_SET"} {
		var after struct{ LastKnownLocation string }
		asker{t, api}.do(http.MethodGet, "/tasks/"+id, "", &after)
		if after.LastKnownLocation != want {
			t.Errorf("task %s is in %q, want %q", id, after.LastKnownLocation, want)
		}
	}
}

// TestRemovalBesideNone shows what the removal of ended tasks costs at the rate
// at which they end: the same load on a server that keeps nothing and on one
// that keeps everything, in turn. It fails only on a wrong answer.
func TestRemovalBesideNone(t *testing.T) {
	var rates, costs []float64
	for range *pairs {
		with, without := pressed(t, "1s"), pressed(t, "0s")
		rates = append(rates, with.CyclesPerSecond/without.CyclesPerSecond)
		costs = append(costs, *with.ServerCPUMicrosPerCycle / *without.ServerCPUMicrosPerCycle)
		t.Logf("removal %8.0f cycles/s %6.1f µs of CPU each; none %8.0f cycles/s %6.1f µs", with.CyclesPerSecond,
			*with.ServerCPUMicrosPerCycle, without.CyclesPerSecond, *without.ServerCPUMicrosPerCycle)
	}
	slices.Sort(rates)
	slices.Sort(costs)
	t.Logf("with removal the rate is %.2f and the CPU %.2f of that without (medians of %d)", rates[len(rates)/2], costs[len(costs)/2], *pairs)
}

func pressed(t *testing.T, retention string) *loadtest.Outcome {
	t.Helper()
	s := blackbox.Serve(t, "--retention", retention)
	// Tasks begin to go during the warm-up.
	out := load(t, s, 2**loadFor, *loadFor)
	s.Kill()
	return out
}

// load runs the canonical workload with many tasks under way, so that the server
// and not a wait for answers is the bound.
func load(t *testing.T, s *blackbox.Server, warmUp, measured time.Duration) *loadtest.Outcome {
	t.Helper()
	return loadAt(t, s, 0, warmUp, measured)
}

// loadAt is load of so many tasks a second, as many as the server takes for 0.
func loadAt(t *testing.T, s *blackbox.Server, perSecond float64, warmUp, measured time.Duration) *loadtest.Outcome {
	t.Helper()
	target, err := loadtest.NewRemote(s.URL(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := loadtest.Canonical()
	w.Pipeline, w.Window = 32, 2048
	w.RatePerSecond, w.WarmUpFor, w.MeasureFor = perSecond, warmUp, measured
	out, err := loadtest.Run(t.Context(), loadtest.Options{Workload: w, Target: target, Server: loadtest.ProcessOf(s.PID())})
	if err != nil {
		t.Fatal(err)
	}
	if !out.Verdict.Holds() {
		t.Fatalf("%v", out.Verdict)
	}
	return out
}

// awaitReaped waits until no ended task of a queue is left.
func awaitReaped(t *testing.T, api *blackbox.API, command string) {
	t.Helper()
	for late := time.Now().Add(removeFor); ; {
		var page struct{ Tasks []struct{ ID string } }
		asker{t, api}.do(http.MethodGet, "/admin/queues/"+command+"/tasks?state=done&limit=1", "", &page)
		if len(page.Tasks) == 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("task %s is still there after %v", page.Tasks[0].ID, removeFor)
		}
		rest(t, 50*time.Millisecond)
	}
}

// rest waits for another process, which does not tell.
func rest(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func postOne(t *testing.T, api *blackbox.API, body string) (id string) {
	t.Helper()
	var task struct{ ID string }
	asker{t, api}.do(http.MethodPost, "/tasks", body, &task)
	return task.ID
}

// asker asks a server on behalf of a test.
type asker struct {
	t   *testing.T
	api *blackbox.API
}

// do decodes what comes into a value, if there is one.
func (a asker) do(method, path, body string, into any) {
	a.t.Helper()
	if err := (caller{context.Background(), a.api}).ask(method, path, body, into); err != nil {
		a.t.Fatal(err)
	}
}

// caller asks a server on any goroutine.
type caller struct {
	ctx context.Context
	api *blackbox.API
}

// ask decodes what comes into a value, if there is one.
func (c caller) ask(method, path, body string, into any) error {
	answer, err := c.api.Do(c.ctx, method, path, body)
	if err == nil && into != nil {
		err = json.Unmarshal(answer.Body, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
