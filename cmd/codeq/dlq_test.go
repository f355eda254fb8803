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
	has(t, h.fine("dlq", "replay", id), "PENDING", "failed      0 of 1")
	code, _, errs := h.run("", "dlq", "replay", id)
	has(t, errs, "no dead letter")
	if code != exitNotThere {
		t.Errorf("a second replay ends with %d, want %d", code, exitNotThere)
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
	// They differ in a quoted text alone.
	has(t, out, "COUNT", "EXAMPLE", `cannot "…"`, `cannot "`)
	if !strings.Contains(out, "\n3 ") || strings.Count(out, "cannot") != 2 {
		t.Errorf("the three have not one reason:\n%s", out)
	}
	_, _, errs := h.run("", "dlq", "reasons", "brittle", "--most", "1")
	has(t, errs, "the newest 1")
	_, _, errs = h.run("", "dlq", "reasons", "brittle", "--cause", "failed")
	has(t, errs, "no dead letters")

	says := func(want string, args ...string) {
		t.Helper()
		code, _, errs := h.run("", append([]string{"dlq"}, args...)...)
		if has(t, errs, want); code != exitFine {
			t.Errorf("%v ends with %d", args, code)
		}
	}
	says("0 dead letters of brittle are gone, 3 are left", "purge", "brittle", "--older-than", "24h")
	says("1 dead letter of brittle is gone, 2 are left", "purge", "brittle", "--error", "close")
	says("1 dead letter of brittle is ready again, 1 is left", "replay", "brittle", "--error", "open", "--limit", "1")
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
	has(t, h.fine("task", id), "waits", "no_worker: no worker is subscribed to this queue; ready tasks that come before it: 0")
	h.fine("pause", "idle", "--create")
	has(t, h.fine("task", id), "paused")
	later := strings.TrimSpace(h.fine("enqueue", "idle", "1", "--delay", "1h"))
	has(t, h.fine("task", later), "waits", "delayed, due")
}

// What ended with exit code 65, or with "codeq complete --error", is found by its
// cause, and a replay says that it was left.
func TestU01FailedTasksAreFoundCountedAndReplayed(t *testing.T) {
	h := newHouse(t)
	h.bury("brittle", `"x"`)
	ids := []string{strings.TrimSpace(h.fine("enqueue", "brittle", "1")), strings.TrimSpace(h.fine("enqueue", "brittle", "2"))}
	fails := h.work("brittle", "--", "/bin/sh", "-c", `echo "no use" >&2; exit 65`)
	for _, id := range ids {
		h.run("", "result", id, "--wait", "30s")
	}
	fails.stop()
	has(t, h.fine("task", ids[0]), "dead letters", "cause       failed")
	has(t, h.fine("dlq", "list", "brittle"), "CAUSE", "exhausted", "failed")
	if out := h.fine("dlq", "list", "brittle", "--cause", "failed"); strings.Contains(out, "exhausted") || !strings.Contains(out, ids[1]) {
		t.Errorf("those that failed are\n%s", out)
	}
	has(t, h.fine("dlq", "reasons", "brittle"), "2      failed", "1      exhausted")
	has(t, h.fine("queue", "show", "brittle"), "3: 1 exhausted, 2 failed", "7d (server); each shard keeps at most the newest 100000")
	says := func(want string, args ...string) {
		t.Helper()
		_, _, errs := h.run("", append([]string{"dlq"}, args...)...)
		has(t, errs, want)
	}
	says("1 dead letter of brittle is ready again, 2 are left; 2 of them ended FAILED by their worker, --cause failed replays those", "replay", "brittle")
	says("1 dead letter of brittle is ready again, 1 is left\n", "replay", "brittle", "--cause", "failed", "--limit", "1")
	if out := h.fine("dlq", "replay", "brittle", "--dry-run", "--error", "none"); !strings.Contains(out, "0 dead letters of brittle would be ready again; 1 of them ended FAILED") {
		t.Errorf("the dry run says %s", out)
	}
	says("0 dead letters of brittle are gone, 1 is left\n", "purge", "brittle", "--cause", "exhausted")
	says("0 dead letters of brittle are gone, 1 is left\n", "purge", "brittle", "--error", "none") // whose cause is no matter
	for _, args := range [][]string{{"list"}, {"reasons"}, {"replay"}, {"purge"}} {
		if code, _, errs := h.run("", "dlq", args[0], "brittle", "--cause", "bad"); code != exitWrong {
			t.Errorf("%s by an unknown cause ends with %d: %s", args[0], code, errs)
		}
	}
	id := strings.TrimSpace(h.fine("enqueue", "other", "1"))
	_, token, _ := strings.Cut(h.fine("claim", "other", "--json"), `"leaseToken":"`)
	token, _, _ = strings.Cut(token, `"`)
	h.fine("complete", id, token, "--error", "no use")
	has(t, h.fine("queue", "show", "other"), "1: 1 failed")
	has(t, h.fine("dlq", "replay", id), "PENDING")
}
