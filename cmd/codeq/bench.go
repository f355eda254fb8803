//go:build unix && !clientonly

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"time"

	"codeq/client"
	"codeq/loadtest"
	"codeq/store"
	"codeq/wire"
)

const (
	profileCanonical = "canonical"
	profileMailbox   = "mailbox"

	maxTimes = 100

	// generatorGCPercent lets the generator's heap grow, so that its collector
	// takes less of the processors it shares with the server.
	generatorGCPercent = 800
)

type benchCmd struct {
	Profile      string  `enum:"canonical,mailbox" default:"canonical" help:"Workload: canonical, or mailbox, which offers more tasks than the shards can take."`
	Creates      bool    `help:"Measure creates alone: workers begin when the measured time is over, and every answer is checked then."`
	HTTP         bool    `name:"http" help:"Post over HTTP. The workers still use sessions."`
	Producers    int     `default:"32" help:"Number of goroutines that post."`
	Pipeline     int     `default:"1" help:"Batches without an answer that each producer may have. With 1 it waits for each answer."`
	Queues       int     `default:"1" least:"1" most:"1000" help:"Number of queues. Tasks are posted to them in turn, and every shard has the same number of them."`
	Spread       bool    `help:"Spread the queues over all shards."`
	Batch        int     `default:"1" help:"Tasks that a producer posts in one batch."`
	Window       int     `default:"128" help:"Unfinished tasks that each worker session may hold."`
	Sessions     int     `default:"1" help:"Number of producer sessions, and of worker sessions."`
	PayloadBytes int     `default:"100" help:"Length of each payload."`
	Times        float64 `default:"2" help:"The profile mailbox offers the rate that the server can take, times this."`
	UnderWay     int     `default:"32768" least:"1" most:"1048576" help:"Tasks without an answer that the profile mailbox may have."`
	Watchers     int     `help:"Sockets that watch the figures of all queues four times a second, and one more that watches events."`
	Rate         float64 `help:"Tasks per second that are posted. Without it each answer is followed by the next task."`
	Seconds      float64 `default:"15" help:"Seconds that are measured."`
	WarmUp       float64 `default:"2" help:"Seconds before the measured time."`
	Shards       int     `least:"1" most:"32" help:"Number of shards of the server that is started, 1 to 32."`
	Plot         string  `type:"path" placeholder:"FILE" help:"Measure curves instead, and draw them into an SVG picture: throughput and memory against backlog, latency against load."`
	Dir          string  `type:"existingdir" placeholder:"DIR" help:"Directory in which the data directory is made. Without it: the system's temporary directory."`
}

// Help implements kong.HelpProvider.
func (b *benchCmd) Help() string {
	return `Without --url the bench starts a server in a process of its own, in a new directory that it removes at the end. It does
not read CODEQ_URL, so that load goes only where the command line says. Every answer is checked; exit code 1 means that
a task was lost, duplicated or altered.

The profile mailbox has three parts on one server, each with a report of its own, with --json a line each. The first
measures the rate that the server can take, with 2,048 producers that wait for each answer. In the second many more
producers post --times that rate, with at most --under-way tasks without an answer. A producer that is refused pauses
for half a second to one and a half, and drops the tasks that come due meanwhile. The third is the first once more.
The windows of the workers are large enough for all these tasks.

With --plot the server is measured without a backlog, then at 5, 25, 50, 75 and 90 % of the rate that it took, and then
beside a backlog of ready tasks in another queue, which grows four times: by 250,000, or by what can be posted in twice
--seconds. That takes at most 18 times --seconds and 10 times --warm-up, five minutes as it is.

A latency begins when the task is posted, or when it was due if a missing answer held it back.`
}

// Run measures and checks.
func (b *benchCmd) Run(a *app) error {
	w := b.workload()
	if err := w.Check(); err != nil {
		return wrong("--%w", err)
	}
	if !(b.Times > 0 && b.Times <= maxTimes) {
		return wrong("--times must be more than 0 and at most %d, got %v", maxTimes, b.Times)
	}
	if b.Creates && b.Profile == profileMailbox {
		return wrong("--profile mailbox measures completed tasks: leave --creates out")
	}
	if b.Plot != "" && (b.Creates || b.Rate != 0 || b.Profile == profileMailbox) {
		return wrong("--plot has rates of its own and measures completed tasks: leave --rate, --creates and --profile out")
	}
	urlGiven := a.given["url"]
	if urlGiven && (b.Shards != 0 || b.Dir != "") {
		return wrong("--url names a running server: leave --shards and --dir out, which are for a server that the bench starts")
	}
	if urlGiven && b.Plot != "" {
		return wrong("--plot fills a server with tasks: leave --url out, so that the bench starts one")
	}
	if urlGiven && b.Queues > 1 {
		return wrong("--queues needs to know the shards of the server, as of one that the bench starts: leave --url or --queues out")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(generatorGCPercent))
	ctx, done := a.untilStopped()
	defer done()
	x := &bench{app: a, benchCmd: b}
	if urlGiven {
		w.Commands = []string{fmt.Sprintf("bench-%d-%d", os.Getpid(), time.Now().Unix())}
		secured, err := a.secured()
		if err != nil {
			return err
		}
		return x.measure(ctx, w, &site{url: a.URL, token: a.Token, tls: secured})
	}
	return x.onFreshDirectory(ctx, w)
}

