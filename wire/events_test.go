package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func sampleFigures() (f Figures) {
	for i := range f {
		f[i] = int64(i) + 1
	}
	f[FigureOldestReadyAt] = sampleTimeMs
	return f
}

func sampleWatchRequests() map[string]ClientFrame {
	return map[string]ClientFrame{
		"hello":      &Hello{Ref: ref(1), Token: "secret"},
		"hello-bare": &Hello{},
		"queues": &WatchSubscribe{
			Ref: ref(2), ID: "q", Kind: WatchQueues, Commands: []string{"billing.*", "mail", AllCommands}, EveryMs: 250, RangeMs: 300_000,
		},
		"queues-bare": &WatchSubscribe{ID: awkward, Kind: WatchQueues, EveryMs: DefaultWatchMs},
		"task":        &WatchSubscribe{ID: "t", Kind: WatchTask, TaskID: sampleID(1)},
		"page":        &WatchSubscribe{ID: "p", Kind: WatchPage, Command: "mail", State: StateReady, Limit: MaxWatchPage},
		"page-filter": &WatchSubscribe{
			ID: "p", Kind: WatchPage, Command: "billing.*", State: StateDead, Limit: 1, Cursor: awkward,
			Filter: []byte(`{"command":"billing.*","state":"dlq","label":["a=b"],"error~":"x","attempts>":3}`),
		},
		"page-found": &WatchSubscribe{ID: "p", Kind: WatchPage, Limit: DefaultWatchPage, Filter: []byte(`{}`)},
		"events": &WatchSubscribe{
			Ref: ref(3), ID: "log", Kind: WatchEvents, Commands: []string{"a"}, Causes: []string{"nack", "lease_expired"},
			After: Positions{80950, 0, 1<<64 - 1}, CreationID: "c0ffee", MaxPerSecond: MaxWatchPerSecond,
		},
		"events-bare": &WatchSubscribe{ID: "log", Kind: WatchEvents, MaxPerSecond: DefaultWatchEvents},
		"workers":     &WatchSubscribe{ID: "w", Kind: WatchWorkers},
		"server":      &WatchSubscribe{ID: "s", Kind: WatchServer},
		"unsubscribe": &WatchUnsubscribe{Ref: ref(4), ID: "q"},
	}
}

