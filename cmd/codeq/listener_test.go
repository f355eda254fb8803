package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// Each task has a line when it begins and one when it ends, which says what comes
// next in the words of the server.
func TestU08LinesOfAWorkerSayWhichAttemptAndWhatComesNext(t *testing.T) {
	h := newHouse(t)
	h.fine("queue", "set", "hash", "--create", "--backoff", "fixed", "--backoff-base", "1s")
	w := h.work("hash", "--", "/bin/sh", "-c", `echo why >&2; exit 1`)
	id := h.fine("enqueue", "hash", "1", "--max-attempts", "2")
	w.err.await(t, "dead letter")
	for _, want := range []string{
		id + "  hash  attempt 1 of 2 begins\n", id + "  hash  attempt 1 of 2 failed in ", ", again in 1s: why\n",
		id + "  hash  attempt 2 of 2 begins\n", id + "  hash  attempt 2 of 2 failed in ", ", dead letter: why\n",
	} {
		if !strings.Contains(w.err.String(), want) {
			t.Errorf("%q is not in %q", want, w.err)
		}
	}
	w.stop()
	h.fine("dlq", "replay", "hash")
	w = h.work("hash", "--json", "--", "/bin/sh", "-c", `exit 1`)
	w.out.await(t, "\n")
	w.stop()
	var said struct {
		Attempts, MaxAttempts, DelaySeconds int
		DeadLetter                          *bool
	}
	first, _, _ := strings.Cut(w.out.String(), "\n")
	if err := json.Unmarshal([]byte(first), &said); err != nil || said.MaxAttempts != 2 || said.DelaySeconds != 1 || said.DeadLetter == nil {
		t.Errorf("with --json it says %s (%v)", first, err)
	}
}

// The line of a task that failed says why: what its program said last.
func TestLineOfAWorkerShowsTheLastLineOfItsProgram(t *testing.T) {
	h := newHouse(t)
	w := h.work("hash", "--", "/bin/sh", "-c", `printf 'first\nsecond\nlast is why\n' >&2; exit 1`)
	h.fine("enqueue", "hash", "1", "--max-attempts", "1")
	w.err.await(t, ", dead letter: last is why\n")
	w.stop()
}

// The server ends a run that has lasted too long. Its worker says that, and what comes
// next.
func TestLineOfARunThatTheServerEndsNamesItsLimit(t *testing.T) {
	for next, task := range map[string]wire.Task{
		", retried later: why": {Attempts: 0, MaxAttempts: 2, TimeoutSeconds: 2},
		", dead letter: why":   {Attempts: 1, MaxAttempts: 2, TimeoutSeconds: 2},
		"no limit of its own":  {MaxAttempts: 2},
	} {
		tt := newTerminal("")
		(&workerRun{app: tt.app}).taskEnded(client.Ending{
			Task: &task, Outcome: client.Nack("why"), RanFor: 2022 * time.Millisecond,
			Err: fmt.Errorf("%w: %s", client.ErrLeaseLost, wire.RevokedTimeout),
		})
		limit := " failed in 2.022s, ended by the server because its limit of 2s was over"
		if task.TimeoutSeconds == 0 {
			limit, next = " failed in 2.022s, ended by the server because its limit was over", ", retried later: why"
		}
		has(t, tt.err.String(), limit+next)
	}
}

// What each run prints is in files of its own, also when its task completes, and
// its standard error is passed on if asked for.
func TestU08LogAndVerboseKeepWhatARunPrints(t *testing.T) {
	h := newHouse(t)
	dir := filepath.Join(t.TempDir(), "runs", "of-hash")
	h.fine("queue", "set", "hash", "--create", "--backoff", "fixed", "--backoff-base", "1s")
	w := h.work("hash", "--log", dir, "--verbose", "--", "/bin/sh", "-c", `printf 'one\ntwo' >&2; echo out; exit $((2 - CODEQ_DELIVERY))`)
	id := h.fine("enqueue", "hash", "1")
	has(t, h.fine("result", id, "--wait", "1m"), "COMPLETED")
	w.stop()
	for name, want := range map[string]string{".1.err": "one\ntwo", ".1.out": "out\n", ".2.err": "one\ntwo", ".2.out": "out\n"} {
		got, err := os.ReadFile(filepath.Join(dir, id+name))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v)", name, got, err)
		}
	}
	for _, line := range []string{id + "  one\n", id + "  two\n"} {
		if got := strings.Count(w.err.String(), line); got != 2 {
			t.Errorf("%q is there %d times in %q", line, got, w.err)
		}
	}
	code, _, err := h.run("", "work", "hash", "--log", filepath.Join(dir, id+".1.err"), "--", "cat")
	if code != exitWrong || !strings.Contains(err, "--log must be a directory") {
		t.Errorf("a file in place of the directory: exit code %d, %s", code, err)
	}
}

func TestU08LogFileHoldsTheFirstEightMiB(t *testing.T) {
	tt := newTerminal("")
	r := &runLog{app: tt.app, name: filepath.Join(t.TempDir(), "x.err")}
	part := bytes.Repeat([]byte("x"), 100<<10)
	for range 100 {
		if n, err := r.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	r.end()
	got, err := os.ReadFile(r.name)
	if err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf("\ncodeq: %d more bytes are left out\n", 100*len(part)-logBytes)
	if len(got) != logBytes+len(note) || !strings.HasSuffix(string(got), note) {
		t.Errorf("%d bytes, %q at the end", len(got), got[max(0, len(got)-80):])
	}
	lost := &runLog{app: tt.app, name: filepath.Join(t.TempDir(), "nowhere", "x.err")}
	for range 2 {
		if n, err := lost.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	lost.end()
	if said := tt.err.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "cannot be written") {
		t.Errorf("it says %q", said)
	}
}

func TestU08LinesArePassedOnHoweverTheyAreWritten(t *testing.T) {
	text := "one\r\n\n" + strings.Repeat("l", 2500) + "\n\x1b[2Jred\xff\nlast"
	want := []string{"one", "", strings.Repeat("l", 1024), strings.Repeat("l", 1024), strings.Repeat("l", 452), `\u001b[2Jred` + "\uFFFD", "last"}
	for step := 1; step <= len(text); step = step*3 + 1 {
		tt := newTerminal("")
		l := &passed{app: tt.app}
		for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
			if _, err := l.Write([]byte(rest[:min(step, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		l.end()
		var lines strings.Builder
		for _, line := range want {
			lines.WriteString(l.id.String() + "  " + line + "\n")
		}
		if got := tt.err.String(); got != lines.String() {
			t.Errorf("in steps of %d: %q", step, got)
		}
	}
}
