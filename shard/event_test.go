package shard

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"codeq/record"
	"codeq/wire"
)

// eventsWorld runs messages of the scripts and keeps the events.
type eventsWorld struct {
	*scriptWorld
	events []Event
}

func (w *eventsWorld) rounds(t *testing.T, input string) {
	t.Helper()
	var messages []Message
	for line := range strings.Lines(input) {
		m, err := w.parse(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	messages = append(messages, w.control...)
	w.control = nil
	for again := true; again; {
		out := w.core.Round(w.nowMs, messages)
		messages = messages[out.Taken:]
		w.events = append(w.events, out.Events...)
		w.describe(new(strings.Builder), out) // names the tokens
		if _, err := w.store.Span(0).Apply(); err != nil {
			t.Fatal(err)
		}
		again = out.Again || len(messages) > 0
	}
}

func TestEventsSayHowLongATaskWasWhereAndWhoHadIt(t *testing.T) {
	w := &eventsWorld{scriptWorld: newScriptWorld(t)}
	pass := func(d time.Duration) { w.nowMs += d.Milliseconds() }
	w.rounds(t, "enqueue p id=1 delay=2")
	pass(3 * time.Second) // a second late
	w.rounds(t, "")
	pass(500 * time.Millisecond)
	w.rounds(t, "subscribe ada ref=1 lease=60 window=2")
	pass(time.Second)
	w.rounds(t, "nack ada ref=2 task=1 token=t1 delay=4")
	pass(4 * time.Second)
	w.rounds(t, "")
	pass(250 * time.Millisecond)
	w.load() // the restart ends the session, whose lease lapses
	w.consumers = map[string]*scriptConsumer{}
	pass(90 * time.Second)
	w.rounds(t, "")
	w.rounds(t, "subscribe bob ref=3 lease=60 window=1")
	pass(time.Second)
	w.rounds(t, "result bob ref=4 task=1 token=t3")
	want := []string{
		`1 "" DELAYED_ZSET enqueue delivery 0 attempts 0 by "" spent 0 total 0`,
		`2 "DELAYED_ZSET" PENDING_LIST due delivery 0 attempts 0 by "" spent 3000 total 0`,
		`3 "PENDING_LIST" INPROG_SET grant delivery 1 attempts 0 by "ada" spent 500 total 0`,
		`4 "INPROG_SET" DELAYED_ZSET nack delivery 1 attempts 1 by "ada" spent 1000 total 0`,
		`5 "DELAYED_ZSET" PENDING_LIST due delivery 1 attempts 1 by "" spent 4000 total 0`,
		`6 "PENDING_LIST" INPROG_SET grant delivery 2 attempts 1 by "ada" spent 0 total 0`,
		`7 "INPROG_SET" PENDING_LIST session_gone delivery 2 attempts 2 by "ada" spent 90250 total 0`,
		`8 "PENDING_LIST" INPROG_SET grant delivery 3 attempts 2 by "bob" spent 0 total 0`,
		`9 "INPROG_SET" NONE result delivery 3 attempts 2 by "bob" spent 1000 total 99750`,
	}
	for i := range max(len(want), len(w.events)) {
		if i >= len(want) || i >= len(w.events) {
			t.Fatalf("%d events, want %d", len(w.events), len(want))
		}
		e := &w.events[i]
		if got := fmt.Sprintf("%d %q %v %v delivery %d attempts %d by %q spent %d total %d", e.Number, e.From, e.To, e.Cause,
			e.Delivery, e.Attempts, e.Worker, e.SpentMs, e.TotalMs); got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
		if e.Queue == 0 || e.Queue != w.events[0].Queue && i < 6 {
			t.Errorf("event %d is of the queue %d", e.Number, e.Queue)
		}
	}
}

func TestATaskWhoseRecordIsGoneLeavesWithAnEvent(t *testing.T) {
	w := &eventsWorld{scriptWorld: newScriptWorld(t)}
	w.retention = Retention{DoneForMs: 60_000, DeadForMs: 60_000}
	w.load()
	w.rounds(t, "subscribe ada ref=1 lease=60 window=1\nenqueue p id=1 key=one max-attempts=1\nenqueue p id=2 key=two\nenqueue p id=3 delay=5\nenqueue p id=4")
	w.rounds(t, "nack ada ref=2 task=1 token=t1\ncancel p ref=2 task=2")
	for n := range 4 {
		w.store.Span(0).Batch().DeleteTask(w.taskID(n+1), record.Absent{})
	}
	if _, err := w.store.Span(0).Apply(); err != nil {
		t.Fatal(err)
	}
	w.events = nil
	w.consumers = map[string]*scriptConsumer{}
	w.load() // so that no record is in memory
	w.nowMs += 61_000
	w.rounds(t, "subscribe bob ref=3 lease=60 window=1")
	w.rounds(t, "subscribe bob ref=3 lease=60 window=1")
	left := map[wire.Location]wire.TaskID{}
	for _, e := range w.events {
		if e.Cause != record.CauseUnreadable || e.To != removed || e.Queue == 0 || e.Tenant != "default" || e.Command != "a" {
			t.Errorf("event %+v", e)
		}
		left[e.From] = e.TaskID
	}
	want := map[wire.Location]wire.TaskID{
		wire.LocationDead: w.taskID(1), wire.LocationNone: w.taskID(2), wire.LocationDelayed: w.taskID(3), wire.LocationPending: w.taskID(4),
	}
	if !maps.Equal(left, want) || len(w.events) != len(want) {
		t.Errorf("%d events, from %v, want from %v", len(w.events), left, want)
	}
	if counters := w.core.queueOf(record.QueueKey{Tenant: "default", Command: "a"}).index.Counters(); !counters.IsZero() {
		t.Errorf("the queue still counts %+v", counters)
	}
}
