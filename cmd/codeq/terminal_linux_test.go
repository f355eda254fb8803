package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a new terminal: the end of its person, and that of its programs.
func pty(t *testing.T) (person, programs *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, programs
}

// The worker has a terminal, and its program finds none: it would be stopped as
// soon as it asked there for a password.
func TestN04ProgramsHaveNoTerminal(t *testing.T) {
	person, programs := pty(t)
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	p := prepare(t, "--url", said.URL, "work", "hash", "--",
		"/bin/sh", "-c", `if (exec 3</dev/tty) 2>/dev/null; then echo a terminal; else echo none; fi`)
	p.cmd.Stdin = programs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.begin()
	code, out, errs := command(t, said.URL, "enqueue", "hash", "1", "--wait", "1m")
	if code != exitFine {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
	has(t, out, `{"output":"none"}`)
	// Ctrl-C reaches the worker alone.
	if _, err := person.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d, errors %q", code, p.err)
	}
	has(t, p.err.String(), "taking no more tasks")
	for _, f := range []*os.File{person, programs} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A keeper that is stopped says nothing of its program, which may have ended.
func TestN04StoppedKeeperIsToldOfAndItsProgramEnded(t *testing.T) {
	w := newWatcher(t)
	p := fake("freeze", w.path)
	p.stallFor = 50 * time.Millisecond
	said := make(chan string, 1)
	p.say = func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	_, ended, done := begins(t, context.Background(), p, w)
	has(t, <-said, "the keeper of the program", delivery("").Task.ID.String(), "SIGSTOP", "50ms")
	ended()
	if got := <-done; got != "nacked stopped by SIGSTOP for 50ms, and ended" {
		t.Errorf("got %q", got)
	}
}
