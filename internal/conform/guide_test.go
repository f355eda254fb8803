package conform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readGuide is the guide on one line, without marks of emphasis.
func readGuide(t *testing.T) (page, plain string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/sdk-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	page = strings.Join(strings.Fields(string(text)), " ")
	return page, strings.ReplaceAll(page, "**", "")
}

var bold = regexp.MustCompile(`\*\*(.+?)\*\*`)

// Each script proves a sentence of the guide, and each sentence in bold is proved by a script.
func TestScriptsAndGuideAgree(t *testing.T) {
	page, plain := readGuide(t)
	names := map[string]bool{}
	for _, s := range scripts() {
		if !strings.Contains(plain, s.proves) {
			t.Errorf("%s proves what the guide does not say: %s", s.name, s.proves)
		}
		if names[s.name] {
			t.Errorf("two scripts are named %s", s.name)
		}
		names[s.name] = true
	}
	if len(names) < 40 {
		t.Errorf("there are %d scripts", len(names))
	}
	for _, m := range bold.FindAllStringSubmatch(page, -1) {
		if m[1] == "bold" || m[1] == "driver" {
			continue
		}
		proved := false
		for _, s := range scripts() {
			proved = proved || strings.Contains(s.proves, m[1]) || strings.Contains(m[1], s.proves)
		}
		if !proved {
			t.Errorf("no script proves: %s", m[1])
		}
	}
}

// sdks are where the names of a language are declared, as in the table of what the SDKs have, and its driver.
var sdks = []struct{ sources, driver string }{
	{"../../client/*.go", "../../test/conform/driver/main.go"},
	{"../../sdk/typescript/src/*.ts", "../../sdk/typescript/conform/driver.mjs"},
	{"../../sdk/python/src/codeq/*.py", "../../sdk/python/conform/driver.py"},
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	all := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// Each SDK has the names that the table gives it, and its driver says that it can do all parts.
func TestSDKsHaveWhatTheTableSays(t *testing.T) {
	page := readAll(t, "../../docs/sdk-guide.md")
	_, table, _ := strings.Cut(page, "\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 15 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	_, parts, _ := strings.Cut(readAll(t, "../../docs/sdk-lines.md"), "Parts today: ")
	parts, _, _ = strings.Cut(parts, ":")
	for i, sdk := range sdks {
		source, driver := readAll(t, sdk.sources), readAll(t, sdk.driver)
		for _, row := range rows {
			for _, name := range quoted.FindAllStringSubmatch(strings.Split(row, "|")[i+2], -1) {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name[1]) + `\b`).MatchString(source) {
					t.Errorf("%s have no %s", sdk.sources, name[1])
				}
			}
		}
		for _, part := range quoted.FindAllStringSubmatch(parts, -1) {
			if !strings.Contains(driver, `"`+part[1]+`"`) {
				t.Errorf("%s has not the part %s", sdk.driver, part[1])
			}
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

var (
	onPage   = regexp.MustCompile(`"(do|event)":"(\w+)"`)
	inScript = map[string]*regexp.Regexp{
		"do":    regexp.MustCompile(`\.(?:say|ask)\("(\w+)"|answer\("(\w+)"`),
		"event": regexp.MustCompile(`\.(?:want|never)\("(\w+)"|wantWithin\([^"]*"(\w+)"`),
	}
)

// The page of lines has all commands and events that the scripts use, and the scripts use all that it has.
func TestLinesOfThePageAreThoseOfTheScripts(t *testing.T) {
	page, err := os.ReadFile("../../docs/sdk-lines.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{"do exit": true, "event ready": true}
	for _, m := range onPage.FindAllStringSubmatch(string(page), -1) {
		shown[m[1]+" "+m[2]] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"do exit": true, "event ready": true}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		source, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for kind, pattern := range inScript {
			for _, m := range pattern.FindAllStringSubmatch(string(source), -1) {
				used[kind+" "+m[1]+m[2]] = true
			}
		}
	}
	for name := range shown {
		if !used[name] {
			t.Errorf("no script uses the line %s", name)
		}
	}
	for name := range used {
		if !shown[name] {
			t.Errorf("the page does not show the line %s", name)
		}
	}
}
