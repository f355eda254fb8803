package scale

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
)

var (
	claims = flag.Int("scale.claims", 2000, "tasks that pass through one queue of depthTasks")
	window = flag.Duration("scale.window", time.Minute, "how long the claims are that are compared, at the beginning and at the end")
)

const (
	// depthTasks are in the queue or with a worker all the time, claimers take them.
	depthTasks = 10
	claimers   = 8
	// mostSteps is how many keys scans may go over for each task: those that it left
	// behind are gone over a few times, not by every claim after it.
	mostSteps = 16
)

// claim is one that was answered, and how long after the first it began.
type claim struct{ at, took time.Duration }

// TestClaimsStayFastBehindManyTasks keeps one queue short while many tasks pass
// through it, and shows what claims cost at the beginning and at the end. It
// fails when an answer is wrong, and when scans go over what was deleted before,
// which is counted.
func TestClaimsStayFastBehindManyTasks(t *testing.T) {
	s := blackbox.Serve(t)
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	for range depthTasks {
		postOne(t, api, `{"command":"long","payload":1}`)
	}
	began := time.Now()
	all := passThrough(t, s, began)
	took := time.Since(began)
	steps := blackbox.Figure(s.Metrics(), "codeq_scan_steps_total")
	t.Logf("%d tasks in %v, %.2f steps of scans for each", len(all), took.Round(time.Second), steps/float64(len(all)))
	show(t, "first", all, func(c claim) bool { return c.at < *window })
	show(t, "last", all, func(c claim) bool { return c.at >= took-*window })
	if steps > float64(mostSteps*len(all)) {
		t.Errorf("scans went over %.0f keys for %d tasks", steps, len(all))
	}
	var q struct{ Ready, InProgress int }
	asker{t, api}.do(http.MethodGet, "/admin/queues/long", "", &q)
	if q.Ready != depthTasks || q.InProgress != 0 {
		t.Errorf("the queue has %+v at the end, want %d", q, depthTasks)
	}
}

// passThrough claims, completes and replaces tasks, several at once.
func passThrough(t *testing.T, s *blackbox.Server, began time.Time) (all []claim) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(*claims))
	took := make([][]claim, claimers)
	var working sync.WaitGroup
	for n := range claimers {
		working.Go(func() {
			api := blackbox.NewAPI(s.Addr)
			defer api.Close()
			for left.Add(-1) >= 0 {
				c, ok := replaceOne(t, api, began)
				if !ok {
					return
				}
				took[n] = append(took[n], c)
			}
		})
	}
	working.Wait()
	all = slices.Concat(took...)
	if len(all) != *claims {
		t.Fatalf("%d tasks were claimed, want %d", len(all), *claims)
	}
	return all
}

// replaceOne takes the head of the queue, completes it and posts another.
func replaceOne(t *testing.T, api *blackbox.API, began time.Time) (c claim, ok bool) {
	var task struct{ ID, LeaseToken string }
	to := caller{t.Context(), api}
	c.at = time.Since(began)
	err := to.ask(http.MethodPost, "/tasks/claim", `{"commands":["long"],"waitSeconds":30}`, &task)
	c.took = time.Since(began) - c.at
	if err == nil {
		err = to.ask(http.MethodPost, "/tasks/"+task.ID+"/result", fmt.Sprintf(`{"result":{},"leaseToken":%q}`, task.LeaseToken), nil)
	}
	if err == nil {
		err = to.ask(http.MethodPost, "/tasks", `{"command":"long","payload":1}`, nil)
	}
	if err != nil {
		t.Errorf("claim, complete and replace: %v", err)
	}
	return c, err == nil
}

// show logs the figures of the claims that are meant.
func show(t *testing.T, name string, all []claim, meant func(claim) bool) {
	t.Helper()
	var took []time.Duration
	for _, c := range all {
		if meant(c) {
			took = append(took, c.took)
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(time.Microsecond)
	}
	t.Logf("%-5s %v: %8d claims, p50 %8v, p99 %8v, p99.9 %8v", name, *window, len(took), at(0.5), at(0.99), at(0.999))
}
