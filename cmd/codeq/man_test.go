package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The page has every command and every flag of the table, and a formatter finds nothing wrong in it.
func TestManualHasEveryCommand(t *testing.T) {
	code, page, errs := codeq("", "help", "man")
	if code != exitFine || errs != "" {
		t.Fatalf("exit code %d, errors %q", code, errs)
	}
	var c cli
	model := c.parser(&app{}, nil, func(int) {}).Model
	for _, n := range model.Leaves(true) {
		if !strings.Contains(page, "\n.SS \""+roff.Replace("codeq "+n.Path())) {
			t.Errorf("%s is not in the page", n.Path())
		}
		for _, f := range n.Flags {
			if !f.Hidden && !strings.Contains(page, "\n.B "+roff.Replace("--"+f.Name)) {
				t.Errorf("--%s of %s is not in the page", f.Name, n.Path())
			}
		}
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		return // where there is no formatter, the page is compared with the table alone
	}
	lint := exec.Command(mandoc, "-T", "lint", "-W", "warning")
	lint.Stdin = strings.NewReader(page)
	out, _ := lint.CombinedOutput() // its exit code counts the date, which a page that is built twice the same has not
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "missing date") {
			t.Error(line)
		}
	}
}
