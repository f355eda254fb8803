//go:build unix && !clientonly

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"codeq/client"
	"codeq/wire"
)

// errStoppedIdle ends a worker that was stopped twice while no program ran.
var errStoppedIdle = errors.New("stopped without waiting")

// echoFor: a stop signal that comes within this time after the first one counts as the same
// stop. GNU timeout, for example, sends its signal to a process and then to its group.
const echoFor = 500 * time.Millisecond

type workCmd struct {
	Command string        `arg:"" help:"Queue whose tasks are granted to this worker."`
	Program []string      `arg:"" passthrough:"" help:"Program that runs for each task, and its arguments, after --."`
	Window  int           `default:"1" least:"1" most:"10000" help:"Number of tasks at a time."`
	Lease   time.Duration `default:"30s" whole:"" least:"1s" most:"12h" help:"Length of the lease, which this worker extends while the program runs."`
	Timeout time.Duration `least:"1ms" help:"Longest time of one run. When it is over, the program is ended and its task retried."`
	Name    string        `placeholder:"NAME" help:"Name of this worker, which lists show. Without it: host and process."`
	Log     string        `type:"path" placeholder:"DIR" help:"Keep the output of each run in files of this directory, up to 8 MiB of each stream."`
	Verbose bool          `help:"Show standard error of the programs, each line after the id of its task."`
	Once    bool          `help:"Fail at once if no server answers. Without it the worker waits for one."`

	NoOutput   bool `help:"Do not send what the programs print to those who watch their tasks."`
	NoProgress bool `help:"Lines like ::progress 40 are output like others."`

	NoArtifacts bool `help:"Give the programs no directory for artifacts."`
}

// Help is the longer text of "codeq work --help".
func (w *workCmd) Help() string {
	return `The program gets the payload on standard input and CODEQ_TASK_ID, CODEQ_COMMAND, CODEQ_ATTEMPTS,
CODEQ_DELIVERY, CODEQ_TRACEPARENT and CODEQ_TRACESTATE in its environment. What it prints is the result: a JSON object as it is, other text as
{"output": "…"} without its last line end. Exit status 0 completes the task, and 65 fails it for good. After any
other status or a signal the task is retried later, with the end of standard error as the reason. A line "::progress 40 half
way" on either stream says how far the task is, and is no part of the result. Files that it leaves in the directory
CODEQ_ARTIFACTS become artifacts of a task that completes or fails for good; "codeq artifacts ID" gets them. If the program
cannot be started, or is stopped together with this worker, no attempt is counted. Programs have no terminal, and
end with this worker, however it ends.

  codeq work sha256 --window 8 -- ./hash.sh --fast

After the first Ctrl-C, TERM or HUP the worker gets no more tasks and waits for the programs. A second one, half a
second later or more, ends the programs. QUIT ends them at once.`
}

// Run takes tasks until it is told to stop.
func (w *workCmd) Run(a *app) error {
	words := w.Program
	if words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return wrong("no program after --: write it like \"codeq work %s -- ./hash.sh\"", w.Command)
	}
	p, err := findProgram(words)
	if err != nil {
		return err
	}
	p.timeout = w.Timeout
	if w.Log != "" {
		if err := os.MkdirAll(w.Log, 0o700); err != nil {
			return wrong("--log must be a directory that exists or can be made: %w", err)
		}
	}
	a.once = w.Once
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	a.detachOutput()
	p.say = a.complain
	p.listen = (&listening{app: a, dir: w.Log, verbose: w.Verbose, send: !w.NoOutput}).to
	p.marks = !w.NoProgress
	if !w.NoArtifacts {
		if p.leavings, err = openLeavings(); err != nil {
			return err
		}
		defer p.leavings.close(a.complain)
	}
	workerRun := &workerRun{app: a, client: c, command: w.Command, window: w.Window, program: p}
	p.begins = workerRun.begins
	worker, err := c.NewWorker(client.WorkerOptions{
		Commands: []string{w.Command}, Window: w.Window, Lease: w.Lease, WorkerID: w.name(),
		Handler: p.work, Ended: workerRun.taskEnded, Connected: workerRun.connected,
	})
	if err != nil {
		return &exitError{err, exitWrong}
	}
	return workerRun.run(worker)
}

