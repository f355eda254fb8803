package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// claimed are the words that a claim printed.
func claimed(t *testing.T, line string) (id, token, payload string) {
	t.Helper()
	words := strings.SplitN(line, " ", 3)
	if len(words) != 3 || strings.Contains(line, "\n") {
		t.Fatalf("a claim prints %q", line)
	}
	return words[0], words[1], words[2]
}

func TestAScriptTakesATaskAndSaysWhatBecameOfIt(t *testing.T) {
	h := newHouse(t)
	if code, out, _ := h.run("", "claim", "hash"); code != exitNotThere || out != "" {
		t.Errorf("of nothing a claim prints %q, exit code %d", out, code)
	}
	first := h.fine("enqueue", "hash", "{\"a\":\n \"b c\"}")
	id, token, payload := claimed(t, h.fine("claim", "other", "hash", "--name", "cron", "--lease", "1m"))
	if id != strings.TrimSpace(first) || payload != `{"a":  "b c"}` {
		t.Errorf("claimed %s with %s, posted %s", id, payload, first)
	}
	has(t, h.fine("task", id), "IN_PROGRESS", "cron")
	code, out, err := h.run("", "heartbeat", id, token)
	if code != exitFine || out != "" {
		t.Errorf("a heartbeat ends with %d and prints %q", code, out)
	}
	oneSentence(t, err, "the lease of task "+id+" ends 20")
	has(t, h.fine("heartbeat", id, token, "--extend", "2m", "--json"), `{"ok":true,"leaseUntil":"20`)
	if out := h.fine("release", id, token); out != "" {
		t.Errorf("a release prints %q", out)
	}
	has(t, h.fine("task", id), "PENDING", "0 of 5")

	id, token, _ = claimed(t, h.fine("claim", "*", "--wait", "1m"))
	if out := h.fine("nack", id, token, "no luck", "--delay", "0", "--exit-code", "3"); out != "" {
		t.Errorf("a nack prints %q", out)
	}
	has(t, h.fine("task", id), "PENDING", "1 of 5", "exit code 3: no luck")

	has(t, h.fine("claim", "hash", "--json"), `"leaseToken":"`, id)
	code, out, err = h.run("", "complete", id, token, "{}")
	if code != exitFailed || out != "" {
		t.Errorf("with the token of before: exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "lease_lost")
}

// A queue may let no task wait for as long as a nack asks; then it says for how
// long it does.
func TestANackSaysWhichDelayHolds(t *testing.T) {
	h := newHouse(t)
	nack := func(words ...string) (out, err string) {
		t.Helper()
		h.fine("enqueue", "hash", "1")
		id, token, _ := claimed(t, h.fine("claim", "hash"))
		code, out, err := h.run("", append([]string{"nack", id, token, "no luck", "--delay"}, words...)...)
		if code != exitFine {
			t.Fatalf("%q: exit code %d, errors %q", words, code, err)
		}
		return out, err
	}
	out, err := nack("15m")
	if out != "" {
		t.Errorf("of the longest delay a nack prints %q", out)
	}
	oneSentence(t, err, "is retried in 15m0s\n")
	_, err = nack("0s")
	oneSentence(t, err, "is retried at once\n")
	out, err = nack("1h")
	if out != "" {
		t.Errorf("it prints %q", out)
	}
	oneSentence(t, err, "is retried in 15m0s, not in 1h0m0s")
	out, _ = nack("1h", "--json")
	has(t, out, `"delaySeconds":900`)
	h.fine("queue", "set", "hash", "--create", "--backoff-max", "1h")
	_, err = nack("1h")
	oneSentence(t, err, "is retried in 1h0m0s\n")
}

func TestN03AScriptHandsBackWithoutBeingCounted(t *testing.T) {
	h := newHouse(t)
	for _, why := range []string{"--unbegun", "--stopping"} {
		id := h.fine("enqueue", "hash", "1", "--max-attempts", "1", "--priority", "9")
		for range 11 {
			got, token, _ := claimed(t, h.fine("claim", "hash"))
			if got != id {
				t.Fatalf("%s: claimed %s, want %s again", why, got, id)
			}
			h.fine("release", id, token, why)
		}
		has(t, h.fine("task", id), "PENDING", "0 of 1")
		h.fine("cancel", id)
	}
}

func TestAScriptEndsATaskForGood(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		post, say []string
		input     string
		status    string
		says      string
	}{
		{say: []string{"complete", "ID", "TOKEN", `{"sum": 3}`}, status: "COMPLETED"},
		{say: []string{"complete", "ID", "TOKEN", "-"}, input: " {\"sum\": 3}\n", status: "COMPLETED"},
		{say: []string{"complete", "ID", "TOKEN", "--error", "sum"}, status: "FAILED"},
		{say: []string{"nack", "ID", "TOKEN", "sum"}, post: []string{"--max-attempts", "1"}, status: "FAILED", says: "dead letter"},
	} {
		h.fine(append([]string{"enqueue", "hash", "1"}, c.post...)...)
		id, token, _ := claimed(t, h.fine("claim", "hash"))
		words := append([]string(nil), c.say...)
		words[1], words[2] = id, token
		code, out, err := h.run(c.input, words...)
		if code != exitFine || out != "" || !strings.Contains(err, c.says) || (c.says == "") != (err == "") {
			t.Errorf("%q: exit code %d, output %q, errors %q", words, code, out, err)
		}
		_, out, _ = h.run("", "result", id)
		has(t, out, c.status, "sum")
	}
}

// A claim that is stopped while it prints gives back what it could not print, all the
// same: nobody else knows of the task.
func TestN02StoppedClaimGivesBackWhatItCouldNotPrint(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "hash", "1", "--max-attempts", "1")
	c, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	claimed, err := c.Claim(t.Context(), client.ClaimOptions{Commands: []string{"hash"}, Lease: time.Hour})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d tasks, %v", len(claimed), err)
	}
	tt := newTerminal("")
	tt.app.out = &checkedOutput{lost: os.ErrClosed}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := (&claimCmd{Lease: time.Hour}).handOver(ctx, tt.app, claimed[0]); err == nil || !strings.HasSuffix(err.Error(), "task "+id+" is handed back") {
		t.Errorf("it says %v", err)
	}
	has(t, h.fine("task", id), "PENDING", "failed      0 of 1")
}

