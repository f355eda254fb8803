package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codeq/client"
	"codeq/test/blackbox"
)

// ready is how many tasks a queue has.
func (h *house) ready(queue string) int {
	h.t.Helper()
	return strings.Count(h.fine("tasks", queue, "--limit", "1000"), "PENDING")
}

// runOf is the name of the run that a command says how to go on with.
func runOf(t *testing.T, said string) string {
	t.Helper()
	_, name, found := strings.Cut(said, "codeq: continue with --run ")
	name, _, _ = strings.Cut(name, ":")
	if !found || !isRun(name) {
		t.Fatalf("no run is named in %q", said)
	}
	return name
}

func TestN24MendedLineAlonePostsAgain(t *testing.T) {
	h := newHouse(t)
	path := fileOf(t, "{\"n\":1}\n{\"n\":2\n{\"n\":3}\n\n{\"n\":1}")
	code, out, err := h.run("", "enqueue", "q", "--file", path)
	if want := path + ": 3 new tasks, 1 line failed\n"; code != exitFailed || out != want {
		t.Errorf("exit code %d, %q, want %q", code, out, want)
	}
	name := runOf(t, err)
	// Mended, and the lines in another place and with other white space around.
	text := "\ufeff  {\"n\":3}\r\n{\"n\":1} \r\n{\"n\":1}\r\n{\"n\":2}\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := h.fine("enqueue", "q", "--file", path, "--run", name)
	if want := path + ": 1 new task, 3 lines that had a task from this run"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if n := h.ready("q"); n != 4 {
		t.Errorf("%d tasks, want 4", n)
	}
}

func TestN24SameFilePostsAnewInEachRun(t *testing.T) {
	h := newHouse(t)
	path := fileOf(t, "1\n2\n2\n")
	for night := range 3 {
		if got, want := h.fine("enqueue", "q", "--file", path), path+": 3 new tasks"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		if n := h.ready("q"); n != 3*(night+1) {
			t.Errorf("%d tasks after night %d", n, night)
		}
	}
	has(t, h.fine("enqueue", "q", "--file", path, "--json"), `"created":3,"replayed":0,"failed":0,"unknown":0,"run":"`)
	code, out, _ := h.run("1\n", "enqueue", "q", "--file", "-", "--no-key", "--json")
	if code != exitFine || strings.Contains(out, `"run"`) {
		t.Errorf("exit code %d, %q", code, out)
	}
}

// A file that somebody still writes to is read as far as it goes, and what comes
// later is posted by going on.
func TestN24FileThatGrowsPostsEachLineOnce(t *testing.T) {
	path := fileOf(t, "1\n")
	f, err := openLines(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	grow := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 3; n++ {
		if next, err := f.next(); err != nil || string(next.data) != fmt.Sprint(n) || next.number != n {
			t.Fatalf("line %v, %v, want %d", next, err, n)
		}
		if n < 3 {
			grow(fmt.Sprintf("%d\n", n+1))
		}
	}
	if next, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("line %v, %v, want the end", next, err)
	}

	h := newHouse(t)
	h.fine("enqueue", "q", "--file", path, "--run", "log")
	grow("4\n1\n")
	if got, want := h.fine("enqueue", "q", "--file", path, "--run", "log"), path+": 2 new tasks, 3 lines that had a task from this run"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if n := h.ready("q"); n != 5 {
		t.Errorf("%d tasks, want 5", n)
	}
}

