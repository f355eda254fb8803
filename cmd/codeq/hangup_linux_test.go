package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudoterminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() }) // it may be closed already
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() }) // the process has its own
	return master, slave
}

// awaitOnTerminal reads from a terminal up to a line with that text.
func awaitOnTerminal(t *testing.T, master *os.File, text string) (said string) {
	t.Helper()
	late := time.AfterFunc(time.Minute, func() { _ = master.Close() })
	defer late.Stop()
	for lines := bufio.NewScanner(master); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), text) {
			return said
		}
	}
	t.Fatalf("the server does not say %q, but %q", text, said)
	return ""
}

// A server whose terminal closes stops in order, also with a file of tokens; it was
// killed by HUP without one, and went on with one.
func TestN13TerminalThatClosesDrainsTheServer(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if code, _, errs := codeq("", "token", "new", "--name", "ada", "--file", tokens); code != exitFine {
		t.Fatal(errs)
	}
	for name, c := range map[string]struct {
		args []string
		fds  string // those that are the terminal
	}{
		"without tokens":          {nil, "012"},
		"with tokens":             {[]string{"--tokens", tokens}, "012"},
		"on standard input alone": {nil, "0"},
		"on standard error alone": {nil, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, slave := openTerminal(t)
			cmd := exec.Command(os.Args[0], append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, c.args...)...)
			cmd.Env = append(os.Environ(), asCodeq+"=1")
			log := newBuffer()
			cmd.Stderr = log
			if strings.Contains(c.fds, "0") {
				cmd.Stdin = slave
			}
			if strings.Contains(c.fds, "1") {
				cmd.Stdout = slave
			}
			if strings.Contains(c.fds, "2") {
				cmd.Stderr = slave
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: int(c.fds[0] - '0')}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			switch c.fds {
			case "0":
				log.await(t, "started")
			case "2":
				awaitOnTerminal(t, master, "started")
			default:
				has(t, awaitOnTerminal(t, master, "result --url"), "data        ", " (new)", "shards      4", "fsync",
					"http://127.0.0.1:", "Ctrl-C", " work sha256 --url", " enqueue sha256 --url")
			}
			if err := master.Close(); err != nil {
				t.Fatal(err)
			}
			killed := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer killed.Stop()
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// Which descriptors decide that HUP is the end of a terminal: standard input and error;
// standard output is often a pipe or a file there. Under nohup none does.
func TestN13HangupStopsWhatWasStartedOnATerminal(t *testing.T) {
	for _, c := range []struct{ in, err, ignored, want bool }{
		{},
		{in: true, want: true},
		{err: true, want: true},
		{in: true, err: true, want: true},
		{in: true, err: true, ignored: true},
	} {
		a := &app{inIsTerminal: c.in, errIsTerminal: c.err}
		if got := a.hangupStops(c.ignored); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
