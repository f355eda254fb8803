package crash

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/test/blackbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit)) }

var (
	forFlag  = flag.Duration("crash.for", 0, "make histories for so long, with new seeds, instead of one")
	seedFlag = flag.Uint64("crash.seed", 1, "the seed of what clients do; how they meet is the machine's own")
)

// endsWithin is how long tasks may take to end once nobody disturbs. What was
// with a worker over HTTP at a kill waits fifteen seconds for it.
const endsWithin = 2 * time.Minute

// What many clients see of tasks, over HTTP and sessions and across kills of
// the server, can be explained one task at a time.
func TestHistoriesAcrossKillsCanBeExplained(t *testing.T) {
	if *forFlag > 0 {
		seed := uint64(time.Now().UnixNano())
		for until := time.Now().Add(*forFlag); time.Now().Before(until) && !t.Failed(); seed++ {
			makeHistory(t, serveOne(t), seed, size{tasks: 1500, kills: 8})
		}
		return
	}
	much := size{tasks: 600, kills: 3}
	if testing.Short() {
		much = size{tasks: 200, kills: 2, short: true}
	}
	makeHistory(t, serveOne(t), *seedFlag, much)
}

// place is a server, or a cluster whose leader is killed.
type place struct {
	addr string
	lives
	// end is the end of a server before its histories are judged; nodes end with their test.
	end func()
	// passed: connections go through nodes that pass them on to the one that grants, which goes on when
	// they break.
	passed bool
}

// lives are those of what is killed.
type lives interface {
	Kill()
	Start()
}

func serveOne(t *testing.T) place {
	t.Helper()
	s := blackbox.Serve(t, "--ping-seconds", "1")
	return place{s.Addr, s, s.Kill, false}
}

// makeHistory is one world from its first task to its judgement.
func makeHistory(t *testing.T, at place, seed uint64, much size) {
	t.Helper()
	over, end := context.WithCancel(context.Background())
	defer end()
	w := &world{t: t, server: at, history: newHistory(), seed: seed, size: much, over: over}
	w.api = blackbox.NewAPI(at.addr)
	defer w.api.Close()
	began := time.Now()
	var producers sync.WaitGroup
	producers.Go(w.newClient().produceHTTP)
	producers.Go(w.newClient().produceBatches)
	producers.Go(w.newClient().produceSession)
	for range 2 {
		w.clients.Go(w.newClient().readTasks)
		w.clients.Go(w.newClient().work)
		w.clients.Go(w.newClient().workHTTP)
	}
	w.clients.Go(w.newClient().callOff)
	for n := range much.kills {
		w.awaitEnds(much.tasks * int64(n+1) / int64(much.kills+2))
		w.server.Kill()
		w.server.Start()
	}
	producers.Wait()
	w.calm.Store(true)
	w.settle()
	end()
	w.clients.Wait()
	w.server.end()
	operations := 0
	for _, o := range w.history.tasks {
		operations += len(o)
	}
	t.Logf("seed %d: %d tasks, %d operations, %d kills in %v; answers %s", seed, len(w.history.tasks), operations, much.kills,
		time.Since(began).Round(time.Millisecond), w.history.census())
	w.judge()
}

// awaitEnds waits until so many tasks have ended, so that a kill falls into the
// work.
func (w *world) awaitEnds(n int64) {
	w.t.Helper()
	for late := time.Now().Add(endsWithin); w.ended.Load() < n; {
		if time.Now().After(late) {
			w.t.Fatalf("%d of %d tasks ended in time", w.ended.Load(), n)
		}
		time.Sleep(5 * time.Millisecond) // clients of another process work; there is no event to wait for
	}
}

// settle waits for the end of every task that anybody was told of.
func (w *world) settle() {
	w.t.Helper()
	c := w.newClient()
	late := time.Now().Add(endsWithin)
	for _, k := range w.history.everything() {
		for !c.readOne(k, true, 5).status.Terminal() {
			if time.Now().After(late) {
				w.t.Errorf("task %v does not end; what is known of it:\n%s", k.id, tell(w.history.of(k.label)))
				return
			}
		}
	}
}

// judge looks for an order of what happened to each task.
func (w *world) judge() {
	w.t.Helper()
	tasks := w.history.all()
	began := time.Now()
	v := check(tasks)
	w.t.Logf("looked for an order of each in %v", time.Since(began).Round(time.Millisecond))
	for _, label := range v.unexplained[:min(3, len(v.unexplained))] {
		w.t.Errorf("seed %d: nothing explains what was seen of task %s (%d like it):\n%s",
			w.seed, label, len(v.unexplained), tell(tasks[label]))
	}
	for _, label := range v.undecided {
		w.t.Logf("seed %d: whether anything explains what was seen of task %s was not found out in %v; it is in %s",
			w.seed, label, checkFor, w.save(tell(tasks[label])))
	}
	if len(v.undecided) == len(tasks) {
		w.t.Errorf("seed %d: nothing was found out about any of %d tasks", w.seed, len(tasks))
	}
	if len(v.unexplained) == 0 && !w.size.undoctored {
		mustFindDoctored(w.t, tasks, w.size.short)
	}
}

// save keeps a history beyond the test, for whoever looks into it.
func (w *world) save(history string) (path string) {
	w.t.Helper()
	f, err := os.CreateTemp("", "codeq-history-*.txt")
	if err != nil {
		w.t.Fatalf("save a history: %v", err)
	}
	if _, err = f.WriteString(history); err == nil {
		err = f.Close()
	}
	if err != nil {
		w.t.Fatalf("save a history: %v", err)
	}
	return f.Name()
}
