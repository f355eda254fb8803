package rolling

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(blackbox.Exit)) }

var (
	ofCluster   = flag.Bool("rolling.cluster", false, "restart the nodes of a cluster, too")
	fromProgram = flag.String("rolling.from", "", "the `path` of codeq of an earlier version, which runs until the first restart")
)

const (
	command = "rolling"
	workers = 4
	window  = 4
	// shortWork and longWork are how long handlers take; every longEach-th task
	// is a long one, which is under way when the server or its worker ends.
	shortWork = 10 * time.Millisecond
	longWork  = 1500 * time.Millisecond
	longEach  = 20
	// postEvery is the pause of a producer between two tasks.
	postEvery = 10 * time.Millisecond
	producers = 2
	// pause lies between two restarts, so that work flows.
	pause = time.Second
	// patience is how long anything may take that must end.
	patience = 3 * time.Minute
	// mayWait is the longest that a task may lie ready, or in hand of nobody
	// who works on it, over a restart of the server and all workers: the end of
	// what runs, the start of a process, the spread of those who come back, and a
	// loaded machine. A quiet one needs a second; what is stranded costs an
	// attempt, which none may have.
	mayWait = 30 * time.Second
)

// size says how often everybody is restarted.
type size struct{ rounds int }

// payload is that of a task. Some have a text so long that nodes of a cluster pack it.
type payload struct {
	Number int64  `json:"number"`
	Text   string `json:"text,omitempty"`
}

// job is what is known of one task.
type job struct {
	id wire.TaskID
	// asked is when its producer began to post it, accepted when it was told so.
	asked, accepted time.Time
	begun           []time.Time
}

// place is what is restarted: a server, or a cluster.
type place interface {
	URLs() string
	// restart ends each process with SIGTERM and starts it again.
	restart()
}

// world is one place, its producers and its workers.
type world struct {
	t      *testing.T
	place  place
	client *client.Client
	calm   chan struct{} // closed when producers shall end

	mu   sync.Mutex
	jobs map[int64]*job
	next atomic.Int64
}

func TestRestartsOfServerAndWorkersCostNoTaskAnything(t *testing.T) {
	much := size{rounds: 3}
	if testing.Short() {
		much.rounds = 1
	}
	blackbox.Earlier(*fromProgram)
	roll(t, alone{t, blackbox.Serve(t)}, much)
}

// Restarts of the nodes of a cluster one at a time, as an upgrade does, cost no task anything. The first
// one leads the others before they are restarted. The old and the next program are the same without -rolling.from.
func TestRestartsOfNodesOneAtATimeCostNoTaskAnything(t *testing.T) {
	if !*ofCluster {
		t.Skip("starts three servers, each twice") // make cluster-faults runs it
	}
	blackbox.Earlier(*fromProgram)
	roll(t, cluster{blackbox.ServeCluster(t)}, size{rounds: 1})
}

// alone is a server alone.
type alone struct {
	t *testing.T
	*blackbox.Server
}

// URLs implements place.
func (a alone) URLs() string { return a.URL() }

func (a alone) restart() {
	a.t.Logf("the server took %v to end", a.Stop().Round(time.Millisecond))
	a.Start()
}

// cluster is three nodes.
type cluster struct{ *blackbox.Cluster }

func (c cluster) restart() {
	next := c.Follower()
	for _, s := range append([]*blackbox.Server{next}, c.Others(next)...) {
		s.Stop()
		s.Start()
		c.AwaitAll()
		if s == next {
			for c.Leader() != s {
				c.Transfer(s)
			}
			time.Sleep(pause) // work must flow while a node of the next program leads those of the old one
		}
	}
}

// roll restarts a place and its workers, and holds every task against that.
func roll(t *testing.T, at place, much size) {
	w := &world{t: t, place: at, calm: make(chan struct{}), jobs: make(map[int64]*job)}
	c, err := client.New(at.URLs())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.client = c
	team := make([]*worker, workers)
	for i := range team {
		team[i] = w.hire(i)
	}
	var posting sync.WaitGroup
	for range producers {
		posting.Go(w.produce)
	}
	blackbox.Earlier("")
	for range much.rounds {
		time.Sleep(pause) // the restarts are what is slow here, and work must flow between them
		w.place.restart()
		for i := range team {
			time.Sleep(pause / workers) // as above
			team[i].leave()
			team[i] = w.hire(i)
		}
	}
	time.Sleep(pause) // as above
	close(w.calm)
	posting.Wait()
	w.awaitEnds()
	for _, one := range team {
		one.leave()
	}
	w.judge()
}

