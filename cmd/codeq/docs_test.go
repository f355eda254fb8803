package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocsAreServedWithoutAServer(t *testing.T) {
	p := start(t, "docs", "--json")
	p.out.await(t, "\n")
	var said docsAnnounced
	if err := json.Unmarshal([]byte(p.out.String()), &said); err != nil || said.Files < 20 {
		t.Fatalf("it says %s: %v", p.out, err)
	}
	for page, want := range map[string]string{"": "<title>", "docs/cli.html": "codeq enqueue", "assets/index.js": "codeqIndex(["} {
		answer, err := http.Get(said.URL + page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was only read
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("/%s: %s, %v: has no %q", page, answer.Status, err, want)
		}
	}
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFine {
		t.Errorf("exit code %d: %s", code, p.err)
	}
}

func TestDocsAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	code, out, errs := codeq("", "docs", "--write", dir)
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil || code != exitFine || out != "" || !strings.Contains(errs, "open index.html there") {
		t.Errorf("exit code %d, %s%s: %v", code, out, errs, err)
	}
	if code, _, errs := codeq("", "docs", "--write", filepath.Join(dir, "index.html")); code != exitFailed {
		t.Errorf("into a file: exit code %d, %s", code, errs)
	}
	if code, _, errs := codeq("", "docs", "--listen", "127.0.0.1:99999"); code != exitFailed {
		t.Errorf("at no address: exit code %d, %s", code, errs)
	}
}
