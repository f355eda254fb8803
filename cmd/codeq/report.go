//go:build unix && !clientonly

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"codeq/client"
	"codeq/wire"
)

const (
	// mark begins a line of a program that says how far it is, such as "::progress 40 half way".
	mark = "::progress "
	// sendFor is how long lines are gathered before they are sent.
	sendFor = 200 * time.Millisecond
	// gatheredBytes is how much may be gathered; more in that time is left out.
	gatheredBytes = 64 << 10
)

// markFilter takes the lines with a mark out of what a program prints. It never fails. The
// goroutine of one flow writes.
type markFilter struct {
	to    io.Writer
	found func(wire.ProgressRequest)
	// line is the beginning of a line that may be one with a mark. within: the line is none.
	line   []byte
	within bool
}

// Write passes everything on but lines with a mark.
func (f *markFilter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		part := rest
		if end > 0 {
			part = rest[:end]
		}
		rest = rest[len(part):]
		f.take(part, end > 0)
	}
	return len(p), nil
}

// take takes the next part of a line; ends says that it is the last one.
func (f *markFilter) take(part []byte, ends bool) {
	if f.within {
		_, _ = f.to.Write(part) // never fails
		f.within = !ends
		return
	}
	f.line = append(f.line, part...)
	n := min(len(f.line), len(mark))
	if string(f.line[:n]) == mark[:n] && !ends && len(f.line) <= passedLineBytes {
		return // it may become one
	}
	if p, ok := parseMark(f.line); ok && ends {
		f.found(p)
	} else {
		_, _ = f.to.Write(f.line) // never fails
		f.within = !ends
	}
	f.line = f.line[:0]
}

func (f *markFilter) end() {
	if p, ok := parseMark(f.line); ok {
		f.found(p)
	} else if len(f.line) > 0 {
		_, _ = f.to.Write(f.line) // never fails
	}
	f.line = nil
}

// parseMark reads a line with a mark: percent, a note, or both.
func parseMark(line []byte) (p wire.ProgressRequest, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), mark)
	text = strings.TrimSpace(text)
	if !ok || text == "" || !utf8.ValidString(text) {
		return p, false
	}
	first, rest, _ := strings.Cut(text, " ")
	if n, isNumber := wire.ParseInteger(strings.TrimSuffix(first, "%")); isNumber && n >= 0 && n <= 100 {
		p.Percent, p.HasPercent, text = int(n), true, strings.TrimSpace(rest)
	}
	p.Note = wire.Head(text, wire.MaxNoteBytes)
	return p, true
}

// sender sends what a program prints to the server, whole lines if it can. The goroutine of one
// flow writes, and a timer sends.
type sender struct {
	delivery client.Delivery
	stream   string

	mu      sync.Mutex
	text    []byte
	leftOut int
	timer   *time.Timer
}

// Write gathers.
func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := min(len(p), gatheredBytes-len(s.text))
	s.text = append(s.text, p[:keep]...)
	s.leftOut += len(p) - keep
	if s.timer == nil {
		s.timer = time.AfterFunc(sendFor, func() { s.send(false) })
	}
	return len(p), nil
}

// send sends the lines that are whole, or all.
func (s *sender) send(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	n := bytes.LastIndexByte(s.text, '\n') + 1
	if all || s.leftOut > 0 {
		n = len(s.text)
	}
	text := strings.ToValidUTF8(string(s.text[:n]), "\uFFFD")
	s.text = append([]byte(nil), s.text[n:]...)
	if s.leftOut > 0 {
		text += fmt.Sprintf("\ncodeq: %d more bytes are left out\n", s.leftOut)
		s.leftOut = 0
	}
	for text != "" {
		head := wire.Head(text, wire.MaxOutputBytes)
		s.delivery.Output(s.stream, head)
		text = text[len(head):]
	}
}

func (s *sender) end() {
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.send(true)
}
