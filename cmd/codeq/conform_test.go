package main

import (
	"encoding/json"
	"strings"
	"testing"

	"codeq/internal/conform"
)

func TestConformReportsInWordsAndJSON(t *testing.T) {
	driver := []string{"--", "sh", "-c", `echo '{"event":"ready","can":[]}'; read -r line; echo '{"event":"error","id":1,"code":"unreachable"}'; cat >/dev/null`}
	code, out, errs := codeq("", append([]string{"conform", "--only", "post/unreachable"}, driver...)...)
	if code != exitFine || out != "1 passed, 0 failed, 0 skipped\n" || errs != "" {
		t.Errorf("a driver that passes: exit code %d, %s%s", code, out, errs)
	}
	code, out, errs = codeq("", append([]string{"conform", "--only", "work/progress"}, driver...)...)
	if code != exitFine || out != "0 passed, 0 failed, 1 skipped\n" || !strings.Contains(errs, "the driver has no progress") {
		t.Errorf("a driver that has no progress: exit code %d, %s%s", code, out, errs)
	}
	code, out, errs = codeq("", append([]string{"conform", "--json", "--only", "post/unreachable"}, "--", "sh", "-c", "echo hello; cat >/dev/null")...)
	var report struct {
		Failed  int
		Scripts []conform.Verdict
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitFailed || report.Failed != 1 || report.Scripts[0].Failed == "" ||
		!strings.Contains(errs, "post/unreachable failed after") || !strings.Contains(errs, "it proves: If nothing was sent") {
		t.Errorf("a driver that fails: exit code %d, %s%s", code, out, errs)
	}
	if code, out, errs = codeq("", "conform", "--list"); code != exitFine || strings.Count(out, "\n") != len(conform.List()) {
		t.Errorf("the list: exit code %d, %s%s", code, out, errs)
	}
	for _, wrong := range [][]string{{"conform"}, append([]string{"conform", "--only", "nothing"}, driver...), append([]string{"conform", "--at-once", "0"}, driver...)} {
		if code, out, errs := codeq("", wrong...); code != exitWrong || out != "" {
			t.Errorf("%q: exit code %d, %s%s", wrong, code, out, errs)
		}
	}
}
