package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"codeq/wire"
)

const (
	// gapCells is the space between two columns.
	gapCells = 2
	// plainWidth is the width of a terminal that does not tell its own.
	plainWidth = 80
)

// The colours of states, as terminals are told them.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	plain  = "\x1b[0m"
)

// colours are those of the states of tasks, sessions and queues.
var colours = map[string]string{
	string(wire.StatusCompleted): green, string(wire.StatusFailed): red, string(wire.StatusCancelled): yellow,
	string(wire.StatusInProgress): blue,

	"live": green, "draining": yellow, "grace": yellow,

	"yes": yellow, "deleting": red, // paused
}

// column is one column of a table.
type column struct {
	name string
	// least is the width in cells to which a value may be cut; 0 is for values that are
	// of use only whole, like ids.
	least int
	// spare says which columns are left out where the others do not fit: the largest
	// first, and never those with 0.
	spare int
	// state: the values may have colours.
	state bool
}

// table is rows of values. On a terminal they fit its width; elsewhere every value is
// whole. It belongs to one goroutine.
type table struct {
	app     *app
	columns []column
	rows    [][]string
}

func (a *app) table(columns ...column) *table { return &table{app: a, columns: columns} }

// row adds a row: a value for each column. An empty one is shown as -.
func (t *table) row(values ...any) {
	cells := make([]string, len(values))
	for i, value := range values {
		if cells[i] = oneLine(fmt.Sprint(value)); cells[i] == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// line prints one row at once, whole and without the names of the columns: each column is
// as wide as its least.
func (t *table) line(values ...any) error {
	t.rows = nil
	t.row(values...)
	widths := make([]int, len(t.columns))
	for i, cell := range t.rows[0] {
		widths[i] = max(t.columns[i].least, uniseg.StringWidth(cell))
	}
	return t.app.print(t.appendLine(nil, widths, t.rows[0]))
}

// write prints the names of the columns and the rows.
func (t *table) write() error { return t.app.print(t.page()) }

// page is the names of the columns and the rows.
func (t *table) page() []byte {
	names := make([]string, len(t.columns))
	for i := range t.columns {
		names[i] = t.columns[i].name
	}
	t.rows = append([][]string{names}, t.rows...)
	widths := t.fit()
	var page []byte
	for _, cells := range t.rows {
		page = t.appendLine(page, widths, cells)
	}
	return page
}

// fit is the width of each column in cells, 0 for one that is left out. What still
// does not fit then is wrapped by the terminal.
func (t *table) fit() []int {
	widths := make([]int, len(t.columns))
	for _, cells := range t.rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	if t.app.outWidth == 0 {
		return widths
	}
	for t.over(widths, true) > 0 && t.leaveOut(widths) {
	}
	for range t.over(widths, false) {
		widest := -1
		for i, c := range t.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// over is how many cells a line has too many. With cut every value counts as short as it may
// be cut.
func (t *table) over(widths []int, cut bool) int {
	sum := -gapCells
	for i, width := range widths {
		if width == 0 {
			continue
		}
		if least := t.columns[i].least; cut && least > 0 {
			width = min(width, least)
		}
		sum += width + gapCells
	}
	return sum - t.app.outWidth
}

// leaveOut leaves out the column that can be spared most, and reports whether there
// was one.
func (t *table) leaveOut(widths []int) bool {
	most := -1
	for i, c := range t.columns {
		if widths[i] > 0 && c.spare > 0 && (most < 0 || c.spare > t.columns[most].spare) {
			most = i
		}
	}
	if most >= 0 {
		widths[most] = 0
	}
	return most >= 0
}

// appendLine appends one line, without blanks at its end.
func (t *table) appendLine(dst []byte, widths []int, cells []string) []byte {
	blanks := 0
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		cell = cutTo(cell, widths[i])
		dst = append(dst, strings.Repeat(" ", blanks)...)
		if colour := colours[cell]; colour != "" && t.columns[i].state && t.app.coloured() {
			dst = append(append(append(dst, colour...), cell...), plain...)
		} else {
			dst = append(dst, cell...)
		}
		blanks = widths[i] - uniseg.StringWidth(cell) + gapCells
	}
	return append(bytes.TrimRight(dst, " "), '\n')
}

// cutTo is a text of at most so many cells. A cut one ends in a mark, and never within
// a character.
func cutTo(text string, cells int) string {
	if uniseg.StringWidth(text) <= cells {
		return text
	}
	kept, left, state := 0, cells-1, -1
	for rest := text; ; {
		cluster, next, width, after := uniseg.FirstGraphemeClusterInString(rest, state)
		if width > left {
			return text[:kept] + "…"
		}
		kept, left, rest, state = kept+len(cluster), left-width, next, after
	}
}

// fields collects the rows of a table of names and values.
type fields struct{ rows [][2]string }

// add adds a row, unless the value is empty.
func (f *fields) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name, value})
	}
}

