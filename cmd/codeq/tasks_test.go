package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeq/wire"
)

func TestTasksAreFoundInAllQueues(t *testing.T) {
	h := newHouse(t)
	pdf := h.fine("enqueue", "billing.pdf", `{"order":42}`, "--label", "customer=acme", "--label", "run=7")
	mail := h.fine("enqueue", "billing.mail", "1", "--label", "customer=acme")
	h.fine("enqueue", "post", "1")
	found := func(says string, want []string, args ...string) {
		t.Helper()
		code, out, errs := h.run("", append([]string{"find"}, args...)...)
		if code != exitFine || strings.Count(out, "PENDING") != len(want) {
			t.Errorf("%q: exit code %d, output %q", args, code, out)
		}
		has(t, out, want...)
		oneSentence(t, errs, says)
	}
	found("2 tasks looked at, 2 found", []string{pdf, mail}, "--label", "customer=acme")
	found("2 tasks looked at, 1 found", []string{pdf}, "--label", "run=7", "--label", "customer=acme")
	found("2 tasks looked at, 1 found", []string{pdf}, "--command", "billing.*", "--payload", `"order":42`)
	found("1 task looked at, 1 found", []string{mail}, mail)
	found("3 tasks looked at, 0 found", nil, "--older", "1h")
	found("3 tasks looked at, 0 found", nil, "--error", "timeout")
	found("1 found; go on with --cursor ", []string{mail}, "-n", "1")
	has(t, h.fine("task", pdf), "customer=acme, run=7")
	code, _, errs := h.run("", "find", "01890a5d-ac96-774b-bcce-b302099a8057")
	if oneSentence(t, errs, "there is no task 01890a5d-ac96-774b-bcce-b302099a8057"); code != exitNotThere {
		t.Errorf("exit code %d", code)
	}
	for want, args := range map[string][]string{
		"--label must be a name and a value like customer=acme, got x": {"find", "--label", "x"},
		"--state must be ready, ":                                      {"find", "--state", "lost"},
		"--label.a must not be given twice":                            {"enqueue", "a", "1", "--label", "a=1", "--label", "a=2"},
	} {
		code, _, errs := h.run("", args...)
		if oneSentence(t, errs, want); code != exitWrong {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

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
	if code != exitNotThere || out != "" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	oneSentence(t, err, `no queue "nothing" is known`)
	code, out, err = h.run("", "tasks", "hash", "--state", "dlq")
	if code != exitFine || out != "" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	oneSentence(t, err, "hash has no dead letters")
	for _, args := range [][]string{{"tasks", ids[0]}, {"dlq", "purge", ids[0]}} {
		_, _, err = h.run("", args...)
		oneSentence(t, err, `no queue "`+ids[0]+`" is known; "codeq task `+ids[0]+`" shows the task of this id`)
	}
	has(t, h.fine("tasks", "hash", "--status", "pending"), ids...)
	has(t, h.fine("tasks", "hash", "--status", "Pending", "--state", "DELAYED"), later)
	_, _, err = h.run("", "tasks", "hash", "--status", "failed")
	oneSentence(t, err, "hash has no dead letters that match")
	_, _, err = h.run("", "tasks", "work", "--state", "dead")
	oneSentence(t, err, "--state must be ready, ")
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

// What is read by a program is all there is, and for people --all shows it.
func TestListsShowAllWhereThatIsAskedFor(t *testing.T) {
	h := newHouse(t)
	const tasks = wire.MaxListTasks + 1
	h.fine("enqueue", "hash", "--file", fileOf(t, strings.Repeat("1\n", tasks)))
	for _, args := range [][]string{{"-q"}, {"--all"}, {"--all", "--json"}, {"--all", "-q"}} {
		out := h.fine(append([]string{"tasks", "hash"}, args...)...)
		ids := regexp.MustCompile(`(?m)(^|"id":")[0-9a-f]{8}-[0-9a-f-]{27}`).FindAllString(out, -1)
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != tasks {
			t.Errorf("%q lists %d of %d tasks", args, n, tasks)
		}
	}
	_, out, errs := h.run("", "tasks", "hash")
	has(t, errs, "there are more: --all shows all, --cursor ")
	if n := strings.Count(out, "PENDING"); n != 20 {
		t.Errorf("without a flag there are %d", n)
	}
}

// The examples of lists can find something: no state and status contradict.
func TestExamplesOfListsArePossible(t *testing.T) {
	lists := 0
	for _, n := range grammar().Leaves(false) {
		for _, words := range examplesOf(t, n) {
			if !slices.Contains(words, "list") && !slices.Contains(words, "tasks") {
				continue
			}
			lists++
			if code, _, errs := codeq("", append(words, "--url", nowhere)...); code != exitAgain {
				t.Errorf("%q ends with %d: %s", words, code, errs)
			}
		}
	}
	if lists < 3 {
		t.Errorf("there are %d", lists)
	}
}
