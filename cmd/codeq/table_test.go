package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"codeq/wire"
)

// wideLetters are two cells each, the last one a character of several code points.
const wideLetters = "請求書番号が見つからない👩‍🚀"

func deadSample(worker, reason string) []*wire.Task {
	return []*wire.Task{{
		ID: wire.TaskID{15: 7}, Status: wire.StatusFailed, DeadCause: wire.DeadReleased, Attempts: 5, MaxAttempts: 5, Deliveries: 6,
		WorkerID: worker, UpdatedAtMs: time.Now().Add(-20 * time.Minute).UnixMilli(), Error: reason,
	}}
}

func TestU11TablesFitTheWidthAndKeepTheIDs(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("long ", 40), strings.Repeat(wideLetters, 10)} {
		for width := 60; width <= 220; width++ {
			tt := newTerminal("")
			tt.app.outWidth, tt.app.outIsTerminal = width, true
			for _, show := range []func([]*wire.Task) error{tt.app.taskTable, tt.app.deadTable} {
				if err := show(deadSample(text, text)); err != nil {
					t.Fatal(err)
				}
			}
			has(t, tt.out.String(), "00000000-0000-0000-0000-000000000007", "20m ago", "TASK")
			fits(t, tt.out.String(), max(width, 80))
		}
	}
}

// fits wants lines of so many cells at most.
func fits(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(strings.NewReplacer(red, "", plain, "").Replace(text)) {
		if cells := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); cells > width {
			t.Errorf("a line has %d cells of %d: %s", cells, width, line)
		}
	}
}

func TestU11NothingIsCutWhereThereIsNoTerminal(t *testing.T) {
	tt := newTerminal("")
	reason := strings.Repeat(wideLetters, 30) + "\nsecond\tline"
	if err := tt.app.deadTable(deadSample("box-7", reason)); err != nil {
		t.Fatal(err)
	}
	has(t, tt.out.String(), oneCell(strings.Repeat(wideLetters, 30))+"\n", "DELIVERIES", "WORKER")
	if n := strings.Count(tt.out.String(), "\n"); n != 2 {
		t.Errorf("two rows are %d lines: %s", n, tt.out)
	}
}

// A list shows the line of an error that says why; a task shows all of it once.
func TestListsShowTheFirstLineOfAnError(t *testing.T) {
	tt := newTerminal("")
	dead := deadSample("box-7", "\nlast is why\n\nfirst\nsecond")
	dead[0].History = []wire.HistoryLine{{Delivery: 6, Cause: "nack", Error: dead[0].Error}}
	for _, show := range []func([]*wire.Task) error{tt.app.taskTable, tt.app.deadTable} {
		if err := show(dead); err != nil {
			t.Fatal(err)
		}
	}
	if err := tt.app.reasonTable([]wire.DeadReason{{Error: dead[0].Error, Example: "why of 7\n\nfirst"}}); err != nil {
		t.Fatal(err)
	}
	if listed := tt.out.String(); strings.Count(listed, "last is why") != 3 || strings.Contains(listed, "first") || strings.Contains(listed, `\n`) {
		t.Errorf("the lists are\n%s", listed)
	}
	sheet := newTerminal("")
	if err := sheet.app.taskSheets(dead); err != nil {
		t.Fatal(err)
	}
	has(t, sheet.out.String(), "second\n", "delivery 6  nack: last is why\n")
	if strings.Count(sheet.out.String(), "first") != 1 {
		t.Errorf("the task is\n%s", sheet.out)
	}
}

// On a terminal of 80 columns, too, a list of delayed tasks says when they are due, and
// one of those in progress when their lease ends.
func TestListsShowWhatTasksWaitFor(t *testing.T) {
	for name, task := range map[string]*wire.Task{
		"DUE":        {Location: wire.LocationDelayed, Status: wire.StatusPending, VisibleAtMs: time.Now().Add(90 * time.Minute).UnixMilli()},
		"LEASE ENDS": {Location: wire.LocationInProgress, Status: wire.StatusInProgress, LeaseUntilMs: time.Now().Add(90 * time.Minute).UnixMilli()},
	} {
		task.WorkerID, task.Error, task.MaxAttempts = "box-7:4711", "the ledger does not answer", 5
		tt := newTerminal("")
		tt.app.outWidth, tt.app.outIsTerminal = 80, true
		if err := tt.app.taskTable([]*wire.Task{task}); err != nil {
			t.Fatal(err)
		}
		has(t, tt.out.String(), name, "in 1h")
		fits(t, tt.out.String(), 80)
	}
}

func TestU11ValuesAreCutBetweenCharacters(t *testing.T) {
	for cells := 1; cells < 40; cells++ {
		cut := cutTo(wideLetters, cells)
		if uniseg.StringWidth(cut) > cells || cut != wideLetters && (!strings.HasSuffix(cut, "…") || !strings.HasPrefix(wideLetters, strings.TrimSuffix(cut, "…"))) {
			t.Errorf("%d cells: %q has %d", cells, cut, uniseg.StringWidth(cut))
		}
	}
	if cut := cutTo("日本", 3); cut != "日…" {
		t.Errorf("got %q", cut)
	}
}

func TestU11DistancesAreInTheLargestUnit(t *testing.T) {
	for until, want := range map[time.Duration]string{
		0: "now", -999 * time.Millisecond: "now", -time.Second: "1s ago", 59 * time.Second: "in 59s", -20 * time.Minute: "20m ago",
		5*time.Minute + 30*time.Second: "in 5m", -47 * time.Hour: "47h ago", -48 * time.Hour: "2d ago", 400 * 24 * time.Hour: "in 400d",
	} {
		if got := distance(until); got != want {
			t.Errorf("%s is %q, want %q", until, got, want)
		}
	}
}

func TestU11TimesAreStampsButForPeople(t *testing.T) {
	a := &app{}
	stamp := "2026-11-28T00:31:07.166Z"
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.moment(at.UnixMilli()); got != stamp {
		t.Errorf("off a terminal: %q", got)
	}
	a.outIsTerminal = true
	if got := a.moment(time.Now().Add(-90 * time.Minute).UnixMilli()); got != "1h ago" {
		t.Errorf("on a terminal: %q", got)
	}
	a.utc = true
	if got := a.moment(at.UnixMilli()); got != stamp {
		t.Errorf("with --utc: %q", got)
	}
	if got := a.moment(0); got != "" {
		t.Errorf("no time is %q", got)
	}
}
