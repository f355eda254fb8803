package scale

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/client"
	"codeq/loadtest"
	"codeq/test/blackbox"
)

var (
	leaders   = flag.Int("scale.leaders", 0, "how often the leader of a cluster is killed")
	handOvers = flag.Int("scale.handovers", 2, "how often it hands over, by command and by its end in turn")
)

// The bars of a cluster of three nodes on one machine.
const (
	leastShare     = 0.30
	mostP50Ms      = 5
	mostP99Ms      = 15
	firstWithin    = 3 * time.Second
	allWithin      = 5 * time.Second
	handOverWithin = 200 * time.Millisecond
)

// TestClusterBesideOneServer shows what three nodes on this machine take of the tasks that a server
// alone takes, in turn, and how long answers last at 500 tasks a second.
func TestClusterBesideOneServer(t *testing.T) {
	if *pairs == 1 {
		t.Skip("a time of one pair says nothing") // make cluster-bench runs it
	}
	piped := loadtest.Canonical()
	piped.Pipeline, piped.Window = 64, 4096
	slow := loadtest.Canonical()
	slow.RatePerSecond = 500
	loads := []struct {
		name string
		of   loadtest.Workload
	}{{"--pipeline 64 --window 4096", piped}, {"waiting (canonical)", loadtest.Canonical()}, {"500 tasks/s", slow}}
	c := blackbox.ServeCluster(t)
	alone := blackbox.Serve(t)
	for _, load := range loads {
		load.of.WarmUpFor, load.of.MeasureFor = *loadFor/4, *loadFor
		var shares, p50, p99 []float64
		for range *pairs {
			one, three := run(t, alone.URL(), load.of), run(t, c.Leader().URL(), load.of)
			t.Logf("%-28s alone %7.0f/s enqueue p50 %6.1f p99 %6.1f ms; three %7.0f/s p50 %6.1f p99 %6.1f ms; share %.2f", load.name,
				one.CyclesPerSecond, one.Enqueue.P50, one.Enqueue.P99, three.CyclesPerSecond, three.Enqueue.P50, three.Enqueue.P99,
				three.CyclesPerSecond/one.CyclesPerSecond)
			shares = append(shares, three.CyclesPerSecond/one.CyclesPerSecond)
			p50, p99 = append(p50, three.Enqueue.P50), append(p99, three.Enqueue.P99)
		}
		t.Logf("%-28s medians: share %.2f, enqueue p50 %.1f and p99 %.1f ms", load.name, middle(shares), middle(p50), middle(p99))
		if load.of.Pipeline > 1 && middle(shares) < leastShare {
			t.Errorf("three nodes take %.2f of the tasks of a server alone, the bar is %.2f", middle(shares), leastShare)
		}
		if load.of.RatePerSecond > 0 && (middle(p50) > mostP50Ms || middle(p99) > mostP99Ms) {
			t.Errorf("at %.0f tasks/s p50 is %.1f and p99 %.1f ms, the bars are %v and %v", load.of.RatePerSecond, middle(p50), middle(p99), mostP50Ms, mostP99Ms)
		}
	}
}

func middle[T int64 | float64 | time.Duration](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}

func run(t *testing.T, url string, w loadtest.Workload) *loadtest.Outcome {
	t.Helper()
	target, err := loadtest.NewRemote(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Commands = []string{fmt.Sprintf("bench-%d", time.Now().UnixNano())}
	out, err := loadtest.Run(t.Context(), loadtest.Options{Workload: w, Target: target})
	if err != nil {
		t.Fatal(err)
	}
	if !out.Verdict.Holds() {
		t.Fatalf("%v", out.Verdict)
	}
	return out
}

// TestNobodyWaitsLongForTheNextLeader shows how long clients of the SDK, who know all nodes, wait when
// the leader is killed and when it hands over.
func TestNobodyWaitsLongForTheNextLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers") // the long tests run it
	}
	c := blackbox.ServeCluster(t)
	f := newFleet(t, c)
	defer f.end()
	f.flows(time.Now())
	var first, all []time.Duration
	for range *leaders {
		at := time.Now()
		c.Kill()
		one, each := f.flows(at)
		first, all = append(first, one), append(all, each)
		t.Logf("the leader was killed: first new delivery after %v, everybody has one after %v", one.Round(time.Millisecond), each.Round(time.Millisecond))
		c.Start()
		f.flows(time.Now())
	}
	var gaps, posts []time.Duration
	for i := range *handOvers {
		lead, at, how := c.Leader(), time.Now(), "codeq cluster transfer"
		if i%2 == 0 {
			if err := f.client.TransferLead(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		} else {
			how = "SIGTERM"
			lead.Stop()
		}
		f.flows(at)
		gap, post := f.gap(at)
		gaps, posts = append(gaps, gap), append(posts, post)
		t.Logf("%-22s nobody's task was accepted for %v, the longest post took %v", how, gap.Round(time.Millisecond), post.Round(time.Millisecond))
		if how == "SIGTERM" {
			lead.Start()
		}
		c.AwaitAll()
	}
	slices.Sort(gaps)
	slices.Sort(posts)
	p99 := gaps[(len(gaps)*99+99)/100-1]
	t.Logf("%d hand-overs: gap p50 %v, p99 %v, post p50 %v, p99 %v", len(gaps), gaps[len(gaps)/2].Round(time.Millisecond), p99.Round(time.Millisecond),
		posts[len(posts)/2].Round(time.Millisecond), posts[(len(posts)*99+99)/100-1].Round(time.Millisecond))
	if *leaders == 0 {
		return // a few hand-overs say nothing of a hundredth, and their times are of this machine
	}
	t.Logf("%d kills: first new delivery p50 %v, most %v; everybody p50 %v, most %v", len(first), middle(first).Round(time.Millisecond), slices.Max(first).Round(time.Millisecond),
		middle(all).Round(time.Millisecond), slices.Max(all).Round(time.Millisecond))
	if p99 > handOverWithin {
		t.Errorf("p99 of the gap of a hand-over is %v, the bar is %v", p99, handOverWithin)
	}
	if slices.Max(first) > firstWithin || slices.Max(all) > allWithin {
		t.Errorf("after a kill the first delivery took %v and that of everybody %v, the bars are %v and %v", slices.Max(first), slices.Max(all), firstWithin, allWithin)
	}
}

