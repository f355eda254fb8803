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
		Attempts: 2, MaxAttempts: 5, PayloadBytes: 9,
		CreatedAtMs: 1_700_000_000_001, UpdatedAtMs: 1_700_000_000_002,
		Seq: 1<<64 - 1, DueAtMs: 1_700_000_000_003, EndedAtMs: 1_700_000_000_004,
		ExpiresAtMs: 1_700_000_000_005, Expired: true, TimeoutSeconds: 90,
		Deliveries: 3, LastToken: wire.Token{1, 2, 3}, LastSubject: "ada", LastWorkerID: "w \"1\"", LastOverHTTP: true,
		ResultToken: wire.Token{4, 5, 6}, Releases: 7, Losses: 8, Undelivered: 9,
		DeadCause: wire.DeadFailed, Error: "line 1\nline 2\x00\\", IdempotencyKey: "é/☃/\U0001F600", Fingerprint: [32]byte{31: 1},
		TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TraceState: "a=b",
		Payload: "{\"a\":\"é\"", OutcomeHere: true, Result: "} x",
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
		RunUntilMs: 1_700_000_090_000,
	}
}

func fullCounters() *Counters {
	return &Counters{
		Ready: [Priorities]int64{1, 0, 3}, ReadyFloor: [Priorities]uint64{10, 0, 30},
		ReadySinceMs: [Priorities]int64{11, 0, 33},
		Delayed:      4, DelayedFloorMs: 5, InProgress: 6, LeaseFloor: 1<<64 - 1, Dead: 7, DeadFloorMs: 8, Done: 9, DoneFloorMs: 10,
		DeadBy: [wire.DeadKinds]int64{0, 1, 2, 4}, FailedFloorMs: 12, Expiring: 13, ExpiringFloorMs: 14,
	}
}

func fullSettings() *Settings {
	return &Settings{Version: 3, Paused: true, QueueSettings: wire.QueueSettings{
		Spread: true, MaxAttempts: 4, LeaseSeconds: 5, TimeoutSeconds: 10, TTLSeconds: 11,
		Backoff:          wire.Backoff{Policy: wire.BackoffFixed, BaseSeconds: 6, MaxSeconds: 7},
		RetentionSeconds: 8, DLQRetentionSeconds: 9,
	}}
}

