package docs

import (
	"os"
	"strings"
	"testing"
)

// example is one fenced block of a page that is replayed, or a direction
// to the replay in a comment of the page.
type example struct {
	page  string
	line  int      // where the block begins
	kind  string   // "http", "session" or "replay"
	words []string // what follows the kind
	lines []string // of the block
}

// says reports a word behind the kind.
func (e *example) says(word string) bool {
	for _, w := range e.words {
		if w == word {
			return true
		}
	}
	return false
}

const (
	mark      = "```"
	direction = "<!-- replay: "
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// examplesOf lists the examples of a page in their order. Blocks marked text
// are for people only.
func examplesOf(t *testing.T, name, page string) []example {
	t.Helper()
	var all []example
	var open *example
	number := 0
	for line := range strings.Lines(page) {
		number++
		line = strings.TrimRight(line, "\n")
		switch {
		case open != nil && line == mark:
			all, open = append(all, *open), nil
		case open != nil:
			open.lines = append(open.lines, line)
		case strings.HasPrefix(line, mark):
			words := strings.Fields(strings.TrimPrefix(line, mark))
			if len(words) == 0 {
				t.Fatalf("%s:%d: a block without a kind: http, session or text", name, number)
			}
			open = &example{page: name, line: number, kind: words[0], words: words[1:]}
		case strings.HasPrefix(line, direction):
			text := strings.TrimSuffix(strings.TrimPrefix(line, direction), " -->")
			all = append(all, example{page: name, line: number, kind: "replay", lines: []string{text}})
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block does not end", name, open.line)
	}
	return all
}

// cells are the trimmed cells of each row of the table that follows a heading,
// head and rule left out.
func cells(t *testing.T, page, heading string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut("\n"+page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 || strings.HasPrefix(line, "#") {
				break
			}
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	if len(rows) < 3 {
		t.Fatalf("there is no table below %q", heading)
	}
	return rows[2:]
}
