//go:build unix && !clientonly

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// firstProcess is the number of the process that adopts every orphan of the system or of
// its container. Signals that it does not handle do not end it.
const firstProcess = 1

// runAsInit is what process 1 does: it runs this program once more, passes its signals
// on, takes in who has ended, and returns the exit code of that process. It returns
// false if there can be no such process.
//
// The program itself can not take in orphans, because that would take the ends of its own
// children away from whoever waits for them.
func runAsInit() (code int, ok bool) {
	path, err := self()
	if err != nil {
		return 0, false
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	defer signal.Stop(signals)
	// In a group of its own it does not get what a terminal sends a second time.
	child, err := syscall.ForkExec(path, os.Args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "codeq: as process 1 this should run once more, to take in the processes that others leave behind, and can not: %v\n", err)
		return 0, false
	}
	go forwardSignals(signals, child)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitFailed, true // no child is left, which cannot happen before its end was seen
		case pid == child && status.Signaled():
			return 128 + int(status.Signal()), true
		case pid == child:
			return status.ExitStatus(), true
		}
	}
}

// forwardSignals passes on what is meant for the program, until the end of this process.
func forwardSignals(signals <-chan os.Signal, to int) {
	for s := range signals {
		switch s {
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGTTOU, syscall.SIGTTIN:
			// of this process itself
		default:
			_ = syscall.Kill(to, s.(syscall.Signal)) // it fails for one that has ended
		}
	}
}
