package conform

import (
	"os"
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
