package scale

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
)

var callbacks = flag.Int("scale.callbacks", 200, "callbacks that wait for a receiver on this machine while a load runs")

// hookURLs is how many endpoints the receiver is: at most eight calls are under way to each.
const hookURLs = 8

// TestCallbacksBesideALoad shows how many callbacks a second go to a receiver on the same
// machine, without a load, beside one of a fixed rate, and beside as much as the server takes,
// and what they take of it: the load alone and beside them, in turn, each on a server of its
// own. It fails only on a wrong answer.
func TestCallbacksBesideALoad(t *testing.T) {
	t.Run("of nothing", func(t *testing.T) {
		t.Logf("%.0f callbacks/s", besideCallbacks(t, *callbacks, idle).arrived)
	})
	t.Run("of 5,000 tasks a second", func(t *testing.T) { pairsOfCallbacks(t, 5000) })
	t.Run("of as many as there may be", func(t *testing.T) { pairsOfCallbacks(t, 0) })
}

func pairsOfCallbacks(t *testing.T, perSecond float64) {
	var ratios, rates []float64
	for range *pairs {
		alone := besideCallbacks(t, 0, perSecond)
		with := besideCallbacks(t, *callbacks, perSecond)
		ratios, rates = append(ratios, with.cycles/alone.cycles), append(rates, with.arrived)
		t.Logf("alone %8.0f cycles/s; beside %6.0f callbacks/s %8.0f cycles/s", alone.cycles, with.arrived, with.cycles)
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	t.Logf("beside %.0f callbacks/s the rate of the load is %.2f of that alone (medians of %d)", rates[len(rates)/2], ratios[len(ratios)/2], *pairs)
}

// idle is the rate of no load.
const idle = -1

type besides struct{ cycles, arrived float64 }

// besideCallbacks measures the load while n callbacks are posted.
func besideCallbacks(t *testing.T, n int, perSecond float64) (b besides) {
	t.Helper()
	s := blackbox.Serve(t, "--webhook-allow", "127.0.0.1")
	defer s.Kill()
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	var arrived atomic.Int64
	var last atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // its sender counts what came
		arrived.Add(1)
		last.Store(time.Now().UnixNano())
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	asker{t, api}.do(http.MethodPost, "/admin/queues/codeq.webhook/pause", "", nil)
	endHooked(t, s, api, n, receiver.URL)
	asker{t, api}.do(http.MethodPost, "/admin/queues/codeq.webhook/resume", "", nil)
	began := time.Now()
	if perSecond != idle {
		b.cycles = loadAt(t, s, perSecond, 0, *loadFor).CyclesPerSecond
	}
	for late := time.Now().Add(time.Minute); arrived.Load() < int64(n); rest(t, 10*time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d callbacks arrived of %d", arrived.Load(), n)
		}
	}
	if n > 0 {
		b.arrived = float64(n) / time.Unix(0, last.Load()).Sub(began).Seconds()
	}
	return b
}

// endHooked makes tasks with webhooks and ends them.
func endHooked(t *testing.T, s *blackbox.Server, api *blackbox.API, n int, url string) {
	t.Helper()
	b := &bench{t: t, server: s, api: api}
	batches, posted := b.poster()
	for from := 0; from < n; from += batchTasks {
		var items []string
		for i := from; i < min(from+batchTasks, n); i++ {
			items = append(items, fmt.Sprintf(`{"command":"hooked","payload":{"n":%d},"webhook":"%s/%d"}`, i, url, i%hookURLs))
		}
		batches <- items
	}
	posted()
	for left := n; left > 0; {
		var done struct{ Cancelled int }
		asker{t, api}.do(http.MethodPost, "/admin/queues/hooked/tasks/cancel", "", &done)
		left -= done.Cancelled
	}
}
