package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// fields collects the rows of a table of names and values.
type fields struct{ rows [][2]string }

// add adds a row, unless the value is empty.
func (f *fields) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name, value})
	}
}

// write prints the rows in two columns; lines of a longer value stay in theirs.
func (f *fields) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, row := range f.rows {
		name := row[0]
		for line := range strings.SplitSeq(strings.TrimRight(oneCell(row[1]), "\n"), "\n") {
			fmt.Fprintf(w, "%s\t%s\n", name, line)
			name = ""
		}
	}
	return flush(w)
}

// oneCell keeps text from outside in its cell.
func oneCell(text string) string { return strings.ReplaceAll(printable(text), "\t", "    ") }

func flush(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// moment is a time for people, empty for none.
func moment(unixMs int64) string {
	if unixMs == 0 {
		return ""
	}
	return time.UnixMilli(unixMs).Format("2006-01-02 15:04:05.000 -0700")
}

// writeLine prints an answer as it came, as one line.
func (a *app) writeLine(data []byte) error {
	if _, err := fmt.Fprintf(a.out, "%s\n", data); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// writeJSON prints what this program itself has to say, as one line.
func (a *app) writeJSON(answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return a.writeLine(line)
}