func sampleWatchFrames() map[string]ServerFrame {
	return map[string]ServerFrame{
		"welcome": &WatchWelcome{
			CreationID: "c0ffee", Shards: 2, Positions: Positions{7, 9}, Oldest: Positions{1, 4}, ServerTimeMs: sampleTimeMs,
			TenantID: DefaultTenant, Admin: true, Version: "1.0.0", Features: []string{awkward}, Leader: awkward,
		},
		"names": &WatchNames{Queues: []SlotName{
			{Slot: 0, Tenant: DefaultTenant, Command: "mail"}, {Slot: 7}, {Slot: 1<<32 - 1, Command: AllCommands},
		}},
		"snapshot": &WatchSnapshot{ID: "q", At: Positions{7, 9}, More: true, WatchState: WatchState{
			Queues: []QueueRow{{Slot: 0, Figures: sampleFigures()}, {Slot: 7}},
		}},
		"snapshot-empty": &WatchSnapshot{ID: "q", At: Positions{0}, WatchState: WatchState{Queues: []QueueRow{}}},
		"snapshot-task":  &WatchSnapshot{ID: "t", At: Positions{1}, WatchState: WatchState{Task: sampleTask()}},
		"snapshot-page":  &WatchSnapshot{ID: "p", At: Positions{7}, AtMs: sampleTimeMs, WatchState: WatchState{Above: new(int64), Tasks: []*Task{barePendingTask(), sampleTask()}}},
		"snapshot-found": &WatchSnapshot{
			ID: "p", At: Positions{7}, AtMs: sampleTimeMs, Scanned: new(int64), Cursor: "AQ", WatchState: WatchState{Tasks: []*Task{}},
		},
		"snapshot-workers": &WatchSnapshot{ID: "w", WatchState: WatchState{Sessions: []SessionFigures{{
			ID: SessionID{0: 1, 15: 2}, WorkerID: "ada", Subject: "bob", Commands: []string{"a", "b"}, Window: 8, Held: 3,
			State: SessionGrace, ConnectedAtMs: sampleTimeMs, LastSeenAtMs: sampleTimeMs,
			GraceUntilMs: sampleTimeMs + 1, RoundTripMs: 2, Completed: 9, Failed: 1,
		}}}},
		"tick-workers": &WatchTick{ID: "w", AtMs: 1, WatchState: WatchState{Sessions: []SessionFigures{{
			Subject: "bob", Commands: []string{"a"}, State: SessionLive, ConnectedAtMs: sampleTimeMs, LastSeenAtMs: sampleTimeMs,
		}}, Left: []string{SessionID{0: 1, 15: 2}.String()}}},
		"snapshot-server": &WatchSnapshot{ID: "s", WatchState: WatchState{Server: &ServerFigures{
			Version: "1.0.0", Durability: "fsync", StartedAtMs: sampleTimeMs, MemoryBytes: 1 << 30, Sessions: 2, Subscribers: 1,
			DiskGuard: "no-enqueue", DiskFreeBytes: 1 << 29, DiskReserveBytes: 1 << 28, CommitsPer: 1200, SyncsPer: 300, SyncMicros: 810,
			Shards: []ShardFigures{
				{Messages: 5, NewMessages: 4, Bytes: 4096, BacklogMs: 200, Drained: 64, WaitMicros: 140, Accepted: 81_204, Refused: 3}, {},
			},
		}, Needs: []Need{
			{Severity: NeedCritical, Reason: NeedNoWorker, Tenant: "acme", Command: "mail", State: StateReady, Count: 4120, SinceMs: sampleTimeMs,
				Sentence: awkward},
			{Severity: NeedCritical, Reason: NeedDisk, Sentence: "the disk guard is at no-enqueue"},
		}}},
		"tick-server": &WatchTick{ID: "s", AtMs: sampleTimeMs, WatchState: WatchState{Server: &ServerFigures{
			Version: "1.0.0", Durability: "fsync", StartedAtMs: sampleTimeMs, DiskGuard: "ok",
		}, Needs: []Need{}}},
		"tick":      &WatchTick{ID: "q", AtMs: sampleTimeMs, WatchState: WatchState{Queues: []QueueRow{{Slot: 7, Figures: sampleFigures()}}}},
		"tick-page": &WatchTick{ID: "p", AtMs: 1, WatchState: WatchState{Tasks: []*Task{barePendingTask()}, Left: []string{awkward}, Above: new(int64(3))}},
		"points": &WatchPoints{ID: "q", Slot: 7, StepMs: 1000, Points: []WatchPoint{
			{AtMs: sampleTimeMs, Figures: sampleFigures()}, {AtMs: sampleTimeMs + 1000},
		}},
		"event": &WatchEvent{
			ID: "log", Shard: 1, Number: 1<<63 - 1, AtMs: sampleTimeMs, Task: sampleID(1), Tenant: "acme", Command: "mail",
			From: LocationInProgress, To: LocationDelayed, Status: StatusPending, Cause: "nack", Delivery: 2,
			Worker: awkward, SpentMs: 1412, Attempts: 1,
		},
		"event-bare": &WatchEvent{ID: "log", Number: 1, Task: sampleID(1), Command: "mail", Cause: "enqueue"},
		"progress":   &WatchProgress{ID: "t", Number: 1 << 50, Task: sampleID(1), TaskProgress: *sampleProgress()},
		"output":     &WatchOutput{ID: "t", Number: 1 << 50, Task: sampleID(1), AtMs: sampleTimeMs, Delivery: 2, OutputRequest: OutputRequest{Stream: StreamOut, Text: awkward}},
		"gap-output": &WatchGap{ID: "t", Shard: 2, Reason: GapRestarted, Of: GapOutput},
		"gap":        &WatchGap{ID: "log", Shard: 2, From: 80211, To: 80463, Reason: GapEvicted, Missed: 253},
		"mark":       &WatchMark{Positions: Positions{7, 9}},
		"ok":         &OK{Ref: ref(1)},
		"error":      &WatchError{ID: "q", ErrorFrame: ErrorFrame{Ref: ref(6), Err: Refuse(CodeForbidden, "the tenant is another's")}},
		"error-bare": &WatchError{ErrorFrame: ErrorFrame{Err: sampleError(), TaskID: sampleID(3)}},
		"draining":   &Draining{Reason: "shutdown", GraceSeconds: 30},
	}
}

func appendWatchMessage(frames []ServerFrame) []byte {
	message := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			message = append(message, ',')
		}
		message = AppendWatchFrame(message, f)
	}
	return append(message, ']')
}

