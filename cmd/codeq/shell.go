//go:build unix && !clientonly

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codeq/client"
	"codeq/internal/keeper"
	"codeq/wire"
)

// shell connects a run with the outside: the process under its keeper, the pipes and the
// clocks. It passes events to the run and carries out its actions. The goroutine of its
// delivery owns it.
type shell struct {
	program  *program
	delivery client.Delivery
	run      runState
	left     leavings

	stdout  *output
	stderr  *tail
	printed []*flow

	process *keptProgram
	reports chan report    // nil after the last one
	group   int            // process group of the program, 0 before it runs
	stopped syscall.Signal // the signal that stopped the program last
	frozen  bool           // a signal stopped the keeper, so it reports nothing
	look    *time.Ticker   // when to look at the keeper

	// limit is the time after which the program was ended: that of the server, or
	// program.timeout.
	limit time.Duration

	// due gets the events that the shell causes itself: maxDue of them at most in one run.
	due            chan event
	timeout, stall <-chan time.Time
	// Each of these is nil after its event.
	ended, drain, flood <-chan struct{}
}

// maxDue is eventPatience, eventVerdict and eventPiped, each once. With so much room in due
// nothing waits for a run that is over.
const maxDue = 3

// start starts the program and the flows of what it prints.
func (s *shell) start() error {
	outs, errses := s.program.listen(s.delivery)
	out, err := s.flowTo(s.stdout, outs)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the program has its own by then
	errs, err := s.flowTo(s.stderr, errses)
	if err != nil {
		return err
	}
	defer func() { _ = errs.Close() }() // as above
	s.process, err = startKept(&exec.Cmd{
		Path: s.program.path, Args: s.program.args, Env: append(append(os.Environ(), taskEnvironment(s.delivery.Task)...), "CODEQ_ARTIFACTS="+string(s.left)),
		Stdin: bytes.NewReader(s.delivery.Task.Payload), Stdout: out, Stderr: errs,
	})
	return err
}

func (s *shell) flowTo(to io.Writer, also []listener) (*os.File, error) {
	var found func(wire.ProgressRequest)
	if s.program.marks {
		found = s.delivery.Progress
	}
	f, file, err := newFlow(to, also, found)
	if err == nil {
		s.printed = append(s.printed, f)
	}
	return file, err
}

// watch follows the run to its end.
func (s *shell) watch(ctx context.Context) client.Outcome {
	s.reports = s.process.Reports
	s.ended, s.drain, s.flood = ctx.Done(), client.Draining(ctx), s.stdout.overflow
	if s.program.timeout > 0 {
		s.timeout = time.After(s.program.timeout)
	}
	s.look = time.NewTicker(keeperLook)
	defer s.look.Stop()
	for s.run.phase != over {
		for _, a := range s.run.step(s.next(ctx)) {
			s.do(a)
		}
	}
	s.process.dismiss()
	for s.reports != nil {
		s.reported(<-s.reports)
	}
	return s.outcome()
}

// next waits for the next event.
func (s *shell) next(ctx context.Context) (event, uint32) {
	select {
	case r := <-s.reports:
		return s.reported(r), r.Value
	case <-s.ended:
		s.ended = nil
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, client.ErrStopping):
			return eventHard, 0
		case errors.Is(cause, client.ErrTimeout):
			s.limit = s.delivery.Timeout
			return eventTimeout, 0
		}
		return eventLost, 0
	case <-s.drain:
		s.drain = nil
		return eventDrain, 0
	case <-s.flood:
		s.flood = nil
		return eventFloods, 0
	case e := <-s.due:
		return e, 0
	case <-s.timeout:
		s.limit = s.program.timeout
		return eventTimeout, 0
	case <-s.stall:
		return eventStall, 0
	case <-s.look.C:
		return s.looked(), 0
	}
}

// looked compares what the keeper is with what it was. A stopped one makes no
// reports, so its program counts as stopped.
func (s *shell) looked() event {
	was := s.frozen
	s.frozen = s.reports != nil && s.process.stopped()
	switch {
	case s.frozen && !was:
		s.stopped = syscall.SIGSTOP
		return eventStops
	case was && !s.frozen:
		return eventContinues
	}
	return eventNothing
}

