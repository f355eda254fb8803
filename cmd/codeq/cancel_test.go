package main

import (
	"strings"
	"testing"
	"time"
)

func TestCancelEndsATaskOnce(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "hash", "1")
	has(t, h.fine("cancel", id), "CANCELLED", id)
	has(t, h.fine("cancel", id, "--json"), `"status":"CANCELLED"`)
	code, out, _ := h.run("", "result", id)
	if code != exitFailed {
		t.Errorf("the result of a cancelled task is exit code %d", code)
	}
	has(t, out, "CANCELLED")

	done := h.fine("enqueue", "hash", "2")
	w := h.work("hash", "--", "cat")
	h.fine("result", done, "--wait", "30s")
	w.stop()
	code, out, err := h.run("", "cancel", done)
	if code != exitFailed || out != "" {
		t.Errorf("to cancel what has ended: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "already_terminal")
}

func TestCancelEndsTheProgramThatWorksOnIt(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "hash", "1")
	w := h.work("hash", "--", "sleep", "600")
	for until := time.Now().Add(time.Minute); !strings.Contains(h.fine("task", id), "IN_PROGRESS"); {
		if time.Now().After(until) {
			t.Fatal("no worker took the task within a minute")
		}
	}
	h.fine("cancel", id)
	w.err.await(t, "cancelled")
	w.stop()
	has(t, h.fine("task", id), "CANCELLED", "0 of 5", "delivery 1", "cancel by anonymous, ")
}
