package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// fakes are programs for a worker, by name, in the language of sh. Those that
// get a watcher's file report to it: they open it as number 3 and write their
// process number.
var fakes = map[string]string{
	"print":       `printf %s "$1"`,
	"cat":         `cat`,
	"environment": `printf '%s %s %s %s ' $CODEQ_TASK_ID $CODEQ_COMMAND $CODEQ_ATTEMPTS $CODEQ_DELIVERY; printf '%s %s ' "$CODEQ_TRACEPARENT" "$CODEQ_TRACESTATE"; ps -o pgid= -p $$ | grep -qw $$ && printf leader`,
	"exit":        `printf %s "$2" >&2; exit $1`,
	"die":         `kill -9 $$`,
	"by":          `kill -$1 $$; sleep 1000`,
	"flood":       `yes`,
	"hold":        `exec 3>"$1"; echo $$ >&3; exec sleep 1000`,
	"parent":      `sh -c 'exec 3>"$1"; echo $$ >&3; exec sleep 1000' - "$1"; :`,
	"stubborn":    `trap '' TERM; exec 3>"$1"; echo $$ >&3; while :; do sleep 1000; done`,
	"polite":      `trap 'printf "{\"stopped\":true}"; exit 0' TERM; exec 3>"$1"; echo $$ >&3; ` + waits,
	"mute":        `trap 'printf "$2"; exit $3' TERM; exec 3>"$1"; echo $$ >&3; ` + waits,
	"orphan":      `kill -9 $PPID; printf "{}"`,
	"freeze":      `exec 3>"$1"; echo $$ >&3; kill -STOP $PPID; printf "{}"`,
	"leave":       `printf '{"left":true}'; sh -c 'exec 3>"$1"; echo $$ >&3; exec sleep 1000' - "$1" &`,
}

// waits lets a shell heed its traps soon. A signal that comes between two commands is
// heeded only behind the next one, so none may take long. Of the death of a command by
// TERM a shell says "Terminated".
const waits = `while :; do sleep 0.05; done 2>/dev/null`

func fake(name string, args ...string) *program {
	words := append([]string{"-c", fakes[name], "sh"}, args...)
	return &program{
		path: "/bin/sh", args: words, termFor: 30 * time.Second, pipeFor: 30 * time.Second,
		stallFor: 30 * time.Second, verdictFor: time.Millisecond, never: make(chan error, 1), say: func(string, ...any) {}, begins: func(*wire.Task) {}, listen: nobodyListens,
	}
}

// watcher is where programs report to: a named pipe.
type watcher struct {
	t    *testing.T
	path string
}

