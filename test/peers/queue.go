package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// queue is a program under comparison.
type queue struct {
	name string
	// find looks for its programs, and sets version. The error says what is missing.
	find    func(*settings) error
	version string
	ways    []way
}

// way is one manner to use a queue.
type way struct {
	name string
	// pipelined says with which figure of codeq it is compared.
	pipelined bool
	// synced: both the create and the completion are on disk before their answers.
	synced string
	start  func(dir string) (*server, error)
	dial   func(addr string) (link, error)
	// batch is how many tasks are posted at once, inFlight how many of these posts of a
	// producer may be without an answer.
	batch, inFlight int
	// measure is for a queue that brings its own load.
	measure func(ctx context.Context, s *settings, dir string) (*figure, error)
	figures []figure
}

// link is the client of a queue.
type link interface {
	// producer is for one goroutine; post sends tasks and returns what waits until all of
	// them are confirmed.
	producer() (producer, error)
	// work hands deliveries to done before each is completed, on goroutines of its own,
	// until ctx ends, and calls completed behind each.
	work(ctx context.Context, to *ledger) error
	close() error
}

// producer may also have a method finish, which is called behind its last post.
type producer interface {
	post(payloads [][]byte) (confirmed func() error, err error)
}

// nothingToWaitFor is of a post that returns when its tasks are confirmed.
func nothingToWaitFor() error { return nil }

// figure is what one run measured.
type figure struct {
	perSecond    float64
	serverMicros float64 // of CPU for each task
	serverMiB    float64 // in use at the end
}

func all() []*queue {
	return []*queue{codeq(), jetStream(), rabbit(), streams(), asynqQueue(), beanstalkd(), bunqueue()}
}

// median is the median of a figure over all rounds.
func (w *way) median(of func(*figure) float64) float64 {
	var values []float64
	for i := range w.figures {
		values = append(values, of(&w.figures[i]))
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func perSecond(f *figure) float64    { return f.perSecond }
func serverMicros(f *figure) float64 { return f.serverMicros }
func serverMiB(f *figure) float64    { return f.serverMiB }

// ratio is the median of the ratios to codeq, round by round.
func (w *way) ratio(codeq *way) float64 {
	r := way{}
	for i := range min(len(w.figures), len(codeq.figures)) {
		r.figures = append(r.figures, figure{perSecond: w.figures[i].perSecond / codeq.figures[i].perSecond})
	}
	return r.median(perSecond)
}

// printTable prints the ways of all queues, as Markdown: first those with producers that
// wait, then the pipelined ones.
func printTable(out io.Writer, queues []*queue) {
	for _, pipelined := range []bool{false, true} {
		title := "32 producers that wait for each answer"
		if pipelined {
			title = "32 producers with up to 64 tasks without an answer"
		}
		fmt.Fprintf(out, "\n| %s | fsync before the answer | cycles/s | of codeq | server CPU µs a cycle | server MiB |\n|---|---|---|---|---|---|\n", title)
		var base *way
		for _, q := range queues {
			for i := range q.ways {
				w := &q.ways[i]
				if w.pipelined != pipelined || len(w.figures) == 0 {
					continue
				}
				if base == nil && q.name == codeqName {
					base = w
				}
				ratio := "-"
				if base != nil {
					ratio = fmt.Sprintf("%.2f", w.ratio(base))
				}
				fmt.Fprintf(out, "| %s %s, %s | %s | %.0f | %s | %.0f | %.0f |\n",
					q.name, q.version, w.name, w.synced, w.median(perSecond), ratio, w.median(serverMicros), w.median(serverMiB))
			}
		}
	}
}
