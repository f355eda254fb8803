//go:build unix && !clientonly

package main

import "syscall"

// phase is the state of a run.
type phase int

const (
	// starting: the keeper was asked to start the program and has not reported that it does.
	starting phase = iota
	running
	// terminating: the group was sent TERM and has program.termFor to end.
	terminating
	// killed: the group was sent KILL.
	killed
	// draining: the program has ended by itself; another process may still hold its pipes.
	draining
	// judging: the program died by a signal, and the run waits whether the worker gets one, too.
	judging
	over
)

// event is what may happen to a run.
type event int

const (
	eventRuns event = iota // the keeper starts the program
	eventFails
	eventStops
	eventContinues
	eventEnds
	eventEmpty    // no process is left in the group that was told to end
	eventGone     // the keeper has ended
	eventPiped    // all that was printed is read
	eventFloods   // it printed more than a result holds
	eventLost     // the lease is lost
	eventDrain    // the worker was told to stop
	eventHard     // the worker was told to stop without waiting
	eventTimeout  // the time limit of the run is over
	eventPatience // program.termFor is over after TERM
	eventStall    // it was stopped for too long
	eventNothing
	eventVerdict // program.verdictFor is over, and the worker got no stop signal
)

// action is what the shell around a run has to do.
type action int

const (
	actTerm action = iota
	actKill
	actPatience // make eventPatience come later
	actTell     // say that a signal stopped the program
	actStall    // make eventStall come later
	actGoesOn   // cancel actStall
	actPipes    // read what was printed, then make eventPiped come
	actVerdict  // make eventVerdict come later
)

// cause is why a run was ended from outside; the first holds.
type cause int

const (
	causeNone cause = iota
	causeLost
	causeHard
	causeTimeout
	causeStall
	causeFlood
)

// runState is one run of a program as a value: step takes what has happened and says
// what to do. It has no clock, no process and no goroutine.
type runState struct {
	phase phase
	cause cause
	// told: the worker was told to stop, before or meanwhile.
	told bool
	// began: the program may have run. Without it the run says nothing about the task.
	began  bool
	failed syscall.Errno
	status syscall.WaitStatus
	ended  bool // the program, or its start has failed
	piped  bool
	empty  bool
}

// step takes an event, with the error, signal or status that comes with it.
func (r *runState) step(e event, value uint32) []action {
	if r.phase == over || e == eventNothing {
		return nil
	}
	switch e {
	case eventRuns:
		r.began = true
		if r.phase == starting {
			r.phase = running
		}
	case eventFails:
		r.failed = syscall.Errno(value)
		return r.end(0)
	case eventEnds:
		return r.end(value)
	case eventGone:
		return r.gone(value)
	case eventStops:
		if r.phase == running {
			return []action{actTell, actStall}
		}
	case eventContinues:
		return []action{actGoesOn}
	case eventDrain:
		return r.stop()
	case eventHard:
		return append(r.stop(), r.term(causeHard)...)
	case eventLost:
		return r.term(causeLost)
	case eventTimeout:
		return r.bound(causeTimeout)
	case eventStall:
		return r.bound(causeStall)
	case eventFloods:
		return r.kill(causeFlood)
	case eventPatience:
		return r.kill(r.cause)
	case eventEmpty:
		r.empty = true
	case eventPiped:
		r.piped = true
	case eventVerdict:
		return r.finish(judging)
	}
	return r.next()
}

// end notes that the program has ended, or was never begun.
func (r *runState) end(status uint32) []action {
	if r.ended {
		return nil
	}
	r.ended, r.status = true, syscall.WaitStatus(status)
	if r.phase < terminating {
		r.phase = draining
	}
	return []action{actGoesOn, actPipes}
}

// gone notes the end of the keeper. If the keeper was killed, its program still runs: the
// program is killed, too, and the run ends with the status of the keeper.
func (r *runState) gone(status uint32) []action {
	if r.ended {
		r.empty = true // nobody reports any more whether the group is empty
		return r.next()
	}
	r.phase = killed
	return append([]action{actKill}, r.end(status)...)
}

// stop notes the stop signal of the worker, which the verdict may wait for.
func (r *runState) stop() []action {
	r.told = true
	return r.finish(judging)
}

// bound ends a program that has not ended in time.
func (r *runState) bound(why cause) []action {
	if r.ended {
		return nil
	}
	return r.term(why)
}

func (r *runState) term(why cause) []action {
	if r.phase >= terminating && r.phase != draining {
		return nil
	}
	r.phase = terminating
	r.blame(why)
	return []action{actGoesOn, actTerm, actPatience}
}

func (r *runState) kill(why cause) []action {
	if r.phase >= killed && r.phase != draining {
		return nil
	}
	r.phase = killed
	r.blame(why)
	return append([]action{actGoesOn, actKill}, r.next()...)
}

// blame notes why a program was ended, unless it had ended before.
func (r *runState) blame(why cause) {
	if r.cause == causeNone && !r.ended {
		r.cause = why
	}
}

// next ends the run, or waits for a verdict, when the program has ended, its output is read
// and, if its group was told to end, the group is empty.
func (r *runState) next() []action {
	if !r.ended || !r.piped || r.phase == terminating && !r.empty {
		return nil
	}
	if r.phase == draining && r.interrupted() && !r.told {
		r.phase = judging
		return []action{actVerdict}
	}
	return r.finish(r.phase)
}

func (r *runState) finish(from phase) []action {
	if r.phase == from {
		r.phase = over
	}
	return nil
}

// evicted reports whether this worker ended the program for no fault of the program.
func (r *runState) evicted() bool { return r.cause == causeLost || r.cause == causeHard }

// interrupted reports whether the program died by a signal that people, terminals, service
// managers and containers send to a worker and its programs together, or exited with 128 and
// the number of such a signal.
func (r *runState) interrupted() bool {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if r.status.Signaled() && r.status.Signal() == s || r.status.Exited() && r.status.ExitStatus() == 128+int(s) {
			return true
		}
	}
	return false
}
