package main

import (
	"fmt"
	"strings"
	"testing"
)

// bury makes dead letters of a command: each fails once, for a reason of its
// payload.
func (h *house) bury(command string, payloads ...string) (ids []string) {
	h.t.Helper()
	for _, payload := range payloads {
		ids = append(ids, strings.TrimSpace(h.fine("enqueue", command, payload, "--max-attempts", "1")))
	}
	fails := h.work(command, "--", "/bin/sh", "-c", `read -r why; echo "cannot $why" >&2; exit 1`)
	for _, id := range ids {
		h.run("", "result", id, "--wait", "30s")
	}
	fails.stop()
	return ids
}

func TestDeadLettersAreReplayedByIdAndByQueue(t *testing.T) {
	h := newHouse(t)
	id := h.bury("brittle", `"x"`)[0]
	has(t, h.fine("tasks", "brittle", "--state", "dlq"), id)
	has(t, h.fine("dlq", "replay", id), "PENDING", "attempts    0 of 1")
	code, _, errs := h.run("", "dlq", "replay", id)
	has(t, errs, "no dead letter")
	if code != exitFailed {
		t.Errorf("a second replay ends with %d, want %d", code, exitFailed)
	}
	code, _, errs = h.run("", "dlq", "replay", "brittle", "--limit", "3")
	has(t, errs, "0 dead letters of brittle are ready again, 0 are left")
	if code != exitFine {
		t.Errorf("exit code %d", code)
	}
	if code, _, _ := h.run("", "dlq", "replay", "brittle", "--limit", "0"); code != exitWrong {
		t.Errorf("a limit of 0 ends with %d, want %d", code, exitWrong)
	}
}

func TestDeadLettersAreListedGroupedAndPurged(t *testing.T) {
	h := newHouse(t)
	ids := h.bury("brittle", `"open"`, `"open"`, `"close"`)
	out := h.fine("dlq", "list", "brittle")
	has(t, out, append(ids, "REASON", "1 of 1", "cannot")...)
	has(t, h.fine("dlq", "list", "brittle", "--history", "--error", "close"), ids[2], "delivery 1", "nack")
	out = h.fine("dlq", "reasons", "brittle")
	has(t, out, "COUNT", `cannot "open"`, `cannot "close"`)
	if open := strings.Index(out, "open"); open > strings.Index(out, "close") {
		t.Errorf("the most frequent reason is not first:\n%s", out)
	}
	_, _, errs := h.run("", "dlq", "reasons", "brittle", "--most", "1")
	has(t, errs, "the newest 1")
	_, _, errs = h.run("", "dlq", "reasons", "nothing")
	has(t, errs, "no dead letters")

	says := func(want string, args ...string) {
		t.Helper()
		code, _, errs := h.run("", append([]string{"dlq"}, args...)...)
		if has(t, errs, want); code != exitFine {
			t.Errorf("%v ends with %d", args, code)
		}
	}
	says("0 dead letters of brittle are gone, 3 are left", "purge", "brittle", "--older-than", "24h")
	says("1 dead letters of brittle are gone, 2 are left", "purge", "brittle", "--error", "close")
	says("1 dead letters of brittle are ready again, 1 are left", "replay", "brittle", "--error", "open", "--limit", "1")
	has(t, h.fine("dlq", "purge", "brittle", "--json"), `{"purged":1,"remaining":0}`)
	for _, bad := range [][]string{
		{"purge", "brittle", "--limit", "0"}, {"purge", "no name"}, {"purge", "brittle", "--older-than", "-1h"},
		{"reasons", "brittle", "--most", "0"}, {"reasons", "no name"}, {"list", "brittle", "--limit", "0"},
	} {
		if code, _, errs := h.run("", append([]string{"dlq"}, bad...)...); code != exitWrong {
			t.Errorf("%s ends with %d, want %d: %s", fmt.Sprint(bad), code, exitWrong, errs)
		}
	}
}

func TestTaskIsShownWithTheReasonItWaits(t *testing.T) {
	h := newHouse(t)
	id := strings.TrimSpace(h.fine("enqueue", "idle", "1"))
	has(t, h.fine("task", id), "waits", "no_worker", "0 before it")
	h.fine("pause", "idle")
	has(t, h.fine("task", id), "paused")
	later := strings.TrimSpace(h.fine("enqueue", "idle", "1", "--delay", "1h"))
	has(t, h.fine("task", later), "waits", "delayed, until")
}
