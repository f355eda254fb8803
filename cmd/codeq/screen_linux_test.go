package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a terminal with what a person sees on it.
type console struct {
	t                *testing.T
	person, programs *os.File
	before           unix.Termios
	// parts is what the screen shows, piece by piece, and seen all of it at the end.
	parts, seen chan string
}

func newConsole(t *testing.T) *console {
	t.Helper()
	person, programs := pty(t)
	d := &console{t: t, person: person, programs: programs, parts: make(chan string, 1000), seen: make(chan string, 1)}
	if err := unix.IoctlSetWinsize(int(programs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}); err != nil {
		t.Fatal(err)
	}
	d.before = d.settings()
	go func() {
		text, piece := "", make([]byte, 1<<16)
		for {
			n, err := person.Read(piece) // it ends with an error when nobody has the other end
			text += string(piece[:n])
			d.parts <- string(piece[:n])
			if err != nil {
				d.seen <- text
				return
			}
		}
	}()
	return d
}

func (d *console) settings() unix.Termios {
	d.t.Helper()
	settings, err := unix.IoctlGetTermios(int(d.programs.Fd()), unix.TCGETS)
	if err != nil {
		d.t.Fatal(err)
	}
	return *settings
}

// left wants a terminal as it was before, on which the screen was entered and left, and
// returns what was shown.
func (d *console) left() string {
	d.t.Helper()
	if after := d.settings(); after != d.before {
		d.t.Errorf("the terminal is left as %+v, and was %+v", after, d.before)
	}
	if err := d.programs.Close(); err != nil {
		d.t.Error(err)
	}
	text := <-d.seen
	if err := d.person.Close(); err != nil {
		d.t.Error(err)
	}
	if strings.Count(text, enterScreen) != 1 || strings.Count(text, leaveScreen) != 1 {
		d.t.Errorf("the screen is not entered and left once: %q", text)
	}
	return text
}

// begin starts a command line on the terminal.
func (d *console) begin(args ...string) *process {
	d.t.Helper()
	p := prepare(d.t, args...)
	p.cmd.Stdin, p.cmd.Stdout = d.programs, d.programs
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm", "NO_COLOR=1", "COLUMNS=")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.begin()
	return p
}

func TestE17TerminalIsAsBeforeAfterAPanic(t *testing.T) {
	d := newConsole(t)
	func() {
		defer func() {
			if p := recover(); p != "the test says so" {
				t.Errorf("recovered %v", p)
			}
		}()
		err := onScreen(d.programs, d.programs, func(s *screen) error {
			if d.settings() == d.before {
				t.Error("the keys are still those of a line")
			}
			panic("the test says so")
		})
		t.Errorf("there was no panic: %v", err)
	}()
	// What reads the keys ends with the next one.
	if _, err := d.person.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	d.left()
}

func TestE17TerminalIsAsBeforeWithoutAServer(t *testing.T) {
	d := newConsole(t)
	p := d.begin("--url", nowhere, "top")
	if code := p.exit(); code != exitAgain {
		t.Errorf("exit code %d", code)
	}
	d.left()
	has(t, p.err.String(), "no codeq server answers")
}

// shows waits until the screen has shown a text since it was last asked.
func (d *console) shows(want string) {
	d.t.Helper()
	deadline := time.After(time.Minute)
	for text := ""; !strings.Contains(text, want); {
		select {
		case part := <-d.parts:
			text += part
		case <-deadline:
			d.t.Fatalf("the screen does not show %q, but %q", want, text)
		}
	}
}

func (d *console) types(keys string) {
	d.t.Helper()
	if _, err := d.person.WriteString(keys); err != nil {
		d.t.Fatal(err)
	}
}

// The table follows the queues and the keys, and q leaves the terminal as it was.
func TestE17TopOnATerminal(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &outputHouse{t, said.URL}
	h.fine("enqueue", "mail", "1")
	d := newConsole(t)
	p := d.begin("--url", said.URL, "top")
	d.shows("mail     1  ")
	h.fine("enqueue", "mail", "1")
	h.fine("enqueue", "resize", "1")
	d.shows("mail     2  ")
	d.types("/siz")
	d.shows("filter: siz_")
	d.types("\r>")
	d.shows("sorted by DELAYED, largest first (< > r)  filter \"siz\"")
	d.types("q")
	if code := p.exit(); code != exitFine || p.err.String() != "" {
		t.Errorf("exit code %d, errors %q", code, p.err)
	}
	d.left()
}

// A signal ends the table, and leaves the terminal as it was.
func TestE17TopIsEndedBySignals(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		d := newConsole(t)
		p := d.begin("--url", said.URL, "top")
		d.shows("COMMAND")
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != exitFailed {
			t.Errorf("%v: exit code %d", s, code)
		}
		d.left()
		has(t, p.err.String(), "stopped by "+s.String())
	}
}
