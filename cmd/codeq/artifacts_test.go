package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a program leaves in CODEQ_ARTIFACTS comes back by "codeq artifacts", by every way that the
// command has, and nothing is left on the machine of the worker.
func TestWhatAProgramLeavesBecomesArtifacts(t *testing.T) {
	h := newHouse(t)
	t.Setenv("TMPDIR", t.TempDir())
	script := filepath.Join(t.TempDir(), "leave.sh")
	text := `#!/bin/sh
mkdir "$CODEQ_ARTIFACTS/plots"
printf 'a,b' > "$CODEQ_ARTIFACTS/table.csv"
printf 'png' > "$CODEQ_ARTIFACTS/plots/1.png"
ln -s /etc/passwd "$CODEQ_ARTIFACTS/link"
: > "$CODEQ_ARTIFACTS/empty"
[ "$(cat)" = 1 ] && exit 0
[ "$CODEQ_ATTEMPTS" = 0 ] && exit 1
exit 65
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	done, failed := h.fine("enqueue", "-q", "leave", "1"), h.fine("enqueue", "-q", "leave", "2")
	h.fine("queue", "set", "leave", "--backoff", "fixed", "--backoff-base", "1s")
	worker := h.work("leave", "--", script)
	for id, code := range map[string]int{done: exitFine, failed: exitFailed} {
		if got, _, errs := h.run("", "result", id, "--wait", "30s"); got != code {
			t.Errorf("result: %d %s", got, errs)
		}
		list := h.fine("artifacts", id)
		has(t, list, "plots/1.png", "table.csv", "empty", "image/png")
		if strings.Contains(list, "link") || strings.Count(list, "\n") != 3 {
			t.Errorf("the list is %s", list)
		}
		if got := h.fine("artifacts", id, "table.csv"); got != "a,b" {
			t.Errorf("a file on standard output is %q", got)
		}
		dir := filepath.Join(t.TempDir(), "new")
		h.fine("artifacts", id, "--to", dir)
		for name, want := range map[string]string{"table.csv": "a,b", "plots/1.png": "png", "empty": ""} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		if code, _, errs := h.run("", "artifacts", id, "table.csv", "--to", dir); code != exitWrong || !strings.Contains(errs, "is there already") {
			t.Errorf("over a file: %d %s", code, errs)
		}
		if code, _, errs := h.run("", "artifacts", id, "no"); code == exitFine || !strings.Contains(errs, "no file of the task that is named") {
			t.Errorf("another name: %d %s", code, errs)
		}
		has(t, h.fine("artifacts", id, "--json"), `"artifacts":[`, `"sha256":`)
	}
	worker.stop()
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), leavingsPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left on the machine of the worker: %v, %v", left, err)
	}
}
