//go:build unix && !clientonly

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"codeq/client"
	"codeq/wire"
)

const (
	// exitNoRetry is the exit status with which a program says that trying
	// again is no use (EX_DATAERR of sysexits.h).
	exitNoRetry = 65
	termFor     = 5 * time.Second
	pipeFor     = 2 * time.Second
	stallFor    = 10 * time.Second
	verdictFor  = 250 * time.Millisecond
	// keeperLook is how often it is looked whether a keeper was stopped.
	keeperLook = time.Second
)

// program runs once for each task, in a process group of its own and without a terminal.
// Runs may overlap.
type program struct {
	path string
	args []string
	// termFor is how long a run may take to end after TERM.
	termFor time.Duration
	// pipeFor is how long processes that a program left may hold its pipes after its end.
	pipeFor time.Duration
	// timeout is how long a run may take; 0 is no limit.
	timeout time.Duration
	// stallFor is how long a program may stay stopped.
	stallFor time.Duration
	// verdictFor is how long a run whose program died by a signal waits for a signal to the
	// worker: if it comes, the program was stopped together with the worker.
	verdictFor time.Duration
	// begun: some program was started.
	begun atomic.Bool
	// runs is how many programs run.
	runs atomic.Int64
	// never gets why no program can ever be started.
	never chan error
	// say tells people what goes on.
	say func(format string, args ...any)
	// begins is told of each task for which the program runs.
	begins func(*wire.Task)
	// listen gives what a run prints on standard output and error also goes to.
	listen func(client.Delivery) (out, errs []listener)
	// marks: lines with a mark are reports, and not part of what the program prints.
	marks bool
	// leavings has the directories whose files are uploaded; nil is none.
	leavings *leavingsIn
}

func nobodyListens(client.Delivery) (out, errs []listener) { return nil, nil }

// findProgram looks for the program at the start, so that a wrong name fails before a task
// is granted.
func findProgram(words []string) (*program, error) {
	path, err := exec.LookPath(words[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		var inner *exec.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, wrong("program %q cannot run (%w): name a program on the PATH, or its path like ./hash.sh, and make it executable", words[0], err)
	}
	return &program{
		path: path, args: words[1:], termFor: termFor, pipeFor: pipeFor, stallFor: stallFor, verdictFor: verdictFor,
		never: make(chan error, 1), say: func(string, ...any) {}, begins: func(*wire.Task) {}, listen: nobodyListens,
	}, nil
}

// work runs the program for one delivery and turns how it ended into an
// outcome. It is a client.Handler.
func (p *program) work(ctx context.Context, d client.Delivery) client.Outcome {
	p.runs.Add(1)
	defer p.runs.Add(-1)
	left, err := p.leavings.next()
	if err != nil {
		return p.cannotBegin(err)
	}
	defer left.remove(p.say)
	s := &shell{program: p, delivery: d, left: left, stdout: newOutput(), stderr: &tail{}, due: make(chan event, maxDue)}
	if err := s.start(); err != nil {
		finishAll(s.printed, 0)
		return p.cannotBegin(err)
	}
	return left.upload(ctx, d, s.watch(ctx))
}

// cannotBegin hands back a task whose program could not be started; no attempt is counted.
// If no program was ever started and the cause is lasting, the worker ends.
func (p *program) cannotBegin(err error) client.Outcome {
	err = fmt.Errorf("start %s: %w", p.path, err)
	if !p.begun.Load() && lasting(err) {
		select {
		case p.never <- fmt.Errorf("%w; no program could be started, and the tasks are handed back: "+
			"name a program that is executable, and whose interpreter in the first line exists", err):
		default: // another run has said so
		}
	}
	return client.NotStarted(err.Error())
}

// lasting reports whether the cause is the file or its arguments, not a shortage of the system.
func lasting(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.ENOENT, syscall.EACCES, syscall.EPERM, syscall.ENOEXEC, syscall.ENOTDIR, syscall.EISDIR,
		syscall.ELOOP, syscall.ENAMETOOLONG, syscall.E2BIG, syscall.EINVAL,
	}, func(number syscall.Errno) bool { return errors.Is(err, number) })
}

func taskEnvironment(t *wire.Task) []string {
	return []string{
		"CODEQ_TASK_ID=" + t.ID.String(),
		"CODEQ_COMMAND=" + t.Command,
		fmt.Sprintf("CODEQ_ATTEMPTS=%d", t.Attempts),
		fmt.Sprintf("CODEQ_DELIVERY=%d", t.Deliveries),
		// Also without one, so that a worker within a program passes that of another task to none.
		"CODEQ_TRACEPARENT=" + t.TraceParent,
		"CODEQ_TRACESTATE=" + t.TraceState,
	}
}

// objectOf is the JSON object that a program printed, nil if that is anything else.
func objectOf(printed []byte) []byte {
	object := bytes.TrimSpace(bytes.TrimPrefix(printed, []byte(wire.ByteOrderMark)))
	if len(object) == 0 || object[0] != '{' || wire.CheckJSON(object) != nil {
		return nil
	}
	return object
}

// resultOf makes the result of what a program printed: a JSON object as it is
// but for white space around it, any other text as {"output": …} without its
// last line end. A byte order mark in front is no part of either.
func resultOf(printed []byte) client.Outcome {
	if object := objectOf(printed); object != nil {
		return client.Complete(object)
	}
	printed = bytes.TrimPrefix(printed, []byte(wire.ByteOrderMark))
	if !utf8.Valid(printed) {
		return client.Nack("the output is not UTF-8 text")
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(printed, []byte("\n")), []byte("\r"))
	result := append(wire.AppendQuoted([]byte(`{"output":`), string(text)), '}')
	if len(result) > wire.MaxResultBytes {
		return client.Nack(fmt.Sprintf("the output has %d bytes as JSON, over the limit of %d for a result",
			len(result), wire.MaxResultBytes))
	}
	return client.Complete(result)
}