const (
	fleetWorkers   = 16
	fleetProducers = 4
	// fleetPause is that of a producer between two tasks, fleetWork what a task takes.
	fleetPause = 15 * time.Millisecond
	fleetWork  = 20 * time.Millisecond
)

// fleet is producers and workers who go on whoever leads.
type fleet struct {
	t      *testing.T
	client *client.Client
	over   context.CancelFunc
	ended  sync.WaitGroup
	next   atomic.Int64

	mu sync.Mutex
	// posted are the posts that were accepted, begun is the newest task of each worker, by when it was asked for.
	posted []post
	asked  map[int64]time.Time
	begun  [fleetWorkers]begun
}

type post struct{ asked, accepted time.Time }

// begun is a task in the hands of its worker.
type begun struct{ asked, at time.Time }

func newFleet(t *testing.T, c *blackbox.Cluster) *fleet {
	t.Helper()
	all, err := client.New(c.URLs(), client.WithNotices(func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, over := context.WithCancel(t.Context())
	f := &fleet{t: t, client: all, over: over, asked: make(map[int64]time.Time)}
	for range fleetProducers {
		f.ended.Go(func() { f.produce(ctx) })
	}
	for i := range fleetWorkers {
		w, err := all.NewWorker(client.WorkerOptions{Commands: []string{"fleet"}, Window: 1, Handler: func(_ context.Context, d client.Delivery) client.Outcome {
			return f.work(i, d)
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.ended.Go(func() {
			_ = w.Run(ctx) // it ends with the fleet
		})
	}
	return f
}

func (f *fleet) end() {
	f.over()
	f.ended.Wait()
	f.client.Close()
}

func (f *fleet) produce(ctx context.Context) {
	for ctx.Err() == nil {
		n, at := f.next.Add(1), time.Now()
		f.mu.Lock()
		f.asked[n] = at
		f.mu.Unlock()
		for ctx.Err() == nil {
			if _, err := f.client.Enqueue(ctx, "fleet", n, client.Key(fmt.Sprint(n))); err == nil {
				break
			}
		}
		f.mu.Lock()
		f.posted = append(f.posted, post{at, time.Now()})
		f.mu.Unlock()
		rest(f.t, fleetPause)
	}
}

func (f *fleet) work(worker int, d client.Delivery) client.Outcome {
	at, n := time.Now(), int64(0)
	if err := json.Unmarshal(d.Task.Payload, &n); err != nil {
		f.t.Errorf("task %v has the payload %s", d.Task.ID, d.Task.Payload)
	}
	f.mu.Lock()
	if asked := f.asked[n]; asked.After(f.begun[worker].asked) {
		f.begun[worker] = begun{asked, at}
	}
	f.mu.Unlock()
	rest(f.t, fleetWork)
	return client.Complete([]byte(`{}`))
}

// flows waits until every worker has a task that was asked for after a moment, and returns how long
// after it the first one and the last one had.
func (f *fleet) flows(since time.Time) (first, all time.Duration) {
	f.t.Helper()
	got := make(map[int]time.Duration)
	for late := time.Now().Add(time.Minute); len(got) < fleetWorkers; rest(f.t, time.Millisecond) {
		f.mu.Lock()
		for i, b := range f.begun {
			if _, has := got[i]; !has && b.asked.After(since) {
				got[i] = b.at.Sub(since)
				all = max(all, got[i])
			}
		}
		f.mu.Unlock()
		if time.Now().After(late) {
			f.t.Fatalf("%d workers of %d have tasks again after a minute", len(got), fleetWorkers)
		}
	}
	first = all
	for _, took := range got {
		first = min(first, took)
	}
	return first, all
}

// gap is the longest time without a post that was accepted since a moment, and the longest post.
func (f *fleet) gap(since time.Time) (gap, longest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := since
	for _, p := range f.posted {
		if p.accepted.Before(since) {
			continue
		}
		gap, longest = max(gap, p.accepted.Sub(last)), max(longest, p.accepted.Sub(p.asked))
		last = p.accepted
	}
	return gap, longest
}
