//go:build unix && !clientonly

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"codeq/client"
	"codeq/wire"
)

const (
	// reasonBytes is how much of the end of standard error goes with the reason.
	reasonBytes = wire.MaxErrorBytes
	// blankSlackBytes is how much white space around a result is accepted.
	blankSlackBytes = 64 << 10
)

// output keeps what a program prints, up to the size of a result. The goroutine
// that copies the pipe writes; overflow is closed when the limit is passed, and
// nothing is kept after that.
type output struct {
	data     []byte
	overflow chan struct{}
	over     bool
}

func newOutput() *output { return &output{overflow: make(chan struct{})} }

// Write never fails, so that a program is not disturbed in what it prints.
func (o *output) Write(p []byte) (int, error) {
	if o.over {
		return len(p), nil
	}
	o.data = append(o.data, p...)
	if len(o.data) > wire.MaxResultBytes &&
		(len(bytes.TrimSpace(o.data)) > wire.MaxResultBytes || len(o.data) > wire.MaxResultBytes+blankSlackBytes) {
		o.over = true
		o.data = nil
		close(o.overflow)
	}
	return len(p), nil
}

// tail keeps the end of what a program prints on standard error. The goroutine
// that copies the pipe writes; it has ended when the program has been waited for.
type tail struct{ data []byte }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	// A few bytes more than needed, so that the cut can fall between
	// characters and white space at the end costs nothing.
	const keep = 2 * reasonBytes
	t.data = append(t.data, p[max(0, len(p)-keep):]...)
	if extra := len(t.data) - keep; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

// behind is why the program was ended, followed by its last output, if any.
func (t *tail) behind(why string) string {
	before := why + "; its last output: "
	if said := t.within(reasonBytes - len(before)); said != "" {
		return before + said
	}
	return why
}

// reason is the last output, or instead if there is none.
func (t *tail) reason(instead string) string { return cmp.Or(t.within(reasonBytes), instead) }

// within is the last line of the output, which is mostly why a program fails, then an
// empty line and the end of the output before it, together at most that many bytes.
func (t *tail) within(most int) string {
	text := strings.TrimPrefix(strings.ToValidUTF8(string(t.data), "\uFFFD"), wire.ByteOrderMark)
	// What is cut may begin within a character.
	text = strings.TrimLeft(strings.TrimSpace(text), "\uFFFD")
	at := strings.LastIndexAny(text, "\r\n")
	last, rest := strings.TrimSpace(text[at+1:]), strings.TrimSpace(text[:max(at, 0)])
	if len(last) > wire.MaxLineErrorBytes {
		last, rest = wire.Head(last, wire.MaxLineErrorBytes), text
	}
	const between = "\n\n"
	if rest == "" {
		return last
	}
	return last + between + wire.Tail(rest, most-len(last)-len(between))
}

// maxPipeBytes is the most that a pipe holds, unless a privileged process made it larger.
const maxPipeBytes = 1 << 20

// flow reads the output of a program from a pipe. That of os/exec drops what it has not
// read when its time is over; on a busy machine that was the whole result of a program
// that had ended well.
type flow struct {
	from *os.File
	to   io.Writer
	also []listener
	done chan struct{}
}

// newFlow starts to copy into to and the listeners, which never fail; what lines with a mark say
// goes to found instead, unless that is nil. The program gets the other end of the pipe, and the caller closes its own descriptor of it.
func newFlow(to io.Writer, also []listener, found func(wire.ProgressRequest)) (*flow, *os.File, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	for _, l := range also {
		to = io.MultiWriter(to, l)
	}
	if found != nil {
		filter := &markFilter{to: to, found: found}
		to, also = filter, append([]listener{filter}, also...)
	}
	f := &flow{from: from, to: to, also: also, done: make(chan struct{})}
	go f.run()
	return f, end, nil
}

// run ends after the last byte when no process holds the other end any more, or when the
// deadline is over and the pipe is empty.
func (f *flow) run() {
	defer close(f.done)
	if _, err := io.Copy(f.to, f.from); err != nil {
		f.rest()
	}
}

// rest reads what is in the pipe now, and does not wait for more. The output of the program
// is there; a process that it started and left may print for ever.
func (f *flow) rest() {
	pipe, err := f.from.SyscallConn()
	if err == nil {
		err = f.from.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return // then it is no pipe, and nothing is lost
	}
	part := make([]byte, 64<<10)
	for taken := 0; taken < maxPipeBytes; {
		n, failed := 0, error(nil)
		if pipe.Read(func(fd uintptr) bool {
			n, failed = syscall.Read(int(fd), part)
			return true
		}) != nil {
			return
		}
		switch {
		case n > 0:
			_, _ = f.to.Write(part[:n]) // never fails
			taken += n
		case !errors.Is(failed, syscall.EINTR):
			return
		}
	}
}

// finishAll waits at most that long for the other ends to be closed. After it returns
// nothing is written to the targets.
func finishAll(flows []*flow, within time.Duration) {
	deadline := time.Now().Add(within)
	for _, f := range flows {
		_ = f.from.SetReadDeadline(deadline) // it fails only for what is no pipe
		<-f.done
		_ = f.from.Close() // it was read to its end
		for _, l := range f.also {
			l.end()
		}
	}
}

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
	send    bool
}

// to makes the listeners of one run.
func (l *listening) to(d client.Delivery) (out, errs []listener) {
	t := d.Task
	if l.send {
		out = append(out, &sender{delivery: d, stream: wire.StreamOut})
		errs = append(errs, &sender{delivery: d, stream: wire.StreamErr})
	}
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
