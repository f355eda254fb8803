//go:build unix && !clientonly

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"codeq/client"
	"codeq/internal/plot"
	"codeq/loadtest"
	"codeq/wire"
)

const (
	// backlogQueue holds the backlog of --plot. It is spread, so that every shard has
	// as much of it.
	backlogQueue = "backlog"
	// backlogSteps is how often the backlog grows, by backlogStep tasks or by as many as
	// are posted in fillTimes of the measured seconds.
	backlogSteps = 4
	backlogStep  = 250_000
	fillTimes    = 2
)

// loads are the rates of --plot, as parts of what the server takes without a rate.
var loads = []float64{0.05, 0.25, 0.5, 0.75, 0.9}

// curves are the points of --plot, in the order in which they were measured.
type curves struct {
	Load    []loadPoint    `json:"load"`
	Backlog []backlogPoint `json:"backlog"`
}

// loadPoint is a run at a rate, without a backlog.
type loadPoint struct {
	TasksPerSecond float64            `json:"tasksPerSecond"`
	Enqueue        loadtest.Quantiles `json:"enqueueMs"`
	EndToEnd       loadtest.Quantiles `json:"endToEndMs"`
}

// backlogPoint is a run without a rate, while so many ready tasks wait on the server.
type backlogPoint struct {
	Tasks           int     `json:"tasks"`
	CyclesPerSecond float64 `json:"cyclesPerSecond"`
	ServerRSSMiB    float64 `json:"serverRssMiB"`
}

// sweep measures every point of the curves.
func (x *bench) sweep(ctx context.Context, w loadtest.Workload, s *site) (outcomes []*loadtest.Outcome, err error) {
	x.curves = &curves{}
	run := func(w loadtest.Workload) (*loadtest.Outcome, error) {
		o, err := x.phase(ctx, w, s)
		outcomes = append(outcomes, o)
		return o, err
	}
	beside := func(tasks int) error {
		o, err := run(w)
		if err == nil {
			x.curves.Backlog = append(x.curves.Backlog, backlogPoint{tasks, o.CyclesPerSecond, *o.ServerRSSMiB})
		}
		return err
	}
	if err := beside(0); err != nil {
		return nil, err
	}
	for _, part := range loads {
		at := w
		at.RatePerSecond = max(math.Round(part*x.curves.Backlog[0].CyclesPerSecond), 1)
		o, err := run(at)
		if err != nil {
			return nil, err
		}
		if o.Enqueue.Count == 0 {
			x.say("no create was answered at %v tasks/s: the point is left out, measure for longer with --seconds", at.RatePerSecond)
			continue
		}
		x.curves.Load = append(x.curves.Load, loadPoint{at.RatePerSecond, o.Enqueue, o.EndToEnd})
	}
	return outcomes, x.growBacklog(ctx, s, beside)
}

// growBacklog has a point measured after each step.
func (x *bench) growBacklog(ctx context.Context, s *site, beside func(tasks int) error) error {
	c, err := client.New(s.url)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.SetQueue(ctx, backlogQueue, &wire.QueueSettings{Spread: true}); err != nil {
		return fmt.Errorf("spread queue %s: %w", backlogQueue, err)
	}
	session, err := c.Dial(ctx, client.SessionOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	tasks := 0
	for range backlogSteps {
		posted, err := x.fill(ctx, session)
		if err != nil {
			return fmt.Errorf("post the backlog: %w", err)
		}
		tasks += posted
		if err := beside(tasks); err != nil {
			return err
		}
	}
	return nil
}

// fill posts one step of the backlog.
func (x *bench) fill(ctx context.Context, session *client.Session) (posted int, err error) {
	w := loadtest.Workload{PayloadBytes: x.PayloadBytes}
	request := &wire.EnqueueRequest{Command: backlogQueue, Payload: w.Payload(0)}
	var answers sync.WaitGroup
	failures := make(chan error, backlogStep)
	end := time.Now().Add(seconds(fillTimes * x.Seconds))
	for ; posted < backlogStep && time.Now().Before(end); posted++ {
		answers.Add(1)
		err := session.EnqueueAsync(ctx, request, func(_ *client.Enqueued, err error) {
			if err != nil {
				failures <- err
			}
			answers.Done()
		})
		if err != nil {
			return 0, err
		}
	}
	answers.Wait()
	select {
	case err := <-failures:
		return 0, err
	default:
		return posted, nil
	}
}

// reportCurves prints the points, and draws them.
func (x *bench) reportCurves() error {
	print := x.curves.print
	if x.JSON {
		print = func(a *app) error { return a.writeJSON(x.curves) }
	}
	if err := print(x.app); err != nil {
		return err
	}
	if err := os.WriteFile(x.Plot, plot.SVG(x.curves.charts()...), 0o644); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

func (c *curves) print(a *app) error {
	load := a.table(column{name: "TASKS/S"}, column{name: "ENQUEUE P50 MS"}, column{name: "P99 MS"}, column{name: "END TO END P50 MS"}, column{name: "P99 MS"})
	for _, p := range c.Load {
		load.row(p.TasksPerSecond, p.Enqueue.P50, p.Enqueue.P99, p.EndToEnd.P50, p.EndToEnd.P99)
	}
	if err := load.write(); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	backlog := a.table(column{name: "BACKLOG"}, column{name: "CYCLES/S"}, column{name: "SERVER MIB"})
	for _, p := range c.Backlog {
		backlog.row(p.Tasks, p.CyclesPerSecond, p.ServerRSSMiB)
	}
	return backlog.write()
}

func (c *curves) charts() []plot.Chart {
	throughput, memory := plot.Line{Name: "cycles/s"}, plot.Line{Name: "MiB"}
	for _, p := range c.Backlog {
		throughput.Points = append(throughput.Points, plot.Point{X: float64(p.Tasks), Y: p.CyclesPerSecond})
		memory.Points = append(memory.Points, plot.Point{X: float64(p.Tasks), Y: p.ServerRSSMiB})
	}
	lines := []plot.Line{{Name: "p50"}, {Name: "p99"}, {Name: "p99.9"}}
	for _, p := range c.Load {
		for i, ms := range []float64{p.Enqueue.P50, p.Enqueue.P99, p.Enqueue.P999} {
			lines[i].Points = append(lines[i].Points, plot.Point{X: p.TasksPerSecond, Y: ms})
		}
	}
	return []plot.Chart{
		{Title: "Throughput against backlog", X: "ready tasks that wait", Y: "tasks created and completed per second", Lines: []plot.Line{throughput}},
		{Title: "Latency against load", X: "tasks per second", Y: "ms until a create is answered", Log: true, Lines: lines},
		{Title: "Memory against backlog", X: "ready tasks that wait", Y: "MiB in use by the server", Lines: []plot.Line{memory}},
	}
}