func (s *shell) reported(r report) event {
	switch r.Kind {
	case keeper.Starting:
		return eventRuns
	case keeper.Running:
		s.group = int(r.Value)
		s.program.begun.Store(true)
		s.program.begins(s.delivery.Task)
		return eventNothing
	case keeper.Failed:
		return eventFails
	case keeper.Stopped:
		s.stopped = syscall.Signal(r.Value)
		return eventStops
	case keeper.Continued:
		return eventContinues
	case keeper.Ended:
		return eventEnds
	case keeper.Empty:
		return eventEmpty
	}
	s.reports = nil
	return eventGone
}

func (s *shell) do(a action) {
	switch a {
	case actTerm:
		s.process.term()
	case actKill:
		s.process.kill()
		if s.reports == nil && s.group != 0 {
			// Without a keeper. It fails only when nobody of the group is left.
			_ = syscall.Kill(-s.group, syscall.SIGKILL)
		}
	case actPatience:
		s.after(s.program.termFor, eventPatience)
	case actTell:
		whose := ""
		if s.frozen {
			whose = "keeper of the "
		}
		s.program.say("the %sprogram of task %s was stopped by %s and is ended unless it continues within %s",
			whose, s.delivery.Task.ID, unix.SignalName(s.stopped), s.program.stallFor)
	case actStall:
		s.stall = time.After(s.program.stallFor)
	case actGoesOn:
		s.stall = nil
	case actPipes:
		go func() {
			finishAll(s.printed, s.program.pipeFor)
			s.due <- eventPiped
		}()
	case actVerdict:
		s.after(s.program.verdictFor, eventVerdict)
	}
}

// after makes the event come when d is over. Its timer holds the channel alone, not the
// output of a run that is over.
func (s *shell) after(d time.Duration, e event) {
	due := s.due
	time.AfterFunc(d, func() { due <- e })
}

// outcome is the outcome of the task, with how the program ended.
func (s *shell) outcome() client.Outcome {
	out := s.verdict()
	if !s.run.began {
		return out
	}
	return out.Exited(exitOf(s.run.status))
}

// exitOf is how a program ended, for the history of its task.
func exitOf(status syscall.WaitStatus) wire.Exit {
	if status.Signaled() {
		return wire.Exit{Signal: unix.SignalName(status.Signal())}
	}
	return wire.Exit{Code: status.ExitStatus(), Coded: status.Exited()}
}

// verdict turns the end of a run into the outcome of its task.
func (s *shell) verdict() client.Outcome {
	r := &s.run
	switch {
	case r.failed != 0:
		return s.program.cannotBegin(r.failed)
	case !r.began:
		return s.program.cannotBegin(fmt.Errorf("its keeper ended first (%s): %s", ending(r.status), s.stderr.reason("without a word")))
	case s.stdout.over:
		return client.Nack(fmt.Sprintf("the output is longer than the limit of %d bytes for a result", wire.MaxResultBytes))
	case r.cause == causeTimeout:
		return client.Nack(s.stderr.behind(fmt.Sprintf("timeout: ended after %s", s.limit)))
	case r.cause == causeStall:
		return client.Nack(s.stderr.behind(fmt.Sprintf("stopped by %s for %s, and ended", unix.SignalName(s.stopped), s.program.stallFor)))
	case r.status.Exited() && r.status.ExitStatus() == 0 && (!r.evicted() || objectOf(s.stdout.data) != nil):
		return resultOf(s.stdout.data)
	case r.cause == causeHard, r.told && r.interrupted():
		// Interrupted by this worker's own end, so the task is not to blame.
		return client.Stopped()
	case r.cause == causeLost:
		// The server refuses it, which gives the unit of the window back.
		return client.Nack(s.stderr.reason(ending(r.status)))
	case r.status.Exited() && r.status.ExitStatus() == exitNoRetry:
		return client.Fail(s.stderr.reason(ending(r.status)))
	}
	return client.Nack(s.stderr.reason(ending(r.status)))
}

// ending is how a program ended, in the words of package os.
func ending(status syscall.WaitStatus) string {
	if status.Exited() {
		return fmt.Sprintf("exit status %d", status.ExitStatus())
	}
	core := ""
	if status.CoreDump() {
		core = " (core dumped)"
	}
	return fmt.Sprintf("signal: %s%s", status.Signal(), core)
}
