package main

import (
	"strings"
	"testing"
)

func TestDeadLettersAreReplayedByIdAndByQueue(t *testing.T) {
	h := newHouse(t)
	id := strings.TrimSpace(h.fine("enqueue", "brittle", "1", "--max-attempts", "1"))
	fails := h.work("brittle", "--", "/bin/sh", "-c", "exit 1")
	h.run("", "result", id, "--wait", "30s")
	fails.stop()
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
