package record

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"codeq/wire"
)

// fullRecord has every field set, so that a field that is forgotten shows.
func fullRecord(t testing.TB) *Task {
	t.Helper()
	id, ok := wire.ParseTaskID("018f2b1c-5e00-7abc-8def-0123456789ab")
	if !ok {
		t.Fatal("bad id")
	}
	r := &Task{
		ID: id, Command: "render:page", Tenant: "acme/eu", Priority: 9,
		Status: wire.StatusFailed, Location: wire.LocationDead,
		Attempts: 2, MaxAttempts: 5, PayloadBytes: len(`{"a":"é"}`),
		CreatedAtMs: 1_700_000_000_001, UpdatedAtMs: 1_700_000_000_002,
		Seq: 1<<64 - 1, DueAtMs: 1_700_000_000_003, EndedAtMs: 1_700_000_000_004,
		ExpiresAtMs: 1_700_000_000_005, Expired: true, TimeoutSeconds: 90,
		Deliveries: 3, LastToken: wire.Token{1, 2, 3}, LastSubject: "ada", LastWorkerID: "w \"1\"", LastOverHTTP: true,
		ResultToken: wire.Token{4, 5, 6}, Releases: 7, Losses: 8, Undelivered: 9,
		DeadCause: wire.DeadFailed, Error: "line 1\nline 2\x00\\", IdempotencyKey: "é/☃/\U0001F600", Fingerprint: [32]byte{31: 1},
		TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TraceState: "a=b", Labels: "customer=acme\nrun=é", Handled: true, ConcurrencyKey: "acme/é", Webhook: "https://h/x", Progress: `{"percent":40}`, Printed: true,
		Files:   Files{Begun: 3, Listed: `{"artifacts":[]}`},
		Payload: `{"a":"é"}`, OutcomeHere: true, Result: `{"x":1}`, Newer: "\x87\x01z",
	}
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("field %s is not set", v.Type().Field(i).Name)
		}
	}
	return r
}

func fullLease() *Lease {
	return &Lease{
		Token: wire.Token{9, 8, 7}, Delivery: 3, Session: wire.SessionID{5, 4, 3}, OverHTTP: true, Subject: "ada",
		WorkerID: "w1", DeadlineMs: 1_700_000_030_000, LeaseForMs: 20_000, GrantedAtMs: 1_700_000_000_000,
		RunUntilMs: 1_700_000_090_000, Progress: `{"percent":40}`, Printed: true,
		Files: Files{Begun: 2, Listed: `{"artifacts":[{}]}`}, Newer: "\x40\x01",
	}
}

func fullCounters() *Counters {
	return &Counters{
		Ready: [Priorities]int64{1, 0, 3}, ReadyWatermark: [Priorities]uint64{10, 0, 30},
		ReadySinceMs: [Priorities]int64{11, 0, 33},
		Delayed:      4, DelayedWatermarkMs: 5, InProgress: 6, LeaseWatermark: 1<<64 - 1, Dead: 7, DeadWatermarkMs: 8, Done: 9, DoneWatermarkMs: 10,
		DeadBy: [wire.DeadKinds]int64{0, 1, 2, 4}, FailedWatermarkMs: 12, Expiring: 13, ExpiringWatermarkMs: 14, Limited: 15, Newer: "\x40\x02",
	}
}

func fullSettings() *Settings {
	return &Settings{Version: 3, Paused: true, Deleting: true, QueueSettings: wire.QueueSettings{
		Spread: true, MaxAttempts: 4, LeaseSeconds: 5, TimeoutSeconds: 10, TTLSeconds: 11,
		Backoff:          wire.Backoff{Policy: wire.BackoffFixed, BaseSeconds: 6, MaxSeconds: 7},
		RetentionSeconds: 8, DLQRetentionSeconds: 9, MaxInProgress: 10, StartsPerSecond: 11, PerKey: wire.PerKey{InProgress: 12, StartsPerSecond: 13},
	}, Newer: "\x41\x02ab"}
}

func fullNamed() *Named {
	return &Named{NamedKey: NamedKey{Tenant: "acme", Kind: KindLimits, Name: "n"}, Version: 3, Value: `{"weight":2}`, Newer: "\x40\x02"}
}

func fullMarks() Marks {
	return Marks{Seq: 1<<64 - 1, Event: 2, TimeMs: -3, Queues: 1<<32 - 1, Newer: "\x40\x02"}
}