func (w *workCmd) name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return cmp.Or(w.Name, fmt.Sprintf("%s:%d", host, os.Getpid()))
}

// workerRun prints what a worker does and passes signals to it. The worker loop calls
// taskEnded and connected, the goroutine of each delivery begins.
type workerRun struct {
	app     *app
	client  *client.Client
	command string
	window  int
	greeted bool
	program *program
	// look starts a goroutine that says why there may be no task for a while. It is called
	// once.
	look func()
}

// run lets the worker work and passes the signals on: the first drains, the
// second ends what runs.
func (s *workerRun) run(worker *client.Worker) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	over := make(chan struct{})
	hangups, quits := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT)
	defer signal.Stop(quits)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	var never error
	var watch sync.WaitGroup
	watch.Go(func() {
		var hard bool
		if hard, never = s.awaitStops(worker.Drain, hangups, quits, over); hard {
			cancel(s.stoppedHard())
		}
	})
	asks, stop := context.WithCancel(ctx)
	s.look = func() { watch.Go(func() { s.sayQueue(asks) }) }
	err := worker.Run(ctx)
	close(over)
	stop()
	watch.Wait()
	if err == errStoppedIdle { // this alone: with outcomes that were not sent it is wrapped
		err = nil
	}
	return cmp.Or(err, never)
}

// awaitStops drains at the first stop. hard says that the running programs must be ended:
// QUIT came, or a second stop after echoFor. never is why no program can be started, if that
// was the first stop. awaitStops returns when over is closed at the latest.
func (s *workerRun) awaitStops(drain func(), hangups, quits <-chan os.Signal, over <-chan struct{}) (hard bool, never error) {
	select {
	case <-s.app.stops:
	case <-hangups:
	case <-quits:
		hard = true
	case never = <-s.program.never:
	case <-over:
		return false, nil
	}
	first := time.Now()
	drain()
	s.sayDraining()
	for !hard {
		select {
		case <-s.app.stops:
		case <-hangups:
		case <-quits:
			first = time.Time{}
		case <-over:
			return false, never
		}
		hard = time.Since(first) >= echoFor
	}
	return true, never
}

func (s *workerRun) sayDraining() {
	if n := s.program.runs.Load(); n > 0 {
		s.app.say("getting no more tasks and waiting for the running programs (%d); Ctrl-C again ends them", n)
		return
	}
	s.app.say("getting no more tasks; no program runs; Ctrl-C again ends without waiting for the server")
}

// stoppedHard is why a worker ends that was told to stop twice.
func (s *workerRun) stoppedHard() error {
	if n := s.program.runs.Load(); n > 0 {
		return fmt.Errorf("stopped before the running programs had ended (%d)", n)
	}
	return errStoppedIdle
}

func (s *workerRun) connected(welcome *wire.Welcome) {
	if s.greeted {
		return
	}
	s.greeted = true
	s.app.say("working on %s, %d at a time, as %s; Ctrl-C stops", s.command, s.window, welcome.WorkerID)
	s.look()
}

// sayQueue says why a queue may have no task for a while: a worker may come before the
// first one. A token for workers alone may not ask, and is told nothing.
func (s *workerRun) sayQueue(ctx context.Context) {
	if s.command == wire.AllCommands {
		return
	}
	queue, err := s.client.Queue(ctx, s.command)
	switch {
	case err != nil:
	case queue.Unknown:
		s.app.say("%s", noQueue(ctx, s.client, s.command, "; waiting for its first task"))
	case queue.Paused:
		s.app.say("queue %s is paused: \"codeq resume %s\" grants its tasks again", s.command, s.command)
	}
}

