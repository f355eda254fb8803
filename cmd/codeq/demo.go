//go:build unix && !clientonly

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"codeq/client"
	"codeq/wire"
)

const (
	// demoPrefix begins the queues of a demo on a server that may have others.
	demoPrefix = "demo."
	// demoFirst tasks are in each queue at once, so that there is something to see.
	demoFirst = 30
	// demoWave is how long the rate of a queue takes to rise, fall and rise again.
	demoWave = 90 * time.Second
	// demoRetry is how long a task waits that failed.
	demoRetry = 3 * time.Second
	// demoSteps is how often a task whose run is as long as demoReports says how far it is.
	demoSteps   = 5
	demoReports = time.Second
)

type demoCmd struct {
	Seed    uint64  `default:"1" help:"Number from which rates, payloads, run times and failures are drawn."`
	Seconds float64 `help:"Seconds after which the demo ends. Without it: at Ctrl-C."`
	Listen  string  `default:"127.0.0.1:0" help:"Address of the server that is started."`
}

// Help implements kong.HelpProvider.
func (*demoCmd) Help() string {
	return `Fills a server with a lively load for a look: a dozen queues whose rates rise and fall, workers that succeed, fail, retry
and time out, dead letters of a few kinds, a queue without a worker, a paused queue, and a worker that is stuck.

Without --url it starts a server in a process of its own, in a new directory that it removes at the end, and prints its
address. CODEQ_URL is not read. With --url the queues have names that begin with demo., and stay.`
}

// demoQueue is one queue of the demo.
type demoQueue struct {
	command string
	// perSecond is the mean number of new tasks, which a wave raises and lowers by swing of it.
	perSecond, swing float64
	// workers take two tasks at a time each, for run on average.
	workers int
	run     time.Duration
	// fails is the share of deliveries that fail, hopeless that of tasks of which every
	// delivery does, wrong that of tasks that end FAILED.
	fails, hopeless, wrong float64
	// errors have a number in place of %d.
	errors []string
	// delayed is the share of tasks that are ready after up to two minutes.
	delayed float64
	// timeoutSeconds is that of a delivery; 0 is none.
	timeoutSeconds int64
	// stuck is the number of the task that never ends; 0 is none.
	stuck uint64
	// paused: nothing is granted.
	paused bool
}

var demoQueues = []demoQueue{
	{command: "billing.invoice", perSecond: 6, swing: 0.4, workers: 2, run: 250 * time.Millisecond, fails: 0.03, hopeless: 0.01,
		errors: []string{"customer %d has no address", "tax service answered 503 after %d ms"}},
	{command: "billing.mail", perSecond: 14, swing: 0.6, workers: 3, run: 120 * time.Millisecond, fails: 0.04, wrong: 0.004,
		errors: []string{"mailbox of customer %d is full", "timeout talking to 10.2.0.%d"}},
	{command: "billing.reminder", perSecond: 1, workers: 1, run: 100 * time.Millisecond, delayed: 1},
	{command: "media.thumbnail", perSecond: 16, swing: 0.9, workers: 3, run: 300 * time.Millisecond, wrong: 0.01,
		errors: []string{"image %d is not a JPEG: bad marker"}},
	{command: "media.transcode", perSecond: 0.8, swing: 0.3, workers: 2, run: 2500 * time.Millisecond, timeoutSeconds: 6},
	{command: "search.index", perSecond: 22, swing: 0.7, workers: 3, run: 90 * time.Millisecond, fails: 0.01,
		errors: []string{"version conflict in document %d"}},
	{command: "search.reindex", perSecond: 0.3, workers: 1, run: 5 * time.Second},
	{command: "webhook.partner", perSecond: 4, swing: 0.5, workers: 2, run: 400 * time.Millisecond, fails: 0.15, hopeless: 0.05,
		errors: []string{"timeout talking to partner %d", "partner %d answered 500", "certificate of partner %d has expired"}},
	{command: "import.csv", perSecond: 0.7, workers: 1, run: time.Second, stuck: 10},
	{command: "report.daily", perSecond: 0.25},
	{command: "ml.embed", perSecond: 0.5, workers: 1, run: time.Second, paused: true},
	{command: "export.pdf", perSecond: 2, swing: 0.8, workers: 1, run: 700 * time.Millisecond, fails: 0.05, delayed: 0.1,
		errors: []string{"no space left on device: /tmp/export-%d"}},
}

// demo is a demo while it runs.
type demo struct {
	*app
	*demoCmd
	client *client.Client
	posts  *client.Session
	began  time.Time
	prefix string
	// fail ends the demo with its first error.
	fail context.CancelCauseFunc
}