// A run that is stopped says how to go on, and going on posts the rest.
func TestN24StoppedRunGoesOn(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &house{t, said.URL}
	pipe := filepath.Join(t.TempDir(), "lines")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--url", said.URL, "--json", "enqueue", "q", "--file", pipe)
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // what was written has been answered
	if _, err := writer.WriteString("1\n2\n"); err != nil {
		t.Fatal(err)
	}
	p.out.await(t, `"line":2`)
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	has(t, p.err.String(), "stopped by interrupt")
	name := runOf(t, p.err.String())
	has(t, p.out.String(), `{"created":2,"replayed":0,"failed":0,"unknown":0,"run":"`+name+`"}`)
	path := fileOf(t, "1\n2\n3\n")
	if got, want := h.fine("enqueue", "q", "--file", path, "--run", name), path+": 1 new task, 2 lines that had a task from this run"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// Answers that can not be printed stop the run, name what it made, and say how to
// see all of it.
func TestN02RunWhoseAnswersAreLostStopsAndSaysHowToGoOn(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &house{t, said.URL}
	path := fileOf(t, strings.Repeat("1\n", 3))
	for name, sink := range sinks {
		out := sink.open(t)
		code, errs := toSink(t, out, said.URL, "--json", "enqueue", "q", "--file", path)
		if err := out.Close(); err != nil || code != exitFailed {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
		has(t, errs, " made task ", sink.says)
		has(t, h.fine("enqueue", "q", "--file", path, "--run", runOf(t, errs), "--json"), `"line":3`, `"failed":0`)
	}
	if n := h.ready("q"); n != 6 {
		t.Errorf("%d tasks, want 6", n)
	}
}

// A file in another encoding, or with the line ends of old systems, is named once
// and nothing of it is posted.
func TestN16FileThatIsNoTextIsNamedOnce(t *testing.T) {
	h := newHouse(t)
	plain := "\n{\"a\":1}\r\n{\"a\":2}\r\n3\r\n"
	texts := map[string]string{
		"\r{\"a\":1}\r{\"a\":2}\r3\r":        "carriage return (CR) alone",
		"1\r" + strings.Repeat("1\r", 1<<20): "carriage return (CR) alone",
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		texts[utf16Of(plain, order)] = "save it as UTF-8"
		texts[utf16Of("\ufeff"+plain, order)] = "save it as UTF-8"
	}
	for text, want := range texts {
		for _, args := range [][]string{{"--file", "-"}, {"--file", fileOf(t, text)}, {"--json", "--file", "-"}} {
			code, out, err := h.run(text, append([]string{"enqueue", "q"}, args...)...)
			if code != exitWrong {
				t.Errorf("%.20q: exit code %d, %q", text, code, out)
			}
			oneSentence(t, err, want)
		}
	}
	if n := strings.Count(h.fine("queues"), "q "); n != 0 {
		t.Error("something was posted")
	}
	has(t, h.fine("enqueue", "q", "--file", fileOf(t, "\ufeff"+plain)), ": 3 new tasks")
	// A carriage return may be white space inside a value.
	has(t, h.fine("enqueue", "q", "--file", fileOf(t, "{\r\"a\":\r1}\n2\r\n")), ": 2 new tasks")
}

// Answers that are withheld when the command is stopped leave lines of which nobody
// knows: they did not fail. What the server took of them, a second run finds.
func TestF02LinesWithoutAnAnswerAreCountedApart(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	h := &house{t, said.URL}
	pipe := filepath.Join(t.TempDir(), "lines")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := blackbox.NewProxy(t, strings.TrimPrefix(said.URL, "http://"))
	p := start(t, "--url", "http://"+proxy.Addr, "--json", "enqueue", "q", "--file", pipe)
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }() // nobody reads it any more
	if _, err := writer.WriteString("0\n"); err != nil {
		t.Fatal(err)
	}
	p.out.await(t, `"line":1`)
	proxy.Hold(blackbox.Down)
	if _, err := writer.WriteString("1\n2\n3\n"); err != nil {
		t.Fatal(err)
	}
	for h.ready("q") < 4 {
	}
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	const unknown = "3 lines without an answer (the server may or may not have accepted them)"
	has(t, p.err.String(), "stopped by interrupt; "+unknown)
	has(t, p.out.String(), `"created":1,"replayed":0,"failed":0,"unknown":3,"run":"`)
	again := h.fine("enqueue", "q", "--file", fileOf(t, "0\n1\n2\n3\n"), "--run", runOf(t, p.err.String()))
	has(t, again, "0 new tasks, 4 lines that had a task from this run")

	tt := newTerminal("")
	b := &bulk{app: tt.app, file: &lineFile{name: "lines"}, unknown: 3}
	if err := b.summary(); err != nil || tt.out.String() != "lines: 0 new tasks, "+unknown+"\n" {
		t.Errorf("it says %q, %v", tt.out.String(), err)
	}
}

// What the command itself made, and was not told of, is no task from before.
func TestF02TaskOfThisCommandIsNew(t *testing.T) {
	repeated := &client.Enqueued{Replayed: true, Repeated: true}
	found := &client.Enqueued{Replayed: true}
	for _, c := range []struct {
		drawn    bool
		enqueued *client.Enqueued
		created  int
	}{{true, found, 1}, {true, repeated, 1}, {false, repeated, 1}, {false, found, 0}} {
		b, e := &bulk{drawn: c.drawn}, *c.enqueued
		next := answer{enqueued: &e}
		b.reword(&next)
		b.count(next)
		if b.created != c.created || b.replayed != 1-c.created {
			t.Errorf("%+v: %d created, %d replayed", c, b.created, b.replayed)
		}
	}
}

// A run that goes on under other flags is told which are at fault, and is not told
// to go on as it did.
func TestF02RunUnderOtherFlagsIsToldSo(t *testing.T) {
	h := newHouse(t)
	path := fileOf(t, "1\n2\n")
	h.fine("enqueue", "q", "--file", path, "--run", "r")
	for _, flags := range [][]string{{"--priority", "3"}, {"--max-attempts", "3"}} {
		code, out, errs := h.run("", append([]string{"enqueue", "q", "--file", path, "--run", "r"}, flags...)...)
		has(t, out, "0 new tasks, 2 lines failed")
		has(t, errs, "line 1: this run has a task of this line with other values, such as another --priority or --max-attempts")
		if code != exitFailed || strings.Contains(errs, "continue with") || strings.Contains(errs, "another key") {
			t.Errorf("%q: exit code %d, errors %q", flags, code, errs)
		}
	}
	mixed := fileOf(t, "1\n{\n")
	_, _, errs := h.run("", "enqueue", "q", "--file", mixed, "--run", "r", "--priority", "3")
	has(t, errs, "continue with --run r")
}
