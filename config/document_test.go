package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	document  = "../docs/config.md"
	tableHead = "| Setting | Default | Values | Meaning |\n|---|---|---|---|\n"
)

// TestTheDocumentIsFresh compares the table of docs/config.md with the settings, and
// writes that table with -rewrite. The text around it is written by hand.
func TestTheDocumentIsFresh(t *testing.T) {
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(got), tableHead)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table that begins with\n%s", document, tableHead)
	}
	want := before + tableHead + tableRows() + "\n" + after
	if want == string(got) {
		return
	}
	if !*rewrite {
		t.Fatal("docs/config.md is not what the table says: run \"go generate ./config\"")
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tableRows is one row for each setting of the server.
func tableRows() string {
	var text strings.Builder
	rows := Table(&Serve{})
	for i := range rows {
		s := &rows[i]
		byDefault := "none"
		if s.Default != "" {
			byDefault = "`" + s.Default + "`"
		}
		fmt.Fprintf(&text, "| `%s`<br>`%s`<br>`%s` | %s | %s | %s |\n", s.Name, s.Flag(), s.Env(),
			byDefault, values(s), strings.ReplaceAll(s.Help, "|", "\\|"))
	}
	return text.String()
}

// values says which values a setting takes.
func values(s *Setting) string {
	switch {
	case s.Enum != nil:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Range != "":
		low, high := s.bounds()
		return format(low) + " to " + format(high)
	}
	switch s.value().(type) {
	case bool:
		return "`true`, `false`"
	case Hosts, Origins, Networks:
		return "several, as a flag that is repeated, with commas between, or as a list in the file"
	}
	return "text"
}
