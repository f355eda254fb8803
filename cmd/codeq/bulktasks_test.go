package main

import (
	"fmt"
	"strings"
	"testing"

	"codeq/client"
)

func TestU05TasksAreNamedByFilter(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	lines := ""
	for i := range 20 {
		lines += fmt.Sprintf(`{"customer":%d,"to":{"city":"Bonn"}}`+"\n", 41+i%4)
	}
	h.fine("enqueue", "mail", "--file", fileOf(t, lines))
	h.fine("enqueue", "mail", `{"customer":42}`, "--delay", "1h")
	says := func(want string, args ...string) string {
		t.Helper()
		code, out, err := h.run("", args...)
		if code != exitFine || !strings.Contains(err, want) {
			t.Errorf("%q: exit code %d, said %q, want %q", args, code, err, want)
		}
		return out
	}
	shown := says("", "task", "cancel", "mail", "--match", "customer=42", "--dry-run")
	if !strings.HasPrefix(shown, "6 tasks of mail would be cancelled\nTASK ") || strings.Count(shown, `{"customer":42`) != 5 {
		t.Errorf("the dry run shows %s", shown)
	}
	if ids := says("", "task", "cancel", "mail", "--match", "customer=42", "--dry-run", "-q"); strings.Count(ids, "\n") != 5 || len(ids) != 5*37 {
		t.Errorf("the quiet dry run shows %s", ids)
	}
	says("codeq: 5 waiting tasks of mail have priority 7\n", "task", "move", "mail", "--to", "7", "--match", "customer=41", "--match", "to.city=Bonn")
	says("codeq: 2 tasks of mail are cancelled\n", "cancel", "mail", "--match", "customer=42", "--state", "ready", "--limit", "2")
	says("codeq: 4 tasks of mail are cancelled\n", "task", "cancel", "mail", "--match", "customer=42", "--older-than", "0s", "--newer-than", "1h")
	h.fine("enqueue", "mail", `{"customer":50}`, "--delay", "1h")
	says("codeq: 1 delayed task of mail is ready\n", "task", "run", "mail", "--all")
	says("codeq: 16 tasks of mail are cancelled\n", "task", "cancel", "mail", "--all")
	id := strings.TrimSpace(h.fine("enqueue", "mail", "1", "--delay", "1h", "--quiet"))
	has(t, h.fine("task", "move", id, "--to", "3"), "priority", "3", "delayed")
	has(t, h.fine("task", "run", id), "ready")
	has(t, h.fine("task", "cancel", id), "CANCELLED")
	for _, args := range [][]string{
		{"task", "cancel", "mail"}, {"task", "run", "mail"}, {"task", "move", "mail", "--to", "1"},
		{"task", "cancel", "mail", "--match", "customer"}, {"task", "cancel", "mail", "--priority", "10"},
		{"task", "cancel", "mail", "--attempts", "-1"}, {"task", "cancel", "mail", "--limit", "-1"}, {"task", "move", "mail", "--to", "10", "--all"},
		{"task", "cancel", "mail", "--match", "a=1", "--match", "b=1", "--match", "c=1", "--match", "d=1", "--match", "e=1"},
	} {
		if code, out, err := h.run("", args...); code != exitWrong || out != "" {
			t.Errorf("%q: exit code %d, %q %q", args, code, out, err)
		}
	}
}

// A flag that selects tasks would be ignored beside the id of one, and --dry-run would change it.
func TestU05FlagsOfAQueueAreRefusedBesideAnID(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := strings.TrimSpace(h.fine("enqueue", "mail", "1", "--delay", "1h"))
	for _, verb := range [][]string{{"cancel"}, {"task", "cancel"}, {"task", "run"}, {"task", "move", "--to", "3"}, {"task", "retry"}, {"dlq", "replay"}} {
		for _, flag := range []string{"--dry-run", "--match=a=1", "--limit=1", "--newer-than=1h", "--older-than=1h", "--worker=w", "--cursor=c", "--priority=0"} {
			code, out, err := h.run("", append(verb, id, flag)...)
			if code != exitWrong || out != "" {
				t.Errorf("%q %s: exit code %d, output %q", verb, flag, code, out)
			}
			name, _, _ := strings.Cut(flag, "=")
			oneSentence(t, err, name+" is for the tasks of a queue, and "+id+" is the id of one task: leave the flag out")
		}
	}
	for _, args := range [][]string{{"cancel", id, "--all"}, {"cancel", id, "--state", "open"}, {"dlq", "replay", id, "--cause", "all"}} {
		if code, _, err := h.run("", args...); code != exitWrong || !strings.Contains(err, " is for the tasks of a queue, and "+id) {
			t.Errorf("%q: exit code %d, %q", args, code, err)
		}
	}
	has(t, h.fine("task", id), "PENDING", "delayed")
	has(t, h.fine("task", "move", id, "--to", "3", "--utc"), "priority", "3")
}

