package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"codeq/wire"
)

const (
	// logBytes is how much of one stream of one run is kept in its file.
	logBytes = 8 << 20
	// passedLineBytes is where a longer line of a program is passed on in parts.
	passedLineBytes = 1 << 10
)

// listener gets a copy of what a run prints. It never fails and never blocks. The goroutine
// of one flow writes; end comes after the last write.
type listener interface {
	io.Writer
	end()
}

// listening makes the listeners that the flags of a worker ask for.
type listening struct {
	app     *app
	dir     string // "" for no files
	verbose bool
}

// to makes the listeners of one run.
func (l *listening) to(t *wire.Task) (out, errs []listener) {
	if l.dir != "" {
		name := filepath.Join(l.dir, fmt.Sprintf("%s.%d", t.ID, t.Deliveries))
		out = append(out, &runLog{app: l.app, name: name + ".out"})
		errs = append(errs, &runLog{app: l.app, name: name + ".err"})
	}
	if l.verbose {
		errs = append(errs, &passed{app: l.app, id: t.ID})
	}
	return out, errs
}

// runLog is the file of one stream of one run, made with its first byte.
type runLog struct {
	app     *app
	name    string
	file    *os.File
	kept    int
	leftOut int64
	failed  bool
}

// Write keeps the beginning.
func (r *runLog) Write(p []byte) (int, error) {
	keep := min(len(p), logBytes-r.kept)
	r.kept += keep
	r.leftOut += int64(len(p) - keep)
	r.write(p[:keep])
	return len(p), nil
}

func (r *runLog) write(p []byte) {
	if r.failed || len(p) == 0 {
		return
	}
	var err error
	if r.file == nil {
		r.file, err = os.OpenFile(r.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err == nil {
		_, err = r.file.Write(p)
	}
	if err != nil {
		r.failed = true
		r.app.complain("%s cannot be written, and no file gets the further output of this run: %s", r.name, err)
	}
}

func (r *runLog) end() {
	if r.leftOut > 0 {
		r.write(fmt.Appendf(nil, "\ncodeq: %d more bytes are left out\n", r.leftOut))
	}
	if r.file != nil {
		_ = r.file.Close() // a failed write was said
	}
}

// passed prints the lines of a program, each after the id of its task.
type passed struct {
	app  *app
	id   wire.TaskID
	line []byte
}

// Write passes on each line that has ended.
func (l *passed) Write(p []byte) (int, error) {
	l.line = append(l.line, p...)
	for {
		end := bytes.IndexByte(l.line[:min(len(l.line), passedLineBytes)], '\n')
		switch {
		case end >= 0:
			l.pass(l.line[:end])
			l.line = l.line[end+1:]
		case len(l.line) > passedLineBytes:
			l.pass(l.line[:passedLineBytes])
			l.line = l.line[passedLineBytes:]
		default:
			l.line = bytes.Clone(l.line) // without what was passed on
			return len(p), nil
		}
	}
}

func (l *passed) end() {
	if len(l.line) > 0 {
		l.pass(l.line)
	}
}

func (l *passed) pass(line []byte) {
	text := strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\uFFFD")
	fmt.Fprintf(l.app.err, "%s  %s\n", l.id, printable(text))
}