func newWatcher(t *testing.T) *watcher {
	t.Helper()
	w := &watcher{t: t, path: filepath.Join(t.TempDir(), "watcher")}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// running waits for a program to report. The returned function waits until
// nobody of those who reported lives any more. Both take a minute at most.
func (w *watcher) running() (pid int, ended func()) {
	w.t.Helper()
	writer, err := os.OpenFile(w.path, os.O_RDWR, 0) // with one of ours there is no end before the program's
	if err != nil {
		w.t.Fatal(err)
	}
	pipe, err := os.OpenFile(w.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Fscanln(pipe, &pid); err != nil {
		w.t.Fatalf("no program reports: %v", err)
	}
	if err := writer.Close(); err != nil {
		w.t.Error(err)
	}
	return pid, func() {
		w.t.Helper()
		if err := pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			w.t.Error(err)
		}
		if _, err := pipe.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			w.t.Errorf("the program %d goes on, or one of its group: %v", pid, err)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
		}
		if err := pipe.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func delivery(payload string) client.Delivery {
	return client.Delivery{Task: &wire.Task{
		ID: wire.TaskID{15: 7}, Command: "hash", Payload: []byte(payload), Attempts: 2, Deliveries: 3, TraceParent: "00-1", TraceState: "a=b",
	}}
}

// outcome is an outcome as one line.
func outcome(o client.Outcome) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s%s", o.Kind, o.Result, o.Reason))
}

func TestProgramsEndTheirTasks(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", 100_000) + `"}`
	for name, c := range map[string]struct {
		payload string
		args    []string
		want    string
	}{
		"an object is the result":   {args: []string{"print", " {\"b\":1, \"a\":12345678901234567890}\n"}, want: `completed {"b":1, "a":12345678901234567890}`},
		"text is put into output":   {args: []string{"print", "one\n\"two\"\n\n"}, want: `completed {"output":"one\n\"two\"\n"}`},
		"an array is text":          {args: []string{"print", "[1]"}, want: `completed {"output":"[1]"}`},
		"two objects are text":      {args: []string{"print", "{}{}"}, want: `completed {"output":"{}{}"}`},
		"N16 a mark is no text":     {args: []string{"print", "\ufeff{\"a\":1}\r\n"}, want: `completed {"a":1}`},
		"N16 nor is a CR at an end": {args: []string{"print", "\ufeffone\r\ntwo\r\n"}, want: `completed {"output":"one\r\ntwo"}`},
		"N16 a mark in an error":    {args: []string{"exit", "3", "\ufeffbusy\r\n"}, want: "nacked busy"},
		"nothing is text":           {args: []string{"print", ""}, want: `completed {"output":""}`},
		"not UTF-8":                 {args: []string{"print", "\xff"}, want: "nacked the output is not UTF-8 text"},
		"the payload is its input":  {payload: large, args: []string{"cat"}, want: "completed " + large},
		"the input is left unread":  {payload: large, args: []string{"print", "{}"}, want: "completed {}"},
		"the environment":           {args: []string{"environment"}, want: `completed {"output":"00000000-0000-0000-0000-000000000007 hash 2 3 00-1 a=b leader"}`},
		"65 is for good":            {args: []string{"exit", "65", "no such file\n"}, want: "failed no such file"},
		"65 without a word":         {args: []string{"exit", "65"}, want: "failed exit status 65"},
		"any other status":          {args: []string{"exit", "3", "busy"}, want: "nacked busy"},
		"a status without a word":   {args: []string{"exit", "3", " \n"}, want: "nacked exit status 3"},
		"a signal":                  {args: []string{"die"}, want: "nacked signal: killed"},
		"only the end of the words": {args: []string{"exit", "1", strings.Repeat("€", 5000) + "\nno luck"}, want: "nacked no luck\n\n" + strings.Repeat("€", 2727)},
		"more than a result holds":  {args: []string{"flood"}, want: "nacked the output is longer than the limit of 1048576 bytes for a result"},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(fake(c.args[0], c.args[1:]...).work(context.Background(), delivery(c.payload)))
			if got != c.want {
				t.Errorf("got %.200q, want %.200q", got, c.want)
			}
		})
	}
}

// TestN03: what says nothing about the task is not charged to it, and what can
// never be started is told at the first time, and not once a program has run.
func TestN03ProgramThatCannotBeStartedHandsBack(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "gone"):                               "no such file or directory",
		file("plain", "#!/bin/sh\n", 0o600):                      "permission denied",
		file("interpreter", "#!/no/such/interpreter\n", 0o700):   "no such file or directory",
		file("format", "no program of this system\n", 0o700):     "exec format error",
		filepath.Join(file("file", "", 0o600), "below the file"): "not a directory",
	} {
		for _, begun := range []bool{false, true} {
			p := fake("cat")
			p.path = path
			p.begun.Store(begun)
			o := p.work(context.Background(), delivery("1"))
			if got := outcome(o); got != "released start "+path+": "+want {
				t.Errorf("got %q, want %s", got, want)
			}
			if never := len(p.never) == 1; never == begun {
				t.Errorf("%s: begun %t, and it can never begin: %t", want, begun, never)
			}
		}
	}
	p := fake("cat")
	p.path = filepath.Join(dir, strings.Repeat("x", 1000))
	if got := outcome(p.work(context.Background(), delivery("1"))); !strings.HasSuffix(got, "file name too long") {
		t.Errorf("got %q", got)
	}
	for number, want := range map[syscall.Errno]bool{
		syscall.EMFILE: false, syscall.ENFILE: false, syscall.ENOMEM: false, syscall.EAGAIN: false, syscall.ENOSPC: false,
		syscall.ETXTBSY: false, syscall.ENOENT: true, syscall.ENOEXEC: true,
	} {
		if lasting(number) != want {
			t.Errorf("%v: lasting is %t", number, !want)
		}
	}
}

func TestProgramIsToldToEndWhenItsDeliveryIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		args    []string
		cause   error
		want    string
	}{
		"lost":                      {"hold", nil, client.ErrLeaseLost, "nacked signal: terminated"},
		"stopped":                   {"hold", nil, client.ErrStopping, "released"},
		"stopped and it completes":  {"polite", nil, client.ErrStopping, `completed {"stopped":true}`},
		"lost and it still is done": {"polite", nil, client.ErrLeaseLost, `completed {"stopped":true}`},
		// Status 0 of a program that was told to end says that it heeded that.
		"N01 lost, and it prints nothing":    {"mute", []string{"", "0"}, client.ErrLeaseLost, "nacked exit status 0"},
		"N01 lost, and it prints text":       {"mute", []string{"half", "0"}, client.ErrLeaseLost, "nacked exit status 0"},
		"N01 lost, and it fails for good":    {"mute", []string{"{}", "65"}, client.ErrLeaseLost, "nacked exit status 65"},
		"N01 stopped, and it prints nothing": {"mute", []string{"", "0"}, client.ErrStopping, "released"},
		"N01 stopped, and it prints text":    {"mute", []string{"half", "0"}, client.ErrStopping, "released"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan string, 1)
			p := fake(c.program, append([]string{w.path}, c.args...)...)
			go func() { done <- outcome(p.work(ctx, delivery("1"))) }()
			_, ended := w.running()
			cancel(c.cause)
			ended()
			if got := <-done; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestProgramThatIgnoresTermIsKilled(t *testing.T) {
	w := newWatcher(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan string, 1)
	p := fake("stubborn", w.path)
	p.termFor = 100 * time.Millisecond
	go func() { done <- outcome(p.work(ctx, delivery("1"))) }()
	_, ended := w.running()
	began := time.Now()
	cancel(client.ErrLeaseLost)
	ended()
	if got := <-done; got != "nacked signal: killed" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < p.termFor {
		t.Errorf("it was killed after %s, want %s at least", took, p.termFor)
	}
}

func TestProgramThatLeavesSomebodyBehindIsNotWaitedForLong(t *testing.T) {
	w := newWatcher(t)
	p := fake("leave", w.path)
	p.pipeFor = 50 * time.Millisecond
	if got := outcome(p.work(context.Background(), delivery("1"))); got != `completed {"left":true}` {
		t.Errorf("got %q", got)
	}
	pid, ended := w.running()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	ended()
}

// However late it is read, what a program has printed before it ended is all there.
func TestWhatAProgramPrintedIsNotLostWhenTimeIsOver(t *testing.T) {
	want := strings.Repeat("x", 60_000) // a pipe holds it
	for range 20 {
		p := fake("print", want)
		p.pipeFor = time.Nanosecond
		if got := outcome(p.work(context.Background(), delivery("1"))); got != `completed {"output":"`+want+`"}` {
			t.Fatalf("of %d bytes the result has %d", len(want), len(got))
		}
		p = fake("exit", "1", "busy")
		p.pipeFor = time.Nanosecond
		if got := outcome(p.work(context.Background(), delivery("1"))); got != "nacked busy" {
			t.Fatalf("got %q", got)
		}
	}
}

func TestLostLeaseEndsWhatTheProgramStartedToo(t *testing.T) {
	w := newWatcher(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan string, 1)
	p := fake("leave", w.path) // its child holds standard output
	go func() { done <- outcome(p.work(ctx, delivery("1"))) }()
	_, ended := w.running()
	cancel(client.ErrLeaseLost)
	ended()
	<-done
}

func TestProgramIsLookedForBeforeAnyTaskIsTaken(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"no-such-program", plain, t.TempDir(), ""} {
		_, err := findProgram([]string{name})
		var mistake *exitError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), "cannot run") {
			t.Errorf("%q: %v, want a mistake in the command line", name, err)
		}
	}
	p, err := findProgram([]string{"cat", "-u"})
	if err != nil || filepath.Base(p.path) != "cat" || len(p.args) != 1 {
		t.Errorf("cat -u is %+v, %v", p, err)
	}
}

func TestOutputIsKeptUpToTheSizeOfAResult(t *testing.T) {
	blank := strings.Repeat(" ", 1000)
	for name, c := range map[string]struct {
		parts []string
		over  bool
	}{
		"just fits":             {[]string{strings.Repeat("x", wire.MaxResultBytes)}, false},
		"fits but for blanks":   {[]string{blank, strings.Repeat("x", wire.MaxResultBytes), blank}, false},
		"one byte too many":     {[]string{strings.Repeat("x", wire.MaxResultBytes), "x"}, true},
		"blanks without end":    {[]string{strings.Repeat(" ", wire.MaxResultBytes), strings.Repeat(" ", blankSlackBytes+1)}, true},
		"much more than enough": {[]string{strings.Repeat("x", wire.MaxResultBytes+1), blank, "y"}, true},
	} {
		o := newOutput()
		for _, part := range c.parts {
			if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%s: wrote %d of %d, %v", name, n, len(part), err)
			}
		}
		told := false
		select {
		case <-o.overflow:
			told = true
		default:
		}
		if o.over != c.over || told != c.over {
			t.Errorf("%s: over %t, told %t, want %t", name, o.over, told, c.over)
		}
	}
	// Text that grows by its escapes is over the limit only as JSON.
	got := outcome(resultOf([]byte(strings.Repeat("\x01", wire.MaxResultBytes/3))))
	if !strings.HasPrefix(got, "nacked the output has 2097") {
		t.Errorf("got %.100q", got)
	}
}

func TestTailIsTheSameHoweverItIsWritten(t *testing.T) {
	text := strings.Repeat("0123456789€\n", 2000) + "the end"
	whole := &tail{}
	if _, err := whole.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	const last = "the end"
	before := strings.TrimSuffix(text, "\n"+last)
	want := last + "\n\n" + wire.Tail(before, reasonBytes-len(last)-2)
	if got := whole.reason(""); got != want {
		t.Errorf("got %.60q, want %.60q", got, want)
	}
	for size := range 40 {
		pieces := &tail{}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size*97+1, len(rest))
			if _, err := pieces.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := pieces.reason(""); got != want {
			t.Errorf("in pieces of %d: got %.60q, want %.60q", size*97+1, got, want)
		}
	}
}

func TestU06LastLineIsTheReason(t *testing.T) {
	long := strings.Repeat("é", wire.MaxLineErrorBytes)
	for said, want := range map[string]string{
		"":                                      "nothing",
		" \n\r\n":                               "nothing",
		"one\n":                                 "one",
		"begin\nTraceback:\n  f()\nno luck\n\n": "no luck\n\nbegin\nTraceback:\n  f()",
		"10%\r20%\rbroken":                      "broken\n\n10%\r20%",
		long:                                    long[:wire.MaxLineErrorBytes] + "\n\n" + long,
	} {
		e := &tail{}
		if _, err := e.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		if got := e.reason("nothing"); got != want {
			t.Errorf("%.40q: the reason is %.60q, want %.60q", said, got, want)
		}
	}
	e := &tail{data: []byte(strings.Repeat("line\n", 10_000) + "no luck")}
	if got := e.behind("timeout: ended after 5s"); len(got) > wire.MaxErrorBytes || !strings.HasPrefix(got, "timeout: ended after 5s; its last output: no luck\n\n") {
		t.Errorf("%d bytes: %.80q", len(got), got)
	}
}
