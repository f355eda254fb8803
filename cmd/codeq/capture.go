package main

import (
	"bytes"
	"cmp"
	"strings"

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