// A task ends once. Who ends it again with the same token hears if another result
// stands than the one just given.
func TestAScriptHearsThatAnotherResultStands(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct{ first, same, other []string }{
		{[]string{`{"n": 1}`}, []string{` {"n": 1} `}, []string{`{"n": 2}`}},
		{[]string{"--error", "x"}, []string{"--error", "x"}, []string{"--error", "y"}},
	} {
		h.fine("enqueue", "hash", "1")
		id, token, _ := claimed(t, h.fine("claim", "hash"))
		complete := func(outcome []string) string {
			code, out, err := h.run("", append([]string{"complete", id, token}, outcome...)...)
			if code != exitFine || out != "" {
				t.Errorf("%q: exit code %d, output %q, errors %q", outcome, code, out, err)
			}
			return err
		}
		if said := complete(c.first) + complete(c.same); said != "" {
			t.Errorf("%q twice: %q", c.first, said)
		}
		oneSentence(t, complete(c.other), "task "+id+" had ended before: its first result is kept")
	}
}

func TestU05ClaimFromAPausedQueueSaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "1")
	h.fine("pause", "mail")
	code, _, errs := h.run("", "claim", "mail")
	if oneSentence(t, errs, "no task is ready: queue mail is paused\n"); code != exitNotThere {
		t.Errorf("exit code %d", code)
	}
}

// An error of an execution before is not that of a task which has completed.
func TestU05ErrorOfACompletedTaskIsItsLastOne(t *testing.T) {
	for status, want := range map[wire.Status]string{wire.StatusCompleted: "last error", wire.StatusFailed: "error"} {
		f := newTerminal("").app.taskFields(&wire.Task{Status: status, Error: "no luck"})
		if !slices.Contains(f.rows, [2]string{want, "no luck"}) {
			t.Errorf("a task that is %s has %q", status, f.rows)
		}
	}
}
