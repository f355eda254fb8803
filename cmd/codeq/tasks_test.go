package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestTasksOfAQueueAreListed(t *testing.T) {
	h := newHouse(t)
	var ids []string
	for n := range 5 {
		ids = append(ids, h.fine("enqueue", "hash", fmt.Sprint(n)))
	}
	later := h.fine("enqueue", "hash", "1", "--delay", "1h")
	listed := h.fine("tasks", "hash")
	has(t, listed, append(ids, "TASK", "PENDING", "0 of 5")...)
	if strings.Contains(listed, later) {
		t.Errorf("a delayed task is listed as ready: %s", listed)
	}
	has(t, h.fine("tasks", "hash", "--state", "delayed"), later)

	code, out, err := h.run("", "tasks", "hash", "-n", "2")
	cursor := regexp.MustCompile(`--cursor (\S+)`).FindStringSubmatch(err)
	if code != exitFine || cursor == nil || strings.Count(out, "PENDING") != 2 {
		t.Fatalf("exit code %d, output %q, errors %q", code, out, err)
	}
	rest := h.fine("tasks", "hash", "--cursor", cursor[1])
	for _, id := range ids {
		if strings.Contains(out, id) == strings.Contains(rest, id) {
			t.Errorf("%s is on both pages or on none", id)
		}
	}
	has(t, h.fine("tasks", "hash", "--json"), `{"tasks":[{"id":`)
	code, out, err = h.run("", "tasks", "nothing", "--state", "dlq")
	if code != exitFine || out != "" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "no such task among the dead letters of nothing")
	_, _, err = h.run("", "tasks", ids[0])
	oneSentence(t, err, "no such task among the ready ones of "+ids[0]+`; "codeq task `+ids[0]+`" shows the task of this id`)
	_, _, err = h.run("", "dlq", "purge", ids[0])
	oneSentence(t, err, "0 are left; \"codeq task "+ids[0])
	has(t, h.fine("tasks", "hash", "--status", "pending"), ids...)
	_, _, err = h.run("", "tasks", "work", "--state", "dead")
	oneSentence(t, err, `"codeq tasks --help" shows`)
	_, _, err = h.run("", "dlq", "replay")
	oneSentence(t, err, `"codeq dlq replay --help" shows`)
	for _, wrong := range [][]string{{"tasks", "hash", "--state", "lost"}, {"tasks", "hash", "-n", "0"}, {"tasks"}} {
		if code, _, _ := h.run("", wrong...); code != exitWrong {
			t.Errorf("%q: exit code %d", wrong, code)
		}
	}
	code, _, err = h.run("", "tasks", "hash", "--cursor", "x")
	if code != exitWrong {
		t.Errorf("a cursor that is none: exit code %d", code)
	}
	oneSentence(t, err, "invalid_argument")
}