func fullHistory() []wire.HistoryLine {
	return []wire.HistoryLine{
		{Delivery: 1, WorkerID: "w1", FromMs: 1, ToMs: 2, Cause: "LEASE_EXPIRED"},
		{Delivery: 2, Cause: "undelivered", CloseCode: 1006},
		{Delivery: 3, Cause: "nack", Error: "no \"luck\"", Exit: wire.Exit{Coded: true}},
		{ToMs: 3, Cause: "move", By: "ops"},
		{ToMs: 3, Cause: "callback", Callback: wire.TaskID{1, 15: 2}},
		{Delivery: 4, Cause: "result", Error: "no", Exit: wire.Exit{Signal: "SIGKILL", Coded: true, Code: -1}},
	}
}

// historyOf writes a history line by line.
func historyOf(t testing.TB, lines []wire.HistoryLine) (value []byte) {
	t.Helper()
	for i := range lines {
		var err error
		if value, err = AppendHistory(nil, value, &lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	return value
}

var endedForms = []Ended{
	{Status: wire.StatusCompleted},
	{Status: wire.StatusFailed, Cause: wire.DeadExhausted, Deliveries: 5},
	{Status: wire.StatusFailed, Cause: wire.DeadReleased, HasKey: true},
	{Status: wire.StatusFailed, Cause: wire.DeadFailed, Absent: Absent{History: true, Payload: true}},
	{Status: wire.StatusFailed, Deliveries: 1, Absent: Absent{History: true}},
	{Status: wire.StatusCancelled, Deliveries: 1 << 40, HasKey: true},
	{Status: wire.StatusCompleted, Deliveries: 2, Absent: Absent{Payload: true}},
	{Status: wire.StatusFailed, Cause: wire.DeadExhausted, HasKey: true, Labelled: true, HasFiles: true},
}

// samples are values of every kind, full and least, with their text.
func samples(t testing.TB) []sample {
	t.Helper()
	task := fullRecord(t)
	least := &Task{Command: "c"}
	list := []sample{
		{"task", AppendTask(nil, task), task.String()},
		{"task-least", AppendTask(nil, least), least.String()},
		{"lease", AppendLease(nil, fullLease()), fullLease().String()},
		{"lease-least", AppendLease(nil, &Lease{Delivery: 1}), (&Lease{Delivery: 1}).String()},
		{"counters", AppendCounters(nil, fullCounters()), fullCounters().String()},
		{"counters-least", AppendCounters(nil, &Counters{Done: 1}), (&Counters{Done: 1}).String()},
		{"marks", AppendMarks(nil, fullMarks()), fullMarks().String()},
		{"settings", AppendSettings(nil, fullSettings()), fullSettings().String()},
		{"settings-least", AppendSettings(nil, &Settings{Version: 1}), (&Settings{Version: 1}).String()},
		{"named", AppendNamed(nil, fullNamed()), fullNamed().String()},
		{"history", historyOf(t, fullHistory()), historyString(fullHistory())},
	}
	for _, e := range endedForms {
		list = append(list, sample{"ended", AppendEnded(nil, e), e.String()})
	}
	return list
}

type sample struct {
	kind  string
	value []byte
	text  string
}

func TestValuesKeepTheirForm(t *testing.T) {
	var b strings.Builder
	for _, s := range samples(t) {
		fmt.Fprintf(&b, "%s %x\n\t%s\n", s.kind, s.value, s.text)
	}
	golden(t, "values.txt", b.String())
}

func TestRecordsComeBackWhole(t *testing.T) {
	var task Task
	if err := ParseTask(fullRecord(t).ID, AppendTask(nil, fullRecord(t)), &task); err != nil || task != *fullRecord(t) {
		t.Errorf("task %+v, %v", task, err)
	}
	var l Lease
	if err := ParseLease(AppendLease(nil, fullLease()), &l); err != nil || l != *fullLease() {
		t.Errorf("lease %+v, %v", l, err)
	}
	var c Counters
	if err := ParseCounters(AppendCounters(nil, fullCounters()), &c); err != nil || c != *fullCounters() {
		t.Errorf("counters %+v, %v", c, err)
	}
	var m Marks
	if err := ParseMarks(AppendMarks(nil, fullMarks()), &m); err != nil || m != fullMarks() {
		t.Errorf("marks %+v, %v", m, err)
	}
	var s Settings
	if err := ParseSettings(AppendSettings(nil, fullSettings()), &s); err != nil || s != *fullSettings() {
		t.Errorf("settings %+v, %v", s, err)
	}
	if n, err := ParseNamed(fullNamed().NamedKey, AppendNamed(nil, fullNamed())); err != nil || n != *fullNamed() {
		t.Errorf("named record %+v, %v", n, err)
	}
	h, err := ParseHistory(historyOf(t, fullHistory()))
	if err != nil || !reflect.DeepEqual(h, fullHistory()) {
		t.Errorf("history %+v, %v", h, err)
	}
	for _, want := range endedForms {
		if got, err := ParseEnded(AppendEnded(nil, want)); err != nil || got != want {
			t.Errorf("ended %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for _, text := range []string{"", "\x00", "\x01\x00", "\x03", "\x03\x05a", "\x03\x80\x00", "\x02\x01"} {
		var r Task
		if err := ParseTask(wire.TaskID{}, []byte(text), &r); err == nil {
			t.Errorf("%q was taken for a task", text)
		}
	}
	if err := ParseSettings(nil, &Settings{}); err == nil {
		t.Error("settings without a version were taken")
	}
	for _, text := range []string{"", "\x02\x01", "\x05\x01a"} {
		if _, err := ParseNamed(NamedKey{}, []byte(text)); err == nil {
			t.Errorf("%q was taken for a named record", text)
		}
	}
	lines := bytes.Repeat([]byte{2, 2, 1}, MaxHistory)
	if _, err := ParseHistory(lines); err != nil {
		t.Errorf("%d lines: %v", MaxHistory, err)
	}
	if _, err := ParseHistory(append(lines, 2, 2, 1)); err == nil {
		t.Errorf("more than %d lines were taken", MaxHistory)
	}
}

func TestAHistoryKeepsItsLastLinesAsTheyStand(t *testing.T) {
	// A newer program has added a field to a line.
	value := []byte{4, 2, 7, 0x40, 9}
	for n := range MaxHistory - 1 {
		var err error
		if value, err = AppendHistory(nil, value, &wire.HistoryLine{Delivery: n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.HasPrefix(value, []byte{4, 2, 7, 0x40, 9}) {
		t.Errorf("the line of a newer program became %x", value[:5])
	}
	value, err := AppendHistory(nil, value, &wire.HistoryLine{Delivery: 99})
	lines, parseErr := ParseHistory(value)
	if err != nil || parseErr != nil || len(lines) != MaxHistory || lines[0].Delivery != 1 || lines[MaxHistory-1].Delivery != 99 {
		t.Errorf("got %+v, %v, %v", lines, err, parseErr)
	}
	if _, err := AppendHistory(nil, []byte{9}, &wire.HistoryLine{}); err == nil {
		t.Error("a line was added to a damaged history")
	}
}

func TestARecordIsNotTiedToItsBytes(t *testing.T) {
	data := AppendTask(nil, fullRecord(t))
	var r Task
	if err := ParseTask(fullRecord(t).ID, data, &r); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if r != *fullRecord(t) {
		t.Errorf("the record changed with its bytes: %+v", r)
	}
}

func TestThePayloadIsFoundInAValue(t *testing.T) {
	r := fullRecord(t)
	if payload, ok := PayloadWithin(AppendTask(nil, r)); !ok || string(payload) != r.Payload {
		t.Errorf("got %q, %v", payload, ok)
	}
	r.Payload = ""
	if payload, ok := PayloadWithin(AppendTask(nil, r)); ok {
		t.Errorf("got %q of a record without one", payload)
	}
}

func BenchmarkParseTask(b *testing.B) {
	r := fullRecord(b)
	r.Error, r.LastToken, r.ResultToken, r.EndedAtMs = "", wire.Token{}, wire.Token{}, 0
	r.LastWorkerID, r.IdempotencyKey, r.Fingerprint = "", "", [32]byte{}
	data := AppendTask(nil, r)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseTask(r.ID, data, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendTask(b *testing.B) {
	r := fullRecord(b)
	var data []byte
	b.ReportAllocs()
	for b.Loop() {
		data = AppendTask(data[:0], r)
	}
}