func TestWatchRequestsKeepTheirBytesAndComeBack(t *testing.T) {
	for name, frame := range sampleWatchRequests() {
		data := AppendWatchRequest(nil, frame)
		checkGolden(t, "watch/client-"+name, data)
		frames, violation := ParseWatchRequest(append(append([]byte("["), data...), ']'))
		if violation != nil {
			t.Fatal(violation)
		}
		checkSame(t, name, frames, []ClientFrame{frame})
	}
}

func TestWatchFramesKeepTheirBytesAndComeBack(t *testing.T) {
	for name, frame := range sampleWatchFrames() {
		data := AppendWatchFrame(nil, frame)
		checkGolden(t, "watch/server-"+name, data)
		frames, err := ParseWatchMessage(append(append([]byte("["), data...), ']'))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSame(t, name, frames, []ServerFrame{frame})
	}
}

func TestWatchRequestsThatAreWrongSayWhatIsRight(t *testing.T) {
	long := strings.Repeat("a", MaxWatchIDBytes+1)
	for body, want := range map[string]string{
		`{"type":"task"}`:                                                                     "type names no frame that this server knows",
		`{"type":"hello","workerId":"a"}`:                                                     "workerId is not known; known here: type, ref, token",
		`{"type":"subscribe","kind":"queues"}`:                                                "id is required: a string",
		`{"type":"subscribe","id":"` + long + `","kind":"queues"}`:                            "id must be at most 64 bytes, got 65",
		`{"type":"subscribe","id":"q"}`:                                                       "kind is required: a string",
		`{"type":"subscribe","id":"q","kind":"queue"}`:                                        `kind must be one of queues, task, page, events, workers, server, got "queue"`,
		`{"type":"subscribe","id":"q","kind":"queues","token":"a"}`:                           "token is not known; known here: type, ref, id, kind, commands, everyMs, range",
		`{"type":"subscribe","id":"q","kind":"queues","taskId":"a"}`:                          "taskId is not known; known here: type, ref, id, kind, commands, everyMs, range",
		`{"type":"subscribe","id":"q","kind":"queues","everyMs":100}`:                         "everyMs must be an integer from 250 to 10000, got 100",
		`{"type":"subscribe","id":"q","kind":"queues","range":"2h"}`:                          `range must be 5m, 1h, 24h or 7d, got "2h"`,
		`{"type":"subscribe","id":"q","kind":"queues","commands":[1]}`:                        "commands must be a list of strings, got 1 at 0",
		`{"type":"subscribe","id":"q","kind":"queues","commands":["a","b*"]}`:                 "commands[1] may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none, but for .* at the end of a prefix",
		`{"type":"subscribe","id":"q","kind":"task"}`:                                         "taskId is required: a string",
		`{"type":"subscribe","id":"q","kind":"page","command":"a b","state":"ready"}`:         "command may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none",
		`{"type":"subscribe","id":"q","kind":"page","command":"a","state":"READY"}`:           `state must be one of ready, delayed, inProgress, dlq, done, got "READY"`,
		`{"type":"subscribe","id":"q","kind":"page","command":"a","state":"dlq","filter":[]}`: "command is not known; known here: type, ref, id, kind, limit, filter, cursor",
		`{"type":"subscribe","id":"q","kind":"page","filter":[]}`:                             "filter must be an object with the parameters of a search, got a list",
		`{"type":"subscribe","id":"q","kind":"page","filter":{"label":["a"]}}`:                "label must be a name and a value like customer=acme, got a",
		`{"type":"subscribe","id":"q","kind":"page","filter":{"limit":1}}`:                    "limit is not known; known here: id, label, command, state, error~, payload~, worker, olderThan, attempts>",
		`{"type":"subscribe","id":"q","kind":"events","from":[1]}`:                            `from must have a number for every shard, such as {"0":17,"1":9}`,
		`{"type":"subscribe","id":"q","kind":"events","from":{"1":1}}`:                        `from must have a number for every shard, such as {"0":17,"1":9}`,
		`{"type":"subscribe","id":"q","kind":"events","from":{"0":1,"0":2}}`:                  `from must have a number for every shard, such as {"0":17,"1":9}`,
		`{"type":"subscribe","id":"q","kind":"events","from":{"0":-1}}`:                       `from must have a number for every shard, such as {"0":17,"1":9}`,
		`{"type":"subscribe","id":"q","kind":"events","maxPerSecond":1001}`:                   "maxPerSecond must be an integer from 1 to 1000, got 1001",
		`{"type":"unsubscribe"}`:                                                              "id is required: a string",
		`{"type":"subscribe","id":"q","kind":"queues","commands":["` + awkwardName + ``:       "",
	} {
		frames, violation := ParseWatchRequest([]byte(body))
		if want == "" {
			if violation == nil {
				t.Errorf("%s is no violation", body)
			}
			continue
		}
		if violation != nil || len(frames) != 1 {
			t.Fatalf("%s: %v, %v", body, frames, violation)
		}
		if u, ok := frames[0].(*Unknown); !ok || u.Err.Sentence != want {
			t.Errorf("%s was read as %+v, want %s", body, frames[0], want)
		}
	}
	many := `{"type":"subscribe","id":"q","kind":"queues","commands":["a"` + strings.Repeat(`,"a"`, MaxWatchCommands) + `]}`
	frames, _ := ParseWatchRequest([]byte(many))
	if u, ok := frames[0].(*Unknown); !ok || u.Err.Sentence != "commands must have at most 100 elements, got 101" {
		t.Errorf("a filter of 101 names was read as %+v", frames[0])
	}
	if _, violation := ParseWatchRequest(bytes.Repeat([]byte(" "), MaxWatchMessageBytes+1)); violation == nil || violation.Code != CodeTooLarge {
		t.Errorf("a message over the limit: %v", violation)
	}
}

