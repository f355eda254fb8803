package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxWorkerLines is what a reader takes in at one look.
const maxWorkerLines = 30

// shown is a file that a page shows: a comment that names it, and a block.
var shown = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```\\w+\n(.*?)```\n")

func TestThePageOfWorkersShowsTheFilesThatAreTested(t *testing.T) {
	files, err := filepath.Glob("workers/worker[._]*")
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if err != nil || len(files) < 6 {
		t.Fatalf("the workers are %v: %v", files, err)
	}
	page := map[string]string{}
	for _, m := range shown.FindAllStringSubmatch(readPage(t, "workers.md"), -1) {
		page[m[1]] = m[2]
	}
	for _, file := range files {
		text := readPage(t, file)
		if page[file] != text {
			t.Errorf("workers.md does not show %s as it is", file)
		}
		if lines := strings.Count(text, "\n"); lines > maxWorkerLines {
			t.Errorf("%s has %d lines", file, lines)
		}
		delete(page, file)
	}
	for file := range page {
		t.Errorf("workers.md shows %s, which is no worker", file)
	}
}

// The tests that testing-your-code.md shows run with the others.
func TestThePageOfTestsShowsTheFileThatRuns(t *testing.T) {
	m := shown.FindStringSubmatch(readPage(t, "testing-your-code.md"))
	if m == nil {
		t.Fatal("testing-your-code.md shows no file")
	}
	if m[1] != "codeqtest/mail_test.go" || m[2] != readPage(t, m[1]) {
		t.Errorf("testing-your-code.md does not show %s as it is", m[1])
	}
}
