package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/internal/server"
)

// house is a server inside the test, and command lines for it.
type house struct {
	t   *testing.T
	url string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return houseOf(t, server.Options{
		DataDir: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "of the test",
	})
}

// houseOf serves with those options until the test ends.
func houseOf(t *testing.T, o server.Options) *house {
	t.Helper()
	s, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("stop the server: %v", err)
		}
		if err := s.Serve(); err != nil {
			t.Error(err)
		}
	})
	return &house{t: t, url: s.Addr()}
}

func (h *house) run(input string, args ...string) (code int, out, err string) {
	return codeq(input, toServer(h.url, args)...)
}

// fine runs a command that must succeed and returns what it printed.
func (h *house) fine(args ...string) string {
	h.t.Helper()
	code, out, err := h.run("", args...)
	if code != exitFine {
		h.t.Fatalf("%q: exit code %d, errors %q", args, code, err)
	}
	return strings.TrimSuffix(out, "\n")
}

// has fails unless every part is in text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}

// background is a worker in the background.
type background struct {
	*terminal
	t    *testing.T
	ends chan int
}

func (h *house) work(args ...string) *background {
	h.t.Helper()
	c := &background{terminal: newTerminal(""), t: h.t, ends: make(chan int, 1)}
	go func() { c.ends <- run(append([]string{"--url", h.url, "work"}, args...), c.app) }()
	c.err.await(h.t, "Ctrl-C stops")
	return c
}

// stop is one Ctrl-C, after which the worker must end well.
func (c *background) stop() {
	c.t.Helper()
	c.stops <- os.Interrupt
	if code := <-c.ends; code != exitFine {
		c.t.Errorf("the worker ended with exit code %d, errors %q", code, c.err)
	}
}

func TestTaskIsPostedWorkedOnAndRead(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "hash", `{"b":1, "a":12345678901234567890}`)
	has(t, h.fine("task", id), "PENDING", "0 of 5", `{"b":1, "a":12345678901234567890}`)
	has(t, h.fine("queues"), "hash     1      0")
	code, out, err := h.run("", "result", id)
	if code != exitAgain || out != "" {
		t.Errorf("a result before there is one: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "result_not_found")

	w := h.work("hash", "--window", "2", "--", "cat")
	for shown := ""; !strings.Contains(shown, "live"); shown = h.fine("sessions") {
		runtime.Gosched() // until it has subscribed
	}
	has(t, h.fine("sessions"), "SESSION", "anonymous", "live", "2       hash")
	has(t, h.fine("result", id, "--wait", "30s"), "COMPLETED", `{"b":1, "a":12345678901234567890}`)
	has(t, h.fine("enqueue", "hash", `"text"`, "--wait", "30s"), "COMPLETED", `{"output":"\"text\""}`)
	has(t, h.fine("task", id), "COMPLETED", "deliveries  1")
	w.stop()
	has(t, w.err.String(), id+"  hash  attempt 1 of 5 begins\n", id+"  hash  attempt 1 of 5 completed in ", "getting no more tasks")
	if w.out.String() != "" {
		t.Errorf("the worker printed %q on standard output", w.out)
	}
	has(t, h.fine("queues"), "hash     0      0        0            0")
}

func TestAnswersInJSONAreJSON(t *testing.T) {
	h := newHouse(t)
	parse := func(text string) map[string]any {
		t.Helper()
		var parsed map[string]any
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			t.Errorf("%q is not JSON: %v", text, err)
		}
		return parsed
	}
	id, _ := parse(h.fine("enqueue", "hash", "1", "--json"))["id"].(string)
	if got := parse(h.fine("task", id, "--json")); got["id"] != id || got["payload"] != "1" {
		t.Errorf("task %v", got)
	}
	if got := parse(h.fine("queues", "--json")); len(got["queues"].([]any)) != 1 {
		t.Errorf("queues %v", got)
	}
	if got := parse(h.fine("sessions", "--json")); len(got["sessions"].([]any)) != 0 {
		t.Errorf("sessions %v", got)
	}
	if got := parse(h.fine("version", "--json")); got["server"] != "of the test" {
		t.Errorf("version %v", got)
	}
	w := h.work("hash", "--json", "--", "cat")
	if got := parse(h.fine("result", id, "--json", "--wait", "30s")); got["result"] == nil || got["task"] == nil {
		t.Errorf("result %v", got)
	}
	w.stop()
	if got := parse(w.out.String()); got["taskId"] != id || got["outcome"] != "completed" || got["delivery"] != 1.0 {
		t.Errorf("line of the worker %v", got)
	}
}