func TestWatchMessagesOfNewerServersAreRead(t *testing.T) {
	row := strings.Repeat(",0", int(figures))
	frames, err := ParseWatchMessage([]byte(`[{"type":"later"},null,{"type":"tick","id":"q","t":1,"more":[],"queues":[[7` + row + `,5]]}]`))
	if err != nil || len(frames) != 1 || frames[0].(*WatchTick).Queues[0].Slot != 7 {
		t.Fatalf("%+v, %v", frames, err)
	}
	for _, body := range []string{
		``, `{}`, `[1]`, "[{\"type\":\"tick\",\"id\":\"\xff\"}]", `[{"type":"tick","queues":[[7]]}]`, `[{"type":"tick","queues":[[-1` + row + `]]}]`,
		`[{"type":"tick","tasks":[null]}]`, `[{"type":"gap","shard":-1}]`, `[{"type":"event","n":1}]`, `[{"type":"names","queues":[[1,"a"]]}]`,
		`[{"type":"welcome","creationId":"a","shards":1,"positions":{},"oldest":{"0":1}}]`, `[{"type":"ok","ref":"a"}]`, `[{"type":"mark","positions":[1]}]`,
	} {
		if frames, err := ParseWatchMessage([]byte(body)); err == nil {
			t.Errorf("%s was read as %+v", body, frames)
		}
	}
}

func FuzzParseWatchRequest(f *testing.F) {
	for _, frame := range sampleWatchRequests() {
		f.Add(AppendWatchRequest(nil, frame))
	}
	addAll(f, `[]`, `[1,{}]`, `{"type":"subscribe","id":"q","kind":"events","from":{"1":1,"0":2}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, violation := ParseWatchRequest(data)
		if violation != nil && frames != nil {
			t.Fatal("a violation and frames")
		}
		for _, frame := range frames {
			if u, ok := frame.(*Unknown); ok {
				if u.Err == nil || !utf8.ValidString(u.Err.Sentence) {
					t.Fatalf("a refusal without a sentence: %+v", u)
				}
				continue
			}
			again, violation := ParseWatchRequest(AppendWatchRequest(nil, frame))
			if violation != nil || !reflect.DeepEqual(again, []ClientFrame{frame}) {
				t.Fatalf("%+v came back as %+v (%v)", frame, again, violation)
			}
		}
	})
}

func FuzzParseWatchMessage(f *testing.F) {
	var all []ServerFrame
	for _, frame := range sampleWatchFrames() {
		f.Add(appendWatchMessage([]ServerFrame{frame}))
		all = append(all, frame)
	}
	f.Add(appendWatchMessage(all))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, err := ParseWatchMessage(data)
		if err != nil {
			return
		}
		first := appendWatchMessage(frames)
		if !json.Valid(first) {
			t.Fatalf("%s is not JSON", first)
		}
		again, err := ParseWatchMessage(first)
		checkFixed(t, first, appendWatchMessage(again), err)
	})
}