// produce posts tasks, each with a key, until the world is calm.
func (w *world) produce() {
	for {
		select {
		case <-w.calm:
			return
		case <-time.After(postEvery):
		}
		number := w.next.Add(1)
		j := &job{asked: time.Now()}
		w.mu.Lock()
		w.jobs[number] = j
		w.mu.Unlock()
		id, err := w.post(number)
		if err != nil {
			w.t.Errorf("post task %d: %v", number, err)
			return
		}
		w.mu.Lock()
		j.id, j.accepted = id, time.Now()
		w.mu.Unlock()
	}
}

// post posts one task until it is taken: a server that is not there has not
// taken it, and Enqueue leaves that to its caller.
func (w *world) post(number int64) (wire.TaskID, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sent := payload{Number: number}
	if number%longEach == 0 {
		sent.Text = strings.Repeat("long ", 2000)
	}
	for {
		task, err := w.client.Enqueue(ctx, command, sent, client.Key(fmt.Sprint(number)))
		if err == nil {
			return task.TaskID, nil
		}
		select {
		case <-time.After(postEvery):
		case <-ctx.Done():
			return wire.TaskID{}, err
		}
	}
}

// worker is one life of a worker.
type worker struct {
	world *world
	work  *client.Worker
	ended chan error
}

// hire starts a worker.
func (w *world) hire(number int) *worker {
	w.t.Helper()
	work, err := w.client.NewWorker(client.WorkerOptions{
		Commands: []string{command}, Window: window, Handler: w.handle, WorkerID: fmt.Sprint("worker ", number),
		Ended: func(s client.Ending) {
			if s.Err != nil {
				w.t.Errorf("the outcome of task %v was not taken: %v", s.Task.ID, s.Err)
			}
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	one := &worker{world: w, work: work, ended: make(chan error, 1)}
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		one.ended <- work.Run(ctx)
	}()
	return one
}

// leave drains the worker and waits for its end.
func (one *worker) leave() {
	one.world.t.Helper()
	one.work.Drain()
	select {
	case err := <-one.ended:
		if err != nil {
			one.world.t.Errorf("a worker that was drained ended with: %v", err)
		}
	case <-time.After(patience):
		one.world.t.Fatal("a worker that was drained does not end")
	}
}

// handle is the handler of every worker.
func (w *world) handle(ctx context.Context, d client.Delivery) client.Outcome {
	began := time.Now()
	var sent payload
	if err := json.Unmarshal(d.Task.Payload, &sent); err != nil {
		w.t.Errorf("task %v has the payload %s", d.Task.ID, d.Task.Payload)
	}
	number := sent.Number
	w.mu.Lock()
	w.jobs[number].begun = append(w.jobs[number].begun, began)
	w.mu.Unlock()
	takes := shortWork
	if number%longEach == 0 {
		takes = longWork
	}
	select {
	case <-time.After(takes):
		return client.Complete(fmt.Appendf(nil, `{"number":%d}`, number))
	case <-ctx.Done():
		w.t.Errorf("task %d was taken from its worker: %v", number, context.Cause(ctx))
		return client.Release()
	}
}

// awaitEnds waits until every task has its outcome, and checks it.
func (w *world) awaitEnds() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for number, j := range w.jobs {
		answer, err := w.client.Result(ctx, j.id)
		var failed *client.TaskError
		if err != nil && !errors.As(err, &failed) {
			w.t.Fatalf("task %d has no outcome: %v", number, err)
		}
		if want := fmt.Sprintf(`{"number":%d}`, number); err != nil || string(answer.Result.Result) != want {
			w.t.Errorf("task %d ended with %+v (%v), want %s", number, answer, err, want)
			continue
		}
		if answer.Task.Attempts != 0 {
			w.t.Errorf("task %d cost %d attempts", number, answer.Task.Attempts)
		}
	}
}

// judge holds each task against its promises and tells the longest wait.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest, longestPost time.Duration
	for number, j := range w.jobs {
		if len(j.begun) != 1 {
			w.t.Errorf("the handler of task %d began %d times, want once", number, len(j.begun))
			continue
		}
		longest = max(longest, j.begun[0].Sub(j.accepted))
		longestPost = max(longestPost, j.accepted.Sub(j.asked))
	}
	if longest > mayWait || longestPost > mayWait {
		w.t.Errorf("a task waited %v for its worker and %v for its server, want at most %v", longest, longestPost, mayWait)
	}
	w.t.Logf("%d tasks; largest gap of a task from its acceptance to its handler %v, largest time of a post %v",
		len(w.jobs), longest.Round(time.Millisecond), longestPost.Round(time.Millisecond))
}