// write prints the rows in two columns, every value whole; lines of a longer value stay
// in theirs.
func (f *fields) write(a *app) error {
	t := a.table(column{}, column{})
	name := 0
	for _, row := range f.rows {
		name = max(name, uniseg.StringWidth(row[0]))
	}
	widths := []int{name, math.MaxInt32}
	var page []byte
	for _, row := range f.rows {
		t.columns[1].state = row[0] == "status"
		name := row[0]
		for line := range strings.SplitSeq(strings.TrimRight(oneCell(row[1]), "\n"), "\n") {
			page = t.appendLine(page, widths, []string{name, line})
			name = ""
		}
	}
	return a.print(page)
}

// oneCell keeps text from outside in its column.
func oneCell(text string) string { return strings.ReplaceAll(printable(text), "\t", "    ") }

// oneLine keeps text from outside in its line.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(oneCell(text)), "\n", `\n`)
}

// times is the flag of commands that show times.
type times struct {
	UTC bool `name:"utc" help:"Show times as 2030-01-02T15:04:05.000Z on a terminal, too."`
}

// AfterApply is called by kong once the flags of the command are read.
func (t *times) AfterApply(a *app) error {
	a.utc = t.UTC
	return nil
}

// moment is a time, empty for none: for people at a terminal how far away it is, for
// everybody else and with --utc as the server says it.
func (a *app) moment(unixMs int64) string {
	switch {
	case unixMs == 0:
		return ""
	case a.outIsTerminal && !a.utc:
		return distance(time.Until(time.UnixMilli(unixMs)))
	}
	return strings.Trim(string(wire.AppendTimeMs(nil, unixMs)), `"`)
}

// distance is how far away a time is that comes after so long, in the largest unit that
// fits. One that has passed is negative.
func distance(until time.Duration) string {
	const day = 24 * time.Hour
	far, unit, name := until.Abs(), day, "d"
	switch {
	case far < time.Second:
		return "now"
	case far < time.Minute:
		unit, name = time.Second, "s"
	case far < time.Hour:
		unit, name = time.Minute, "m"
	case far < 2*day:
		unit, name = time.Hour, "h"
	}
	if until < 0 {
		return fmt.Sprintf("%d%s ago", far/unit, name)
	}
	return fmt.Sprintf("in %d%s", far/unit, name)
}

// widthOf is the width of a terminal in cells, 0 for anything else, which has none.
func widthOf(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return plainWidth
}

// coloured reports whether states have colours.
func (a *app) coloured() bool {
	return a.outIsTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// print writes text for people.
func (a *app) print(text []byte) error {
	_, err := a.out.Write(text) // an error says that it is standard output
	return err
}

// printText prints text from outside.
func (a *app) printText(text string) error { return a.print([]byte(printable(text))) }

// writeLine prints an answer as it came, as one line.
func (a *app) writeLine(data []byte) error {
	_, err := fmt.Fprintf(a.out, "%s\n", data) // as above
	return err
}

// writeJSON prints what this program itself has to say, as one line.
func (a *app) writeJSON(answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return a.writeLine(line)
}
