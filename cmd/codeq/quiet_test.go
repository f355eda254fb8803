package main

import (
	"strings"
	"testing"

	"codeq/wire"
)

// With --quiet there are ids of tasks for xargs, and not a word about them.
func TestU10QuietPrintsIdsAlone(t *testing.T) {
	h := newHouse(t)
	quiet := func(code int, args ...string) []string {
		t.Helper()
		got, out, errs := h.run("", append([]string{"-q"}, args...)...)
		if got != code || errs != "" {
			t.Errorf("%q: exit code %d, want %d, errors %q", args, got, code, errs)
		}
		ids := strings.Fields(out)
		for _, id := range ids {
			if _, ok := wire.ParseTaskID(id); !ok {
				t.Errorf("%q prints %q, which is no id", args, id)
			}
		}
		return ids
	}
	made := quiet(exitFine, "enqueue", "mail", "1", "--key", "k")
	if again := quiet(exitFine, "enqueue", "mail", "1", "--key", "k"); len(made) != 1 || len(again) != 1 || again[0] != made[0] {
		t.Errorf("made %q, and then %q", made, again)
	}
	made = append(made, quiet(exitFine, "enqueue", "mail", "--file", fileOf(t, "1\n2\n"))...)
	listed := quiet(exitFine, "task", "list", "mail")
	if len(made) != 3 || strings.Join(made, " ") != strings.Join(listed, " ") {
		t.Errorf("made %q, listed %q", made, listed)
	}
	if page := quiet(exitFine, "tasks", "mail", "-n", "2"); len(page) != 2 {
		t.Errorf("two of them are %q", page)
	}
	dead := h.bury("brittle", "1")
	if listed := quiet(exitFine, "dlq", "list", "brittle"); len(listed) != 1 || listed[0] != dead[0] {
		t.Errorf("dead is %q, listed %q", dead, listed)
	}
	quiet(exitFine, "dlq", "replay", dead[0])
	quiet(exitFine, "dlq", "purge", "brittle")
	for _, args := range [][]string{
		{"pause", "mail"}, {"resume", "mail"}, {"queue", "set", "mail", "--lease", "1m"}, {"cancel", made[0]}, {"task", "move", made[1], "--to", "3"},
	} {
		if said := quiet(exitFine, args...); len(said) != 0 {
			t.Errorf("%q prints %q", args, said)
		}
	}
	has(t, h.fine("-q", "queue", "show", "mail"), "lease              1m (queue)")
	has(t, h.fine("-q", "task", made[1]), "priority    3")
	quiet(exitFine, "tasks", "mail", "--state", "dlq")
	quiet(exitNotThere, "claim", "nothing")
	// An error is no remark.
	code, _, errs := h.run("", "enqueue", "mail", "--file", fileOf(t, "1\n{\n"), "-q")
	if code != exitFailed || !strings.Contains(errs, "line 2: ") || !strings.Contains(errs, "continue with --run ") || strings.Count(errs, "\n") != 2 {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
}