func TestPayloadMayComeFromStandardInput(t *testing.T) {
	h := newHouse(t)
	code, id, err := h.run(" {\n \"a\": 1 }\n", "enqueue", "hash")
	if code != exitFine {
		t.Fatalf("exit code %d, errors %q", code, err)
	}
	var task struct{ Payload string }
	if err := json.Unmarshal([]byte(h.fine("task", strings.TrimSpace(id), "--json")), &task); err != nil {
		t.Fatal(err)
	}
	if task.Payload != "{\n \"a\": 1 }" {
		t.Errorf("payload %q", task.Payload)
	}
}

func TestFlagsOfATaskArriveAtTheServer(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "hash", "1", "--priority", "7", "--max-attempts", "9", "--delay", "1h")
	has(t, h.fine("task", id), "priority    7", "0 of 9", "delayed", "due ")
	at := time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04:05")
	id = h.fine("enqueue", "hash", "1", "--run-at", at+"Z")
	has(t, h.fine("task", id, "--json"), `"visibleAt":"`+at+`.000Z"`)

	id = h.fine("enqueue", "hash", "1", "--timeout", "1m30s", "--ttl", "2h")
	has(t, h.fine("task", id, "--json"), `"timeoutSeconds":90`, `"expiresAt":`)
	has(t, h.fine("task", id), "expires ")
	id = h.fine("enqueue", "hash", "1", "--expires-at", at+"Z")
	has(t, h.fine("task", id, "--json"), `"expiresAt":"`+at+`.000Z"`)

	id = h.fine("enqueue", "hash", "1", "--key", "once")
	code, again, err := h.run("", "enqueue", "hash", "1", "--key", "once")
	if code != exitFine || again != id+"\n" {
		t.Errorf("the key made another task: exit code %d, %q and %q", code, id, again)
	}
	oneSentence(t, err, "existed already")
	code, _, err = h.run("", "enqueue", "hash", "2", "--key", "once")
	if code != exitFailed {
		t.Errorf("another payload with the key: exit code %d, want 1", code)
	}
	oneSentence(t, err, "idempotency_conflict")
}

func TestFileOfLinesMakesEachTaskOnce(t *testing.T) {
	h := newHouse(t)
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	path := fileOf(t, text.String())
	if got, want := h.fine("enqueue", "hash", "--file", path, "--run", "r"), path+": 1000 new tasks"; got != want {
		t.Errorf("the first time says %q, want %q", got, want)
	}
	again := ": 0 new tasks, 1000 lines that had a task from this run"
	if got, want := h.fine("enqueue", "hash", "--file", path, "--run", "r"), path+again; got != want {
		t.Errorf("the second time says %q, want %q", got, want)
	}
	code, out, err := h.run(text.String(), "enqueue", "hash", "--file", "-", "--run", "r")
	if want := "standard input" + again + "\n"; code != exitFine || out != want || err != "" {
		t.Errorf("from standard input: exit code %d, %q, errors %q, want %q", code, out, err, want)
	}
	if code, _, err := h.run("{}\n", "enqueue", "one", "-"); code != exitFine || err != "" {
		t.Errorf("one task from standard input: exit code %d, errors %q", code, err)
	}
	has(t, h.fine("queues"), "hash     1000")
	has(t, h.fine("enqueue", "hash", "--file", path, "--no-key"), "1000 new tasks")
	has(t, h.fine("queues"), "hash     2000")
}