// begins says that the program runs for a task.
func (s *workerRun) begins(t *wire.Task) {
	if !s.app.JSON && !s.app.Quiet {
		fmt.Fprintln(s.app.err, attempt(t)+" begins")
	}
}

// attempt is a task and its execution, at the beginning of a line.
func attempt(t *wire.Task) string {
	return fmt.Sprintf("%s  %s  attempt %d of %d", t.ID, t.Command, t.Attempts+1, t.MaxAttempts)
}

// taskEnded writes the line of a delivery that has ended.
func (s *workerRun) taskEnded(done client.Ending) {
	if s.app.JSON {
		// A line that cannot be written is no reason to stop working.
		_ = s.app.writeLine(settledJSON(done))
		return
	}
	if s.app.Quiet && done.Outcome.Kind == client.Completed {
		return
	}
	line := attempt(done.Task) + becomes(done)
	if done.Outcome.Reason != "" {
		line += ": " + wire.FirstLine(done.Outcome.Reason)
	}
	fmt.Fprintln(s.app.err, printable(line))
}

// endings are the kinds of outcomes for people.
var endings = map[client.OutcomeKind]string{
	client.Completed: "completed", client.Nacked: "failed", client.Failed: "failed for good", client.Released: "handed back",
}

// becomes says how an execution ended and what comes next, in the server's words.
func becomes(done client.Ending) string {
	text := fmt.Sprintf(" %s in %s", endings[done.Outcome.Kind], done.RanFor.Round(time.Millisecond))
	switch {
	case errors.Is(done.Err, client.ErrLeaseLost) && strings.HasSuffix(done.Err.Error(), ": "+wire.RevokedTimeout):
		return text + ", " + overrun(done.Task)
	case done.Err != nil:
		return text + ", refused by the server (" + sentence(done.Err) + ")"
	case done.DeadLetter:
		return text + ", dead letter"
	case done.Expired:
		return text + ", expired, not retried"
	case done.Outcome.Kind == client.Nacked && done.Wait == 0:
		return text + ", again at once"
	case done.Outcome.Kind == client.Nacked:
		return fmt.Sprintf("%s, again in %s", text, done.Wait)
	}
	return text
}

// overrun says of a run that the server has ended what it has done with the task.
func overrun(t *wire.Task) string {
	limit, next := "limit", "retried later"
	if t.TimeoutSeconds != 0 {
		limit += " of " + spanOf(t.TimeoutSeconds)
	}
	if t.Attempts+1 >= t.MaxAttempts {
		next = "dead letter"
	}
	return fmt.Sprintf("ended by the server because its %s was over, %s", limit, next)
}

func settledJSON(done client.Ending) []byte {
	line := wire.AppendQuoted([]byte(`{"taskId":`), done.Task.ID.String())
	line = wire.AppendQuoted(append(line, `,"command":`...), done.Task.Command)
	line = wire.AppendQuoted(append(line, `,"outcome":`...), done.Outcome.Kind.String())
	line = fmt.Appendf(line, `,"attempts":%d,"maxAttempts":%d,"delivery":%d,"durationMs":%d`,
		done.Task.Attempts, done.Task.MaxAttempts, done.Task.Deliveries, done.RanFor.Milliseconds())
	if done.Outcome.Kind == client.Nacked && done.Err == nil {
		line = fmt.Appendf(line, `,"delaySeconds":%d,"deadLetter":%t`, done.Wait/time.Second, done.DeadLetter)
	}
	if done.Outcome.Reason != "" {
		line = wire.AppendQuoted(append(line, `,"reason":`...), done.Outcome.Reason)
	}
	if done.Err != nil {
		line = wire.AppendQuoted(append(line, `,"refused":`...), sentence(done.Err))
	}
	return append(line, '}')
}
