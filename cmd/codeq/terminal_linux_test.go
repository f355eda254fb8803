package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rivo/uniseg"
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
	has(t, p.err.String(), "getting no more tasks")
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

// onTerminal runs a command line on a terminal of so many columns and returns what a
// person sees.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) string {
	t.Helper()
	person, programs := pty(t)
	if err := unix.IoctlSetWinsize(int(programs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, args...)
	p.cmd.Stdout = programs
	p.cmd.Env = append(append(p.cmd.Env, "TERM=xterm", "NO_COLOR=", "COLUMNS="), env...)
	p.begin()
	seen := make(chan string)
	go func() {
		text, _ := io.ReadAll(person) // it ends with an error when nobody has the other end
		seen <- string(text)
	}()
	if code := p.exit(); code != exitFine {
		t.Errorf("%q: exit code %d, errors %q", args, code, p.err)
	}
	if err := programs.Close(); err != nil {
		t.Error(err)
	}
	text := strings.ReplaceAll(<-seen, "\r\n", "\n")
	if err := person.Close(); err != nil {
		t.Error(err)
	}
	return text
}

// What people see fits their terminal, says how long ago, and has colours; what tools
// read is whole, in stamps, and plain.
func TestU11TablesOnATerminalAndInAPipe(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	reason := strings.Repeat("書類が見つからない ", 30)
	id := h.fine("enqueue", "mail", "1")
	words := strings.Fields(h.fine("claim", "mail", "--name", "box-7"))
	h.fine("complete", words[0], words[1], "--error", reason)
	list := []string{"--url", said.URL, "tasks", "mail", "--state", "dlq"}
	for columns, more := range map[uint16][]string{80: {"TASK"}, 200: {"TASK", "DELIVERIES", "box-7"}} {
		text := onTerminal(t, columns, nil, list...)
		has(t, text, append(more, id, red+"FAILED"+plain, "…")...)
		fits(t, text, int(columns))
		if !regexp.MustCompile(`now|\ds ago`).MatchString(text) {
			t.Errorf("the times are not those for people:\n%s", text)
		}
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if text := onTerminal(t, 80, []string{env}, list...); strings.Contains(text, "\x1b") || !strings.Contains(text, "FAILED") {
			t.Errorf("with %s there is %q", env, text)
		}
	}
	stamp := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	h.fine("enqueue", "late", "1")
	set := []string{"--url", said.URL, "queue", "set", "late", "--lease", "1m"}
	for _, args := range [][]string{list, set} {
		if text := onTerminal(t, 200, nil, append(args, "--utc")...); !stamp.MatchString(text) {
			t.Errorf("%q: with --utc there is no stamp in\n%s", args, text)
		}
	}
	narrow := onTerminal(t, 0, []string{"COLUMNS=82", "NO_COLOR=1"}, list...)
	if row := strings.Split(narrow, "\n")[1]; uniseg.StringWidth(row) < 80 || uniseg.StringWidth(row) > 82 {
		t.Errorf("COLUMNS=82 gives\n%s", narrow)
	}
	piped := h.fine(list[2:]...)
	has(t, piped, strings.TrimSpace(reason), "DELIVERIES", "box-7")
	if strings.Contains(piped, "\x1b") || !stamp.MatchString(piped) {
		t.Errorf("in a pipe there is\n%s", piped)
	}
}