func TestBadLinesAreNamedAndTheOthersGo(t *testing.T) {
	h := newHouse(t)
	path := fileOf(t, "1\n\nhello\n\"two\"\n{\"a\":1}}\n"+strings.Repeat("x", maxLineBytes+1)+"\n3")
	code, out, err := h.run("", "enqueue", "hash", "--file", path)
	if want := path + ": 3 new tasks, 3 lines failed\n"; code != exitFailed || out != want {
		t.Errorf("exit code %d, %q, want 1 and %q", code, out, want)
	}
	has(t, err, "codeq: line 3: payload hello: not JSON", "codeq: line 5: ", "codeq: line 6: the payload is too large")
	_, name, _ := strings.Cut(err, "codeq: continue with --run ")
	name, _, _ = strings.Cut(name, ":")
	if strings.Count(err, "\n") != 4 || name == "" {
		t.Fatalf("errors %q, want three lines and how to go on", err)
	}
	code, out, _ = h.run("", "enqueue", "hash", "--file", path, "--json", "--run", name)
	has(t, out, `{"line":1,"taskId":"`, `"replayed":true}`, `{"line":3,"error":"payload hello: not JSON`,
		`"code":"invalid_body"}`, `"code":"too_large"}`, `{"created":0,"replayed":3,"failed":3,"unknown":0,"run":"`+name+`"}`)
	if code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
}

func TestFileOfLinesMayBeWaitedFor(t *testing.T) {
	h := newHouse(t)
	w := h.work("hash", "--window", "4", "--", "/bin/sh", "-c", `read x; [ "$x" = 13 ] && exit 65; printf '{"was":%s}' "$x"`)
	code, out, err := h.run("", "enqueue", "hash", "--file", fileOf(t, "11\n12\n13\n14"), "--wait", "30s")
	has(t, out, "4 new tasks", `{"was":11}`, `{"was":12}`, `{"was":14}`, "FAILED", "exit status 65")
	if code != exitFailed || strings.Count(err, "is FAILED") != 1 {
		t.Errorf("exit code %d, errors %q, want 1 and one FAILED", code, err)
	}
	w.stop()
}

func TestProgramThatFailsIsTriedAgainUntilItIsDead(t *testing.T) {
	h := newHouse(t)
	w := h.work("hash", "--", "/bin/sh", "-c", `echo "broken in $CODEQ_ATTEMPTS" >&2; exit 3`)
	id := h.fine("enqueue", "hash", "1", "--max-attempts", "1")
	code, out, err := h.run("", "result", id, "--wait", "30s")
	has(t, out, "FAILED", "broken in 0")
	if code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
	oneSentence(t, err, "is FAILED")
	w.stop()
	has(t, w.err.String(), "attempt 1 of 1 failed in ", ", dead letter: broken in 0\n")
	has(t, h.fine("queues"), "hash     0      0        0            1")
}

func TestSecondStopEndsTheProgramsAndHandsTheTasksBack(t *testing.T) {
	h := newHouse(t)
	watch := newWatcher(t)
	w := h.work("hash", "--", "/bin/sh", "-c", fakes["hold"], "sh", watch.path)
	id := h.fine("enqueue", "hash", "1")
	waits := h.fine("enqueue", "hash", "2")
	_, ended := watch.running()
	w.stops <- os.Interrupt
	w.err.await(t, "Ctrl-C again ends them")
	select {
	case code := <-w.ends:
		t.Errorf("the worker ended with exit code %d while a program runs", code)
	default:
	}
	time.Sleep(echoFor) // what comes sooner is the first stop again
	w.stops <- os.Interrupt
	ended()
	if code := <-w.ends; code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
	has(t, w.err.String(), id+"  hash  attempt 1 of 5 handed back in ", "waiting for the running programs (1)", "stopped before the running programs had ended (1)")
	has(t, h.fine("task", id), "PENDING", "failed      0 of 5", "deliveries  1")
	has(t, h.fine("task", waits), "PENDING", "deliveries  0")
}