func TestU05QueueIsMadeOnlyOnPurposeAndDeleted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, args := range [][]string{
		{"pause", "mial"}, {"resume", "mial"}, {"queue", "set", "mial", "--max-attempts", "3"}, {"queue", "delete", "mial"},
	} {
		code, out, err := h.run("", args...)
		if code != exitNotThere || out != "" {
			t.Errorf("%q: exit code %d, output %q", args, code, out)
		}
		want := `no queue "mial" is known; --create makes it`
		if args[1] == "delete" {
			want = "there is no queue mial"
		}
		oneSentence(t, err, want)
	}
	h.fine("pause", "mial", "--create")
	h.fine("resume", "mial")
	h.fine("queue", "delete", "mial")
	h.fine("enqueue", "mail", "1")
	code, _, err := h.run("", "queue", "delete", "mail")
	if code != exitFailed {
		t.Errorf("a queue with a task: exit code %d", code)
	}
	oneSentence(t, err, "queue mail has tasks: 1 that have not ended, 0 dead letters, 0 ended otherwise; have them purged with it, "+
		"or let them end and be removed first (queue_not_empty); --purge deletes it with them\n")
	has(t, h.fine("queue", "delete", "mail", "--purge", "--json"), `{"deleted":true}`)
	if code, _, _ := h.run("", "queue", "delete", "mail", "--purge"); code != exitNotThere {
		t.Errorf("deleted twice: exit code %d", code)
	}
}

// A command that reads a queue which nobody has used most likely has its name wrong. A worker is told,
// and waits: it may come before the first task.
func TestQueueThatNobodyHasUsedIsNotShownAsAnEmptyOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "1")
	for _, args := range [][]string{
		{"queue", "show", "mial"}, {"tasks", "mial"}, {"tasks", "mial", "--state", "done", "--quiet"},
		{"dlq", "list", "mial"}, {"dlq", "reasons", "mial"}, {"dlq", "replay", "mial"}, {"dlq", "purge", "mial", "--dry-run"},
		{"cancel", "mial", "--all"}, {"task", "run", "mial", "--dry-run"}, {"task", "move", "mial", "--to", "3", "--all"},
		{"pause", "mial"},
	} {
		code, out, err := h.run("", args...)
		if code != exitNotThere || out != "" {
			t.Errorf("%q: exit code %d, output %q", args, code, out)
		}
		oneSentence(t, err, `no queue "mial" is known; did you mean "mail"?`)
	}
	for _, args := range [][]string{{"tasks", "mial", "--json"}, {"dlq", "replay", "mial", "--json"}} {
		if code, _, err := h.run("", args...); code != exitNotThere || !strings.Contains(err, `no queue "mial"`) {
			t.Errorf("%q: exit code %d, %q", args, code, err)
		}
	}
	// One that is known and has nothing there is none of these.
	for _, args := range [][]string{{"tasks", "mail", "--state", "delayed"}, {"dlq", "list", "mail"}, {"dlq", "replay", "mail"}, {"queue", "show", "mail"}} {
		h.fine(args...)
	}
}

// A queue that comes to be while the sentence is made is not proposed for itself.
func TestNoQueueIsProposedForItself(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "1")
	c, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := noQueue(t.Context(), c, "mail", "; waiting"); err.Error() != `no queue "mail" is known; waiting` {
		t.Error(err)
	}
}

func TestWorkerIsToldOnceWhyThereIsNoTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "1")
	h.fine("pause", "mail")
	early := h.work("mial", "--", "cat")
	early.err.await(t, `no queue "mial" is known; did you mean "mail"?`)
	held := h.work("mail", "--", "cat")
	held.err.await(t, `queue mail is paused: "codeq resume mail" grants its tasks again`)
	h.fine("enqueue", "mial", "1", "--wait", "30s") // it waits, and works
	early.stop()
	held.stop()
}
