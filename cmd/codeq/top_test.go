package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"codeq/client"
	"codeq/wire"
)

// topSample has three queues: "ads" is busy, "billing.mail" has old tasks and is paused,
// "billing.pdf" has nothing.
func topSample(tt *terminal, sort string) *topView {
	queue := func(command string, figures map[int]int64) client.WatchedQueue {
		q := client.WatchedQueue{TenantID: "default", Command: command}
		for i, n := range figures {
			q.Figures[i] = n
		}
		return q
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
	return &topView{
		topCmd: &topCmd{}, app: tt.app, sort: slices.IndexFunc(topColumns, func(c topColumn) bool { return c.word() == sort }),
		topFigures: topFigures{
			queues: []client.WatchedQueue{
				queue("ads", map[int]int64{wire.FigureReady: 40, wire.FigureInPer: 35, wire.FigureCompletedPer: 34, wire.FigureWaitP99: 1412, wire.FigureOldestReadyAt: ago(5 * time.Second)}),
				queue("billing.mail", map[int]int64{wire.FigureReady: 7, wire.FigureDead: 2, wire.FigurePaused: 1, wire.FigureOldestReadyAt: ago(90 * time.Minute)}),
				queue("billing.pdf", nil),
			},
			workers: map[string]int64{"ads": 3, wire.AllCommands: 1},
		},
	}
}

// commandsOf are the queues of a table in their order.
func commandsOf(v *topView) string {
	var all []string
	for _, q := range v.rows() {
		all = append(all, q.Command)
	}
	return strings.Join(all, " ")
}

func TestE17TopSortsByEachColumn(t *testing.T) {
	const mailFirst, adsFirst = "billing.mail ads billing.pdf", "ads billing.mail billing.pdf"
	firstOf := map[string]string{"dead": mailFirst, "paused": mailFirst, "oldest-ready": mailFirst}
	for i := range topColumns {
		word := topColumns[i].word()
		v := topSample(newTerminal(""), word)
		want := firstOf[word]
		if want == "" {
			want = adsFirst
		}
		if got := commandsOf(v); got != want {
			t.Errorf("by %s the queues are %s, want %s", word, got, want)
		}
	}
	v := topSample(newTerminal(""), "command")
	if v.key("r"); commandsOf(v) != "billing.pdf billing.mail ads" {
		t.Errorf("turned around the queues are %s", commandsOf(v))
	}
}

// --sort takes the name of each column, and no other.
func TestE17TopSortsByTheColumnsThatThereAre(t *testing.T) {
	var words []string
	for i := range topColumns {
		words = append(words, topColumns[i].word())
	}
	i := slices.IndexFunc(grammar().Leaves(true), func(n *kong.Node) bool { return n.Path() == "queue top" })
	for _, flag := range grammar().Leaves(true)[i].Flags {
		if flag.Name == "sort" && flag.Enum != strings.Join(words, ",") {
			t.Errorf("--sort takes %s, and the columns are %s", flag.Enum, strings.Join(words, ","))
		}
	}
}

func TestE17TopTableFitsAndSaysWhatItCounts(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	for width := 60; width <= 200; width++ {
		tt := newTerminal("")
		tt.app.outWidth, tt.app.outIsTerminal = width, true
		v := topSample(tt, "ready")
		if err := v.table().write(); err != nil {
			t.Fatal(err)
		}
		has(t, tt.out.String(), "COMMAND", "READY", "DEAD", "FAILED/S", "ads", "1h ago")
		fits(t, tt.out.String(), max(width, 70))
	}
	tt := newTerminal("")
	v := topSample(tt, "ready")
	v.queues[2].TenantID = "acme"
	if err := v.table().write(); err != nil {
		t.Fatal(err)
	}
	// A worker for all commands takes those of each queue.
	if !slices.Equal(strings.Fields(strings.Split(tt.out.String(), "\n")[3])[:5], []string{"acme/billing.pdf", "0", "0", "0", "0"}) ||
		!strings.Contains(tt.out.String(), "1.412s") || !strings.Contains(tt.out.String(), " 4 ") {
		t.Errorf("the table is\n%s", tt.out)
	}
	if v.workers = nil; strings.Contains(string(v.table().page()), " 4 ") {
		t.Error("workers are counted that are not known")
	}
}

func TestE17TopInJSONHasALineForEachQueue(t *testing.T) {
	tt := newTerminal("")
	v := topSample(tt, "ready")
	if err := v.writeRows(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(tt.out.String()), "\n")
	var first struct {
		Command, OldestReadyAt                string
		Ready, InPerSecond, Workers, RunP99Ms int64
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v: %s", len(lines), err, tt.out)
	}
	if first.Command != "ads" || first.Ready != 40 || first.InPerSecond != 35 || first.Workers != 4 || !strings.HasSuffix(first.OldestReadyAt, "Z") {
		t.Errorf("the first queue is %s", lines[0])
	}
}

func TestE17TopKeys(t *testing.T) {
	v := topSample(newTerminal(""), "ready")
	v.app.outWidth = 150
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			if v.key(k) {
				t.Fatalf("%q ends the command", k)
			}
		}
	}
	press("/", "b", "i", "q", "\x7f", "l", "\x1b[A", "x", "\b")
	if v.Filter != "bil" || !v.typing || commandsOf(v) != "billing.mail billing.pdf" {
		t.Errorf("the filter is %q of %s", v.Filter, commandsOf(v))
	}
	has(t, fmt.Sprintf("%s", v.lines(24, "")), "filter: bil_", "billing.mail")
	press("\r", ">")
	if v.typing || topColumns[v.sort].word() != "delayed" {
		t.Errorf("sorted by %s", topColumns[v.sort].word())
	}
	press("<", "<", "<")
	if topColumns[v.sort].word() != "paused" {
		t.Errorf("sorted by %s", topColumns[v.sort].word())
	}
	if press("\x1b", "\x1b[B", "x"); v.Filter != "" || commandsOf(v) != "billing.mail ads billing.pdf" {
		t.Errorf("the filter is %q of %s", v.Filter, commandsOf(v))
	}
	has(t, fmt.Sprintf("%s", v.lines(24, "")), "queues 3", "ready 47", "sorted by PAUSED, largest first")
	has(t, fmt.Sprintf("%s", v.lines(24, "codeq: connection lost")), "connection lost")
	if lines := v.lines(3, ""); len(lines) != 3 {
		t.Errorf("%d lines on a screen of 3", len(lines))
	}
	for _, quit := range []string{"q", "\x03"} {
		if !v.key(quit) {
			t.Errorf("%q does not end the command", quit)
		}
	}
	v.typing = true
	if v.key("q") || !v.key("\x03") {
		t.Error("q is a letter of the filter, and Ctrl-C is not")
	}
}
