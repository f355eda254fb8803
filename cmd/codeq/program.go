package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
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
	// groupLook is how often it is looked whether a process group has ended.
	groupLook = 20 * time.Millisecond
)

// program is what works on the tasks: run once for each, in a process group of
// its own. It has no state; runs may overlap.
type program struct {
	path string
	args []string
	// termFor is how long a run may take to end after TERM.
	termFor time.Duration
	// pipeFor is how long what a run left behind may keep its pipes open after
	// it has ended.
	pipeFor time.Duration
}

// findProgram looks for it now, so that a slip in its name fails before a task
// is taken.
func findProgram(words []string) (*program, error) {
	path, err := exec.LookPath(words[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		var inner *exec.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, wrong("program %q can not be run (%w): name one that is on the PATH, or by its path like ./hash.sh, and make it executable", words[0], err)
	}
	return &program{path: path, args: words[1:], termFor: termFor, pipeFor: pipeFor}, nil
}

// work runs the program for one delivery and turns how it ended into an
// outcome. It is a client.Handler.
func (p *program) work(ctx context.Context, d client.Delivery) client.Outcome {
	stdout, stderr := newOutput(), &tail{}
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), taskEnvironment(d.Task)...)
	cmd.Stdin = bytes.NewReader(d.Task.Payload)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = p.pipeFor
	printed, err := startPrinting(cmd, stdout, stderr)
	if err != nil {
		finishAll(printed, 0)
		return client.Nack(fmt.Sprintf("start program: %v", err))
	}
	var watch sync.WaitGroup
	ended := make(chan struct{})
	watch.Go(func() { p.endEarly(ctx, cmd.Process.Pid, stdout.overflow, ended) })
	err = cmd.Wait()
	finishAll(printed, p.pipeFor)
	close(ended)
	watch.Wait()
	return outcomeOf(ctx, err, stdout, stderr)
}

// startPrinting starts a program and the flows of what it prints.
func startPrinting(cmd *exec.Cmd, stdout, stderr io.Writer) (flows []*flow, err error) {
	for end, to := range map[*io.Writer]io.Writer{&cmd.Stdout: stdout, &cmd.Stderr: stderr} {
		f, file, failed := newFlow(to)
		if failed != nil {
			err = failed
			break
		}
		defer func() { _ = file.Close() }() // the program has its own by then
		flows, *end = append(flows, f), file
	}
	if err == nil {
		err = cmd.Start()
	}
	return flows, err
}

func taskEnvironment(t *wire.Task) []string {
	return []string{
		"CODEQ_TASK_ID=" + t.ID.String(),
		"CODEQ_COMMAND=" + t.Command,
		fmt.Sprintf("CODEQ_ATTEMPTS=%d", t.Attempts),
		fmt.Sprintf("CODEQ_DELIVERY=%d", t.Deliveries),
	}
}

// endEarly ends the process group of a program that must not go on: at once
// when it prints too much, with TERM and a while later KILL when ctx is over.
// It returns when the group is gone, or the program has ended by itself.
func (p *program) endEarly(ctx context.Context, group int, overflow, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-overflow:
		signalGroup(group, syscall.SIGKILL)
		return
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return // both came at once, and the number may be somebody else's soon
	default:
	}
	signalGroup(group, syscall.SIGTERM)
	patience := time.NewTimer(p.termFor)
	defer patience.Stop()
	look := time.NewTicker(groupLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if !groupLives(group) {
				return
			}
		case <-overflow:
			signalGroup(group, syscall.SIGKILL)
			return
		case <-patience.C:
			signalGroup(group, syscall.SIGKILL)
			return
		}
	}
}

func signalGroup(group int, s syscall.Signal) {
	// It fails only when nobody of the group is left, which is what is wanted.
	_ = syscall.Kill(-group, s)
}

func groupLives(group int) bool { return syscall.Kill(-group, 0) == nil }

// outcomeOf turns the end of a program into the outcome of its task.
func outcomeOf(ctx context.Context, err error, stdout *output, stderr *tail) client.Outcome {
	var exit *exec.ExitError
	switch {
	case stdout.over:
		return client.Nack(fmt.Sprintf("the output is over the limit of %d bytes for a result", wire.MaxResultBytes))
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return resultOf(stdout.data)
	case errors.Is(context.Cause(ctx), client.ErrStopping):
		// Interrupted by this worker's own end, so the task is not to blame.
		return client.Release()
	case !errors.As(err, &exit):
		return client.Nack(fmt.Sprintf("run program: %v", err))
	case exit.ExitCode() == exitNoRetry:
		return client.Fail(stderr.reason(exit.String()))
	}
	return client.Nack(stderr.reason(exit.String()))
}

// resultOf makes the result of what a program printed: a JSON object as it is
// but for white space around it, any other text as {"output": …} without its
// last line end. A byte order mark in front is no part of either.
func resultOf(printed []byte) client.Outcome {
	printed = bytes.TrimPrefix(printed, []byte("\ufeff"))
	object := bytes.TrimSpace(printed)
	if len(object) > 0 && object[0] == '{' && wire.CheckJSON(object) == nil {
		return client.Complete(object)
	}
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