func TestWhoStopsWaitingIsNotToldThatNobodyAnswers(t *testing.T) {
	h := newHouse(t)
	id := strings.TrimSpace(h.fine("enqueue", "hash", "1"))
	for _, words := range [][]string{{"result", id, "--wait", "30s"}, {"claim", "other", "--wait", "30s"}} {
		tt := newTerminal("")
		code := make(chan int, 1)
		go func() { code <- run(append([]string{"--url", h.url}, words...), tt.app) }()
		tt.stops <- os.Interrupt
		if got := <-code; got != exitFailed {
			t.Errorf("%s: exit code %d, want 1", words[0], got)
		}
		oneSentence(t, tt.err.String(), "stopped by interrupt")
	}
}

func TestStoppedEnqueueSaysWhatBecameOfTheLines(t *testing.T) {
	h := newHouse(t)
	tt := newTerminal("")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	tt.app.in = reader
	code := make(chan int, 1)
	go func() { code <- run([]string{"--url", h.url, "enqueue", "hash"}, tt.app) }()
	tt.stops <- os.Interrupt // while it waits for standard input
	if got := <-code; got != exitFailed {
		t.Errorf("exit code %d, want 1", got)
	}
	oneSentence(t, tt.err.String(), "stopped by interrupt")
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
}

// A wait that is over says why the task waits, and its id once.
func TestWaitWithoutAResultSaysWhyTheTaskWaits(t *testing.T) {
	h := newHouse(t)
	code, _, err := h.run("", "enqueue", "hash", "1", "--wait", "1ms")
	if code != exitAgain {
		t.Errorf("exit code %d, want %d", code, exitAgain)
	}
	oneSentence(t, err, "codeq: it is posted: task ")
	oneSentence(t, err, " has no result yet, it is PENDING, no_worker: no worker is subscribed to this queue")
	id, _, _ := claimed(t, h.fine("claim", "hash", "--name", "box-7"))
	_, _, err = h.run("", "result", id)
	oneSentence(t, err, "codeq: task "+id+" has no result yet, it is IN_PROGRESS, worker box-7 (result_not_found)")
	code, _, err = h.run("", "enqueue", "other", "--file", fileOf(t, "1\n"), "--wait", "1ms")
	if code != exitAgain || strings.Count(err, "has no result yet") != 1 || strings.Count(err, "task 01") != 1 {
		t.Errorf("of a file: exit code %d, %s", code, err)
	}
}

// What the server refuses is said in the words of the command line, and whose ttl it is.
func TestRefusalsNameFlags(t *testing.T) {
	h := newHouse(t)
	h.fine("queue", "set", "mail", "--create", "--ttl", "1m")
	const want = "give an --expires-at or --ttl that ends later, or an earlier --run-at or --delay"
	const whose = `; its ttl is that of the queue, which "codeq queue show mail" shows`
	for _, own := range []bool{false, true} {
		args := []string{"enqueue", "mail", "1", "--delay", "1h"}
		if own {
			args = append(args, "--ttl", "2m")
		}
		code, _, err := h.run("", args...)
		if code != exitWrong || strings.Contains(err, whose) == own {
			t.Errorf("%q ends with %d: %s", args, code, err)
		}
		oneSentence(t, err, want)
	}
	_, _, err := h.run("", "enqueue", "mail", "--file", fileOf(t, "1\n"), "--delay", "1h")
	has(t, err, want+whose)
	has(t, h.fine("queue", "set", "mail", "--ttl", "0"), "ttl                for ever (server)")
	h.fine("enqueue", "mail", "1", "--delay", "1h")
	_, page, _ := codeq("", "queue", "set", "--help")
	has(t, page, "--ttl 0 and --timeout 0 switch them off")
}
