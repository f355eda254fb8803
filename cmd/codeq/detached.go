package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// maxQueuedWrites is how many writes may wait for a reader that is slow; further
	// ones are lost.
	maxQueuedWrites = 4096
	// flushFor is how long the end of the process waits for that reader.
	flushFor = time.Second
)

// detachedWriter is the standard output or error of a server or a worker. Write never
// blocks: another goroutine writes, and what finds its queue full is dropped and counted.
// Any goroutine.
type detachedWriter struct {
	to    io.Writer
	waits chan queuedWrite
	lost  atomic.Int64
	over  chan struct{}
}

// queuedWrite is one write, or a mark: its channel is closed after the writes before it.
type queuedWrite struct {
	text   []byte
	behind chan struct{}
}

func newDetachedWriter(to io.Writer) *detachedWriter {
	s := &detachedWriter{to: to, waits: make(chan queuedWrite, maxQueuedWrites), over: make(chan struct{})}
	go s.run()
	return s
}

// Write implements io.Writer. It never fails.
func (s *detachedWriter) Write(text []byte) (int, error) {
	select {
	case s.waits <- queuedWrite{text: append([]byte(nil), text...)}:
	default:
		s.lost.Add(1)
	}
	return len(text), nil
}

// run may be left in a write that never ends; the end of the process ends it.
func (s *detachedWriter) run() {
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

// say writes text, and before it how many writes were lost since the last notice.
func (s *detachedWriter) say(text []byte, known *int64) {
	if lost := s.lost.Load(); lost > *known {
		text = fmt.Appendf(nil, "codeq: %d lines were lost because nobody read them\n%s", lost-*known, text)
		*known = lost
	}
	if _, err := s.to.Write(text); err != nil {
		s.lost.Add(1) // nobody else could be told
	}
}

// flush waits until what was written so far is out or lost, and reports false if
// that takes longer than flushFor.
func (s *detachedWriter) flush() bool {
	late := time.After(flushFor)
	mark := queuedWrite{behind: make(chan struct{})}
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

// end flushes, and ends the goroutine unless a write blocks it.
func (s *detachedWriter) end() {
	s.flush()
	close(s.over)
}

// fatalFlusher is the writer of a log. It flushes after a fatal line, because the process
// ends then.
type fatalFlusher struct {
	io.Writer
	flush func() bool
}

// WriteLevel implements zerolog.LevelWriter.
func (l *fatalFlusher) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	n, err := l.Write(line)
	if level == zerolog.FatalLevel {
		l.flush()
	}
	return n, err
}

// detachOutput has goroutines of their own write the output from now on, until the command
// has ended.
func (a *app) detachOutput() {
	out, err := newDetachedWriter(a.out), newDetachedWriter(a.err)
	a.out, a.err = out, err
	a.detached = []*detachedWriter{out, err}
}

// endDetached writes what is still queued.
func (a *app) endDetached() {
	for _, s := range a.detached {
		s.end()
	}
}

// flush reports whether everything that was queued is written.
func (a *app) flush() bool {
	out := true
	for _, s := range a.detached {
		out = s.flush() && out
	}
	return out
}

// lost is how many lines were dropped.
func (a *app) lost() (lines int64) {
	for _, s := range a.detached {
		lines += s.lost.Load()
	}
	return lines
}
