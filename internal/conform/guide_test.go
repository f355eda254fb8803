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
