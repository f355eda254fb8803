package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// sayingWaits is how many writes may wait for a reader that is slow; further
	// ones are lost.
	sayingWaits = 4096
	// sayingFor is how long the end of the process waits for that reader.
	sayingFor = time.Second
)

// saying is the standard output or error of a server or a worker. It never holds up who
// writes: a goroutine of its own does the writing, and what nobody takes is lost
// and counted. Any goroutine.
type saying struct {
	to    io.Writer
	waits chan said
	lost  atomic.Int64
	over  chan struct{}
}

// said is one write, or a mark behind those before it.
type said struct {
	text   []byte
	behind chan struct{}
}

func newSaying(to io.Writer) *saying {
	s := &saying{to: to, waits: make(chan said, sayingWaits), over: make(chan struct{})}
	go s.run()
	return s
}

// Write implements io.Writer. It never fails.
func (s *saying) Write(text []byte) (int, error) {
	select {
	case s.waits <- said{text: append([]byte(nil), text...)}:
	default:
		s.lost.Add(1)
	}
	return len(text), nil
}

// run may be left in a write that never ends; the end of the process ends it.
func (s *saying) run() {
	unsaid := int64(0)
	for {
		select {
		case next := <-s.waits:
			if next.behind != nil {
				close(next.behind)
				continue
			}
			s.say(next.text, &unsaid)
		case <-s.over:
			return
		}
	}
}

// say writes, and says how many writes were lost once one succeeds again.
func (s *saying) say(text []byte, known *int64) {
	if lost := s.lost.Load(); lost > *known {
		text = fmt.Appendf(nil, "codeq: %d lines were lost because nobody read them\n%s", lost-*known, text)
		*known = lost
	}
	if _, err := s.to.Write(text); err != nil {
		s.lost.Add(1) // nobody else could be told
	}
}

// flush waits until what was written so far is out or lost, and reports false if
// that takes longer than sayingFor.
func (s *saying) flush() bool {
	late := time.After(sayingFor)
	mark := said{behind: make(chan struct{})}
	select {
	case s.waits <- mark:
	case <-late:
		return false
	}
	select {
	case <-mark.behind:
		return true
	case <-late:
		return false
	}
}

// end flushes, and ends the goroutine unless it is left in a write.
func (s *saying) end() {
	s.flush()
	close(s.over)
}

// lastWords is the writer of a log whose process ends behind a fatal line, which is
// written before.
type lastWords struct {
	io.Writer
	flush func() bool
}

// WriteLevel implements zerolog.LevelWriter.
func (l *lastWords) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	n, err := l.Write(line)
	if level == zerolog.FatalLevel {
		l.flush()
	}
	return n, err
}

// detach has everything that this process says from now on written by goroutines
// of their own, until the command has ended.
func (a *app) detach() {
	out, err := newSaying(a.out), newSaying(a.err)
	a.out, a.err = out, err
	a.sayings = []*saying{out, err}
}

// endSayings lets out what was said last.
func (a *app) endSayings() {
	for _, s := range a.sayings {
		s.end()
	}
}

// flush reports whether everything that was said is out.
func (a *app) flush() bool {
	out := true
	for _, s := range a.sayings {
		out = s.flush() && out
	}
	return out
}

// lost is how many lines nobody took.
func (a *app) lost() (lines int64) {
	for _, s := range a.sayings {
		lines += s.lost.Load()
	}
	return lines
}
