package main

import (
	"strings"
	"testing"

	"codeq/client"
	"codeq/wire"
)

func watchSample(tt *terminal, id wire.TaskID) *watchView {
	v := &watchView{app: tt.app, id: id}
	v.lines = tt.app.table(v.columns()...)
	return v
}

func granted(id wire.TaskID) *client.News {
	return &client.News{Event: &wire.WatchEvent{
		ID: "0", Number: 7, AtMs: 1_796_000_000_123, Task: id, Command: "mail", From: wire.LocationPending, To: wire.LocationInProgress,
		Status: wire.StatusInProgress, Cause: "grant", Worker: "box-7", Delivery: 2, Attempts: 1, SpentMs: 1412,
	}}
}

func TestE17WatchPrintsOneLineATransition(t *testing.T) {
	id := wire.TaskID{15: 7}
	tt := newTerminal("")
	v := watchSample(tt, wire.TaskID{})
	for range 2 {
		if over, err := v.show(granted(id)); over || err != nil {
			t.Fatal(over, err)
		}
	}
	const line = "2026-11-30T00:53:20.123Z  00000000-0000-0000-0000-000000000007  mail          grant          in progress   " +
		"worker box-7, delivery 2, failed 1, ready for 1.412s\n"
	if got := tt.out.String(); got != line+line {
		t.Errorf("printed is\n%swant twice\n%s", got, line)
	}
	tt = newTerminal("")
	tt.app.outIsTerminal = true
	if _, err := watchSample(tt, id).show(granted(id)); err != nil {
		t.Fatal(err)
	}
	if got := tt.out.String(); strings.Contains(got, "000007") || !strings.Contains(got, ":53:20.123  grant ") {
		t.Errorf("of one task on a terminal printed is %s", got)
	}
	tt = newTerminal("")
	tt.app.JSON = true
	if _, err := watchSample(tt, id).show(granted(id)); err != nil {
		t.Fatal(err)
	}
	has(t, tt.out.String(), `{"type":"event","id":"0","shard":0,"n":7,`, `"cause":"grant"`)
}

func TestE17WatchSaysWhatIsMissing(t *testing.T) {
	for reason, want := range map[string]string{
		wire.GapEvicted: "does not have them any more", wire.GapSlow: "read too slowly", wire.GapSampled: "more than 1000 in a second",
		client.GapReplaced: "other data than before", "new": "12 events are missing here\n",
	} {
		tt := newTerminal("")
		tt.app.Quiet = true
		if _, err := watchSample(tt, wire.TaskID{}).show(&client.News{Gap: &wire.WatchGap{Reason: reason, Missed: 12}}); err != nil {
			t.Fatal(err)
		}
		has(t, tt.err.String(), want)
	}
}

// A task is watched to its end, which is the exit code; tasks of a queue are watched on.
func TestE17WatchEndsWithItsTask(t *testing.T) {
	id := wire.TaskID{15: 7}
	for _, end := range []struct {
		status wire.Status
		at     wire.Location
		code   int
		said   string
	}{
		{wire.StatusCompleted, wire.LocationNone, exitFine, ""},
		{wire.StatusFailed, wire.LocationDead, exitFailed, "is FAILED"},
		{wire.StatusCancelled, wire.LocationNone, exitFailed, "is CANCELLED"},
		{wire.StatusPending, "", exitNotThere, "was removed before it ended"},
		{wire.StatusCompleted, "", exitFine, ""},
	} {
		moved := granted(id)
		moved.Event.Status, moved.Event.To = end.status, end.at
		over, err := watchSample(newTerminal(""), id).show(moved)
		if !over || exitCode(err) != end.code || err != nil && !strings.Contains(err.Error(), end.said) {
			t.Errorf("%s at %q: over %t, %v", end.status, end.at, over, err)
		}
		if over, err := watchSample(newTerminal(""), wire.TaskID{}).show(moved); over || err != nil {
			t.Errorf("a queue: %t, %v", over, err)
		}
		if end.at == "" {
			continue
		}
		task := &client.News{Task: &wire.Task{ID: id, Command: "mail", Status: end.status, Location: end.at}}
		if over, err := watchSample(newTerminal(""), id).show(task); !over || exitCode(err) != end.code {
			t.Errorf("%s at the beginning: over %t, %v", end.status, over, err)
		}
	}
	if code, _, errs := codeq("", "watch", id.String(), "--cause", "nack"); code != exitWrong || !strings.Contains(errs, "--cause is for the tasks of a queue") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := codeq("", "--url", nowhere, "watch", "mail"); code != exitAgain {
		t.Errorf("without a server: exit code %d, %s", code, errs)
	}
	if code, _, errs := codeq("", "--url", nowhere, "top"); code != exitAgain {
		t.Errorf("without a server: exit code %d, %s", code, errs)
	}
}