func (b *benchCmd) workload() loadtest.Workload {
	w := loadtest.Canonical()
	w.Producers, w.Pipeline, w.Batch, w.Window = b.Producers, b.Pipeline, b.Batch, b.Window
	w.Sessions, w.PayloadBytes, w.RatePerSecond, w.OverHTTP = b.Sessions, b.PayloadBytes, b.Rate, b.HTTP
	w.WorkAfter, w.Watchers = b.Creates, b.Watchers
	w.WarmUpFor, w.MeasureFor = seconds(b.WarmUp), seconds(b.Seconds)
	if b.Queues > 1 {
		w.Commands = queuesOf(b.Queues, cmp.Or(b.Shards, store.DefaultShards))
	}
	if b.Spread || !reflect.DeepEqual(w, loadtest.Canonical()) {
		w.Name = "as asked for"
	}
	return w
}

// queuesOf are names of queues of which every shard is the home of as many, or of
// one more.
func queuesOf(queues, shards int) (names []string) {
	for n := 0; len(names) < queues; n++ {
		name := fmt.Sprintf("bench-%d", n)
		if wire.ShardOfQueue(wire.DefaultTenant, name, shards) == len(names)%shards {
			names = append(names, name)
		}
	}
	return names
}

// spread has the queues of a workload spread before its first task.
func (x *bench) spread(ctx context.Context, w loadtest.Workload, s *site) error {
	if !x.Spread {
		return nil
	}
	c, err := client.New(s.url, client.WithToken(s.token), client.WithTLS(cmp.Or(s.tls, &tls.Config{})))
	if err != nil {
		return wrong("%w; set it with --url", err)
	}
	for _, command := range w.Commands {
		if _, err := c.SetQueue(ctx, command, &wire.QueueSettings{Spread: true}); err != nil {
			return fmt.Errorf("spread queue %s: %w", command, err)
		}
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// bench is one call of the command.
type bench struct {
	*app
	*benchCmd
	// fsyncs, in microseconds, and bares, in tasks per second, were measured around the run.
	fsyncs, bares []float64
	// curves are nil without --plot.
	curves *curves
}

// site is where the load goes.
type site struct {
	// url and token are those of a server.
	url, token string
	tls        *tls.Config
	// server and allocations are nil for one that is not a process of this bench.
	server      loadtest.Meter
	allocations func(context.Context) (float64, error)
	// after, if any, is called between the last run and the report.
	after func() error
}

// measure runs the profile and prints what came of it.
func (x *bench) measure(ctx context.Context, w loadtest.Workload, s *site) error {
	if err := x.spread(ctx, w, s); err != nil {
		return err
	}
	run := x.once
	if x.Profile == profileMailbox {
		run = x.overload
	}
	if x.Plot != "" {
		run = x.sweep
	}
	outcomes, err := run(ctx, w, s)
	if err != nil {
		return err
	}
	if s.after != nil {
		if err := s.after(); err != nil {
			return err
		}
	}
	for _, o := range outcomes {
		o.FsyncMicros, o.BareHTTPPerSecond = median(x.fsyncs), median(x.bares)
	}
	if err := x.report(outcomes); err != nil {
		return err
	}
	for _, o := range outcomes {
		if !o.Verdict.Holds() {
			return errors.New("the server broke its promises: " + o.Verdict.String())
		}
	}
	return nil
}

// once carries out one workload.
func (x *bench) once(ctx context.Context, w loadtest.Workload, s *site) ([]*loadtest.Outcome, error) {
	o, err := x.phase(ctx, w, s)
	return []*loadtest.Outcome{o}, err
}

// overload measures the rate that the server can take, offers Times that rate, and measures
// again.
func (x *bench) overload(ctx context.Context, w loadtest.Workload, s *site) ([]*loadtest.Outcome, error) {
	w.Name, w.Pipeline, w.Window = "at its pace", max(w.Pipeline, 64), max(w.Window, 4096)
	pace := w.ManyProducers(x.UnderWay)
	before, err := x.phase(ctx, pace, s)
	if err != nil {
		return nil, err
	}
	over, err := x.phase(ctx, w.Overload(x.Times*before.CyclesPerSecond, x.UnderWay), s)
	if err != nil {
		return nil, err
	}
	pace.Name = "at its pace again"
	after, err := x.phase(ctx, pace, s)
	return []*loadtest.Outcome{before, over, after}, err
}

// phase carries out one workload.
func (x *bench) phase(ctx context.Context, w loadtest.Workload, s *site) (*loadtest.Outcome, error) {
	target, err := loadtest.NewRemote(s.url, s.token, s.tls)
	if err != nil {
		return nil, wrong("%w; set it with --url", err)
	}
	if x.errIsTerminal {
		x.say("%s", w.String())
	}
	o, err := loadtest.Run(ctx, loadtest.Options{
		Workload: w, Target: target, Server: s.server, Generator: loadtest.ProcessOf(os.Getpid()),
		Allocations: s.allocations,
	})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if messages, bytes := target.Watched(); messages > 0 {
		x.say("the watchers were sent %d messages, %d KiB", messages, bytes>>10)
	}
	return o, nil
}

// report prints an outcome for each phase, or the curves of all.
func (x *bench) report(outcomes []*loadtest.Outcome) error {
	if x.curves != nil {
		return x.reportCurves()
	}
	for i, o := range outcomes {
		if x.JSON {
			if err := x.writeJSON(o); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(x.out)
		}
		if err := o.WriteText(x.out); err != nil {
			return err
		}
	}
	return nil
}