func TestSettingsComeBackWhole(t *testing.T) {
	for _, want := range []*Settings{fullSettings(), {Version: 1}} {
		var got Settings
		if err := ParseSettings(AppendSettings(nil, want), &got); err != nil || got != *want {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	var s Settings
	if err := ParseSettings([]byte(`{"paused":1}`), &s); err == nil {
		t.Error("settings without a version were taken")
	}
}

func fullHistory() []wire.HistoryLine {
	return []wire.HistoryLine{
		{Delivery: 1, WorkerID: "w1", FromMs: 1, ToMs: 2, Cause: "LEASE_EXPIRED"},
		{Delivery: 2, Cause: "said \"no\""},
		{Delivery: 3, Cause: "nack", Error: "no \"luck\"", Exit: wire.Exit{Coded: true}},
		{Delivery: 4, Cause: "result", Error: "no", Exit: wire.Exit{Signal: "SIGKILL"}},
	}
}

func TestValuesKeepTheirForm(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { b.WriteString(name + " " + string(value) + "\n") }
	show("task", AppendTask(nil, fullRecord(t)))
	show("task-least", AppendTask(nil, &Task{}))
	show("lease", AppendLease(nil, fullLease()))
	show("lease-least", AppendLease(nil, &Lease{}))
	show("counters", AppendCounters(nil, fullCounters()))
	show("counters-least", AppendCounters(nil, &Counters{}))
	show("marks", AppendMarks(nil, Marks{Seq: 1, Event: 2, TimeMs: 3}))
	show("settings", AppendSettings(nil, fullSettings()))
	show("settings-least", AppendSettings(nil, &Settings{Version: 1}))
	show("ended", fmt.Appendf(nil, "%x", AppendEnded(nil, Ended{Status: wire.StatusCompleted, Deliveries: 300, Keyed: true, Bare: true, Whole: true})))
	show("ended-dead", fmt.Appendf(nil, "%x", AppendEnded(nil, Ended{Status: wire.StatusFailed, Deliveries: 5, Cause: wire.DeadFailed})))
	show("history", AppendHistory(nil, fullHistory()))
	show("result", wire.AppendResultRecord(nil, &wire.ResultRecord{
		TaskID: fullRecord(t).ID, Status: wire.StatusCompleted, Result: []byte(`{"b":1.0, "a":12345678901234567890}`),
		Artifacts: []wire.Artifact{{Name: "log", URL: "https://x/y"}}, CompletedAtMs: 1_700_000_000_004,
	}))
	golden(t, "values.txt", b.String())
}

func TestTaskRecordComesBackWhole(t *testing.T) {
	for _, want := range []*Task{fullRecord(t), {}} {
		want.ID = wire.TaskID{} // which is in the key
		var got Task
		if err := parseTask(AppendTask(nil, want), &got); err != nil {
			t.Fatal(err)
		}
		if got != *want {
			t.Errorf("got %+v\nwant %+v", got, *want)
		}
	}
}

func TestOtherValuesComeBackWhole(t *testing.T) {
	var l Lease
	if err := ParseLease(AppendLease(nil, fullLease()), &l); err != nil || l != *fullLease() {
		t.Errorf("lease %+v, %v", l, err)
	}
	var c Counters
	if err := ParseCounters(AppendCounters(nil, fullCounters()), &c); err != nil || c != *fullCounters() {
		t.Errorf("counters %+v, %v", c, err)
	}
	want := Marks{Seq: 1<<64 - 1, Event: 2, TimeMs: -3}
	var m Marks
	if err := ParseMarks(AppendMarks(nil, want), &m); err != nil || m != want {
		t.Errorf("marks %+v, %v", m, err)
	}
	h, err := ParseHistory(AppendHistory(nil, fullHistory()))
	if err != nil || !reflect.DeepEqual(h, fullHistory()) {
		t.Errorf("history %+v, %v", h, err)
	}
}

func TestEndedEntriesComeBackWhole(t *testing.T) {
	for _, want := range []Ended{
		{Status: wire.StatusCompleted},
		{Status: wire.StatusFailed, Cause: wire.DeadExhausted, Deliveries: 5},
		{Status: wire.StatusFailed, Cause: wire.DeadReleased, Keyed: true},
		{Status: wire.StatusFailed, Cause: wire.DeadFailed, Bare: true, Whole: true},
		{Status: wire.StatusFailed, Deliveries: 1, Bare: true},
		{Status: wire.StatusCancelled, Deliveries: 1 << 40, Keyed: true},
		{Status: wire.StatusCompleted, Deliveries: 2, Whole: true},
	} {
		if got, err := ParseEnded(AppendEnded(nil, want)); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, damaged := range []string{"", "\x00\x00", "\x04\x00", "\x81\x00", "\x01", "\x01\x80", "\x01\x00\x00", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if e, err := ParseEnded([]byte(damaged)); err == nil {
			t.Errorf("%q is %+v", damaged, e)
		}
	}
}

func TestUnknownMembersAreIgnoredAndAbsentOnesZero(t *testing.T) {
	text := ` { "later" : [ {"a":[1,-2.5e3,true,null,"x\"]"]}, {} ] , "q" : 7,"other":"","third":{}}`
	var r Task
	if err := parseTask([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if r != (Task{Seq: 7}) {
		t.Errorf("got %+v", r)
	}
	var c Counters
	if err := ParseCounters([]byte(`{"ready":[5],"inProgress":1}`), &c); err != nil || c.Ready[0] != 5 || c.Ready[1] != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestDamagedValuesAreRefused(t *testing.T) {
	whole := string(AppendTask(nil, fullRecord(t)))
	damaged := []string{
		"", " ", "null", "[]", "{", "{}x", "{,}", `{"q":1,}`, `{"q" 1}`, `{"q":}`, `{"q":1.5}`, `{"q":-1}`,
		`{"q":01}`, `{"q":18446744073709551616}`, `{"a":9223372036854775808}`, `{"a":"1"}`,
		`{"c":1}`, `{"c":"a`, `{"c":"\x"}`, `{"c":"\u12"}`, `{"c":"\ud800"}`,
		`{"c":"\ud800\u0041"}`, "{\"c\":\"a\nb\"}", "{\"c\":\"\\n\n\"}",
		`{"lk":"12"}`, `{"f":"00"}`, `{"p":10}`, `{"p":-1}`, `{"x":tru}`, `{"x":[1 2]}`,
		`{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "\x00\x00\x00\x00",
		whole[:len(whole)-1], whole + whole, whole + " ", `{"q":1} `, `{"b":2}ab`, `{"b":2,"h":true}a`, `{"h":true}a`,
		`{"b":-1,"h":true}`, `{"rb":2}a`, `{"rb":-1}`, `{"rb":1}a`, `{"o":true,"rb":2}a`, `{"o":1}`, `{"b":1,"h":true,"rb":1}a`, `{"h":1}`,
	}
	for _, text := range damaged {
		var r Task
		if err := parseTask([]byte(text), &r); err == nil {
			t.Errorf("%q was taken for a record", text)
		}
	}
	for n := range whole {
		var r Task
		if err := parseTask([]byte(whole[:n]), &r); err == nil {
			t.Errorf("the first %d bytes were taken for a record", n)
		}
	}
}

func TestARecordIsNotTiedToItsBytes(t *testing.T) {
	data := AppendTask(nil, fullRecord(t))
	var r Task
	if err := parseTask(data, &r); err != nil {
		t.Fatal(err)
	}
	clear(data)
	r.ID = fullRecord(t).ID
	if r != *fullRecord(t) {
		t.Errorf("the record changed with its bytes: %+v", r)
	}
}

// fuzzCodec checks one decoder: it never panics, and what it accepts comes
// back from its own encoding, which is then stable.
func fuzzCodec[T any](f *testing.F, seed []byte, parse func([]byte) (T, error), appendTo func([]byte, T) []byte) {
	f.Add(seed)
	f.Add([]byte(`{}`))
	f.Add([]byte(`[{"delivery":1,"x":"\ud83d\ude00"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := parse(data)
		if err != nil {
			return
		}
		encoded := appendTo(nil, first)
		second, err := parse(encoded)
		if err != nil {
			t.Fatalf("own encoding %q refused: %v", encoded, err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v became %+v", first, second)
		}
		if again := appendTo(nil, second); !bytes.Equal(again, encoded) {
			t.Fatalf("%q became %q", encoded, again)
		}
	})
}

func FuzzTaskRecord(f *testing.F) {
	fuzzCodec(f, AppendTask(nil, fullRecord(f)), func(data []byte) (r Task, err error) {
		return r, ParseTask(wire.TaskID{}, data, &r)
	}, func(dst []byte, r Task) []byte { return AppendTask(dst, &r) })
}

func FuzzLease(f *testing.F) {
	fuzzCodec(f, AppendLease(nil, fullLease()), func(data []byte) (l Lease, err error) {
		return l, ParseLease(data, &l)
	}, func(dst []byte, l Lease) []byte { return AppendLease(dst, &l) })
}

func FuzzCounters(f *testing.F) {
	fuzzCodec(f, AppendCounters(nil, fullCounters()), func(data []byte) (c Counters, err error) {
		return c, ParseCounters(data, &c)
	}, func(dst []byte, c Counters) []byte { return AppendCounters(dst, &c) })
}

func FuzzMarks(f *testing.F) {
	fuzzCodec(f, []byte(`{"seq":1,"event":2,"timeMs":3}`), func(data []byte) (m Marks, err error) {
		return m, ParseMarks(data, &m)
	}, AppendMarks)
}

func FuzzHistory(f *testing.F) {
	fuzzCodec(f, AppendHistory(nil, fullHistory()), ParseHistory, AppendHistory)
}

func BenchmarkParseTaskRecord(b *testing.B) {
	r := fullRecord(b)
	r.Error, r.LastToken, r.ResultToken, r.EndedAtMs = "", wire.Token{}, wire.Token{}, 0
	r.LastWorkerID, r.IdempotencyKey, r.Fingerprint = "", "", [32]byte{}
	data := AppendTask(nil, r)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := parseTask(data, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendTaskRecord(b *testing.B) {
	r := fullRecord(b)
	var data []byte
	b.ReportAllocs()
	for b.Loop() {
		data = AppendTask(data[:0], r)
	}
}

func TestEveryMemberHasAFullName(t *testing.T) {
	record := inFull(recordNames, fullRecord(t).ID, AppendTask(nil, fullRecord(t)))
	lease := inFull(leaseNames, wire.TaskID{}, AppendLease(nil, fullLease()))
	golden(t, "names.txt", record+"\n"+lease+"\n")
	if got := inFull(recordNames, wire.TaskID{}, []byte(`{"c":`)); got != `{"c":` {
		t.Errorf("a damaged record is shown as %q", got)
	}
}

func FuzzSettings(f *testing.F) {
	fuzzCodec(f, AppendSettings(nil, fullSettings()), func(data []byte) (s Settings, err error) {
		return s, ParseSettings(data, &s)
	}, func(dst []byte, s Settings) []byte { return AppendSettings(dst, &s) })
}

// FuzzPlainValues are the values that are no JSON: a time, an id, and what is
// said of an ended task.
func FuzzPlainValues(f *testing.F) {
	for _, data := range [][]byte{nil, AppendReadyAt(nil, 1_700_000_000_000), AppendReadyAt(nil, -1), bytes.Repeat([]byte{7}, 16), {1},
		AppendEnded(nil, Ended{Status: wire.StatusFailed, Deliveries: 300, Keyed: true, Bare: true}), {1, 0x80, 0}, {0x41, 0}} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		atMs, err := ParseReadyAt(data)
		if (err == nil) != (len(data) == 8) || err == nil && !bytes.Equal(AppendReadyAt(nil, atMs), data) {
			t.Errorf("%x is the time %d (%v)", data, atMs, err)
		}
		var id wire.TaskID
		err = ParseID(data, &id)
		if (err == nil) != (len(data) == len(id)) || err == nil && !bytes.Equal(id[:], data) {
			t.Errorf("%x is the id %v (%v)", data, id, err)
		}
		if ended, err := ParseEnded(data); err == nil {
			again, err := ParseEnded(AppendEnded(nil, ended))
			if err != nil || again != ended || (ended.Status == "") != (len(data) == 0) {
				t.Errorf("%x is %+v, and %+v once it is written (%v)", data, ended, again, err)
			}
		}
	})
}