// Run fills a server until it is stopped.
func (d *demoCmd) Run(a *app) (err error) {
	x := &demo{app: a, demoCmd: d}
	ctx, done := a.untilStopped()
	defer done()
	if a.given["url"] {
		x.prefix = demoPrefix
	} else {
		dir, err := os.MkdirTemp("", "codeq-demo-")
		if err != nil {
			return fmt.Errorf("make directory for the data: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		own, s, stop, err := ownServer(ctx, "--listen", d.Listen, "--data", filepath.Join(dir, "data"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		ctx, a.URL, a.Token = own, s.url, ""
	}
	if x.client, err = a.client(); err != nil {
		return err
	}
	defer x.client.Close()
	return x.fill(ctx)
}

// fill runs producers and workers until ctx ends, which is no error.
func (x *demo) fill(ctx context.Context) (err error) {
	all, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if x.fail = fail; x.Seconds > 0 {
		defer time.AfterFunc(seconds(x.Seconds), func() { fail(nil) }).Stop()
	}
	if x.posts, err = x.client.Dial(all, client.SessionOptions{}); err != nil {
		return err
	}
	defer x.posts.Close()
	if err := x.announce(); err != nil {
		return err
	}
	x.began = time.Now()
	var running sync.WaitGroup
	for i := range demoQueues {
		q := &demoQueues[i]
		if q.paused {
			if _, err := x.client.PauseQueue(all, x.prefix+q.command); err != nil {
				fail(err)
				break
			}
		}
		running.Go(func() { x.produce(all, q) })
		for n := range q.workers {
			running.Go(func() { x.work(all, q, fmt.Sprintf("%s-%d", q.command, n+1)) })
		}
	}
	running.Wait()
	var stopped *exitError
	if err := context.Cause(all); !errors.Is(err, context.Canceled) && !errors.As(err, &stopped) {
		return err
	}
	return nil
}

// announce prints where the server is.
func (x *demo) announce() error {
	page := strings.TrimSuffix(x.client.URL(), "/") + "/ui/"
	if x.JSON {
		return x.writeJSON(map[string]string{"url": x.client.URL(), "page": page})
	}
	return x.writeLine([]byte("the server is at " + x.client.URL() + ", its page at " + page))
}

// demoPayload is the payload of a task.
type demoPayload struct {
	N        uint64 `json:"n"`
	Customer uint64 `json:"customer"`
}

// drawn are the numbers of one task, or of one delivery of it.
func (x *demo) drawn(q *demoQueue, n uint64, delivery int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.command)) // it takes everything
	return rand.New(rand.NewPCG(x.Seed^h.Sum64(), n<<8|uint64(delivery)))
}

// produce posts tasks at the rate of the queue.
func (x *demo) produce(ctx context.Context, q *demoQueue) {
	for n := uint64(1); ; n++ {
		r := x.drawn(q, n, 0)
		if n > demoFirst {
			wave := 1 + q.swing*math.Sin(2*math.Pi*time.Since(x.began).Seconds()/demoWave.Seconds()+float64(len(q.command)))
			select {
			case <-time.After(seconds(min(r.ExpFloat64()/(q.perSecond*wave), 20))):
			case <-ctx.Done():
				return
			}
		}
		if err := x.post(ctx, q, n, r); err != nil {
			x.fail(err)
			return
		}
	}
}

// post posts one task.
func (x *demo) post(ctx context.Context, q *demoQueue, n uint64, r *rand.Rand) error {
	customer := r.Uint64N(500)
	payload, err := json.Marshal(demoPayload{n, customer})
	if err != nil {
		return err
	}
	labels, refusal := wire.MakeLabels([]string{"region=" + []string{"eu", "us", "asia"}[customer%3], fmt.Sprint("customer=", customer)})
	if refusal != nil {
		return refusal
	}
	request := &wire.EnqueueRequest{Command: x.prefix + q.command, Payload: payload, Priority: r.IntN(3), MaxAttempts: 3, Labels: labels, TimeoutSeconds: q.timeoutSeconds}
	if r.Float64() < q.delayed {
		request.DelaySeconds = 5 + r.Int64N(115)
	}
	return x.posts.EnqueueAsync(ctx, request, x.answered)
}

// answered lets a task go that was refused for now, or whose answer was lost.
func (x *demo) answered(_ *client.Enqueued, err error) {
	var refusal *wire.Error
	if errors.As(err, &refusal) && !refusal.Code.Retryable() {
		x.fail(err)
	}
}

// work runs one worker.
func (x *demo) work(ctx context.Context, q *demoQueue, name string) {
	w, err := x.client.NewWorker(client.WorkerOptions{
		Commands: []string{x.prefix + q.command}, Window: 2, WorkerID: name,
		Handler: func(ctx context.Context, d client.Delivery) client.Outcome { return x.handle(ctx, q, d) },
	})
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		x.fail(err)
	}
}

// tell reports how far a delivery is.
func tell(d client.Delivery, step int) {
	const rows = 2000
	note := fmt.Sprintf("%d of %d rows", step*rows/demoSteps, rows)
	d.Progress(wire.ProgressRequest{Percent: step * 100 / demoSteps, HasPercent: true, Note: note})
	d.Output(wire.StreamOut, fmt.Sprintf("read %s\n", note))
}

// handle works on one delivery.
func (x *demo) handle(ctx context.Context, q *demoQueue, d client.Delivery) client.Outcome {
	var p demoPayload
	if err := json.Unmarshal(d.Task.Payload, &p); err != nil {
		return client.Fail("the payload is none of the demo: " + err.Error())
	}
	task, delivery := x.drawn(q, p.N, 1), x.drawn(q, p.N, 1+d.Task.Deliveries)
	takes := time.Duration(float64(q.run) * (0.3 + 0.7*delivery.ExpFloat64()))
	for step := 1; step <= demoSteps; step++ {
		pause := takes / demoSteps
		if p.N == q.stuck && step == demoSteps/2 {
			pause = math.MaxInt64
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return client.Stopped()
		}
		if q.run >= demoReports {
			tell(d, step)
		}
	}
	hopeless, wrong := task.Float64() < q.hopeless, task.Float64() < q.wrong
	reason := ""
	if len(q.errors) > 0 {
		reason = strings.Replace(q.errors[task.IntN(len(q.errors))], "%d", fmt.Sprint(p.Customer), 1)
	}
	switch {
	case wrong:
		return client.Fail(reason)
	case hopeless || delivery.Float64() < q.fails:
		return client.NackAfter(reason, demoRetry)
	}
	return client.Complete(fmt.Appendf(nil, `{"bytes":%d}`, 1000+task.IntN(90_000)))
}
