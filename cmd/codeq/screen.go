package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// enterScreen has the terminal show a second page, no cursor, and cut lines that are
	// too long; leaveScreen undoes it.
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// plainHeight is the height of a terminal that does not tell its own.
	plainHeight = 24
	escape      = "\x1b"
)

// screen is a terminal of which one goroutine fills the whole page.
type screen struct {
	in, out *os.File
	// keys are what was typed: one character, or the sequence of a key like an arrow. It is
	// closed when the terminal is gone.
	keys chan string
	// ends are the signals that would end the process and leave the terminal as it is.
	ends chan os.Signal
	left chan struct{}
}

// onScreen calls body with a screen, and makes the terminal what it was before, also if
// body panics. What reads the keys ends with the next key or with the process.
func onScreen(in, out *os.File, body func(*screen) error) (err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	s := &screen{in: in, out: out, keys: make(chan string), ends: make(chan os.Signal, 1), left: make(chan struct{})}
	signal.Notify(s.ends, syscall.SIGHUP, syscall.SIGQUIT)
	defer func() {
		signal.Stop(s.ends)
		close(s.left)
		_, lost := out.WriteString(leaveScreen)
		err = cmp.Or(err, lost, term.Restore(int(in.Fd()), before))
	}()
	if _, err := out.WriteString(enterScreen); err != nil {
		return fmt.Errorf("set up the terminal: %w", err)
	}
	go s.read()
	return body(s)
}

func (s *screen) read() {
	defer close(s.keys)
	typed := make([]byte, 256)
	for {
		n, err := s.in.Read(typed)
		for rest := string(typed[:n]); rest != ""; {
			size := len(rest)
			if !strings.HasPrefix(rest, escape) {
				_, size = utf8.DecodeRuneInString(rest)
			}
			select {
			case s.keys <- rest[:size]:
			case <-s.left:
				return
			}
			rest = rest[size:]
		}
		if err != nil {
			return
		}
	}
}

// size is how many cells a line has, and how many lines there are.
func (s *screen) size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return widthOf(s.out), plainHeight
	}
	return columns, rows
}

// draw shows lines in place of what is there.
func (s *screen) draw(lines [][]byte) error {
	page := []byte("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			page = append(page, "\r\n"...)
		}
		page = append(append(page, line...), "\x1b[K"...)
	}
	if _, err := s.out.Write(append(page, "\x1b[J"...)); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// lastSaid keeps the last line that was written to it. Any goroutine.
type lastSaid struct {
	mu   sync.Mutex
	line string
}

// Write implements io.Writer.
func (l *lastSaid) Write(p []byte) (int, error) {
	l.set(string(p))
	return len(p), nil
}

func (l *lastSaid) set(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
}

func (l *lastSaid) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}
