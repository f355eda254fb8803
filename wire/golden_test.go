package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "make the golden files again from what the code appends")

// checkGolden compares got with a file of testdata, which holds it and one
// line feed.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if !json.Valid(got) {
		t.Errorf("%s is not JSON: %s", name, got)
	}
	path := filepath.Join("testdata", name+".json")
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(bytes.Clone(got), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.TrimSuffix(want, []byte("\n"))) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// checkSame compares what was read back with what was written.
func checkSame(t *testing.T, name string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s came back as\n%+v\nwant\n%+v", name, got, want)
	}
}

func TestClientFramesKeepTheirBytesAndComeBack(t *testing.T) {
	for name, frame := range sampleClientFrames() {
		t.Run(name, func(t *testing.T) {
			data := AppendClientFrame(nil, frame)
			checkGolden(t, "client/"+name, data)
			for _, message := range [][]byte{data, append(append([]byte(" [ "), data...), " ]\n"...)} {
				frames, violation := ParseClientMessage(message)
				if violation != nil {
					t.Fatal(violation)
				}
				checkSame(t, name, frames, []ClientFrame{frame})
			}
		})
	}
}

func TestServerFramesKeepTheirBytesAndComeBack(t *testing.T) {
	for name, frame := range sampleServerFrames() {
		t.Run(name, func(t *testing.T) {
			data := AppendServerFrame(nil, frame)
			checkGolden(t, "server/"+name, data)
			frames, err := ParseServerMessage(append(append([]byte("["), data...), ']'))
			if err != nil {
				t.Fatal(err)
			}
			checkSame(t, name, frames, []ServerFrame{frame})
		})
	}
}

func TestTasksKeepTheirBytesAndComeBack(t *testing.T) {
	for name, task := range map[string]*Task{"task": sampleTask(), "task-bare": barePendingTask()} {
		data := AppendTask(nil, task, PayloadAsString)
		checkGolden(t, "body/"+name, data)
		got, err := ParseTask(data)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, name, got, task)
		if _, err := ParseTask(AppendTask(nil, task, PayloadAsValue)); err == nil && name == "task" {
			t.Error("ParseTask took a payload that is no string")
		}
	}
}

func TestResultRecordsKeepTheirBytesAndComeBack(t *testing.T) {
	records := map[string]*ResultRecord{
		"result-record":      sampleRecord(),
		"result-record-bare": {TaskID: sampleID(1), Status: StatusCancelled, CompletedAtMs: sampleTimeMs},
	}
	for name, record := range records {
		data := AppendResultRecord(nil, record)
		checkGolden(t, "body/"+name, data)
		got, err := ParseResultRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, name, got, record)
	}
}

func TestErrorsKeepTheirBytesAndComeBack(t *testing.T) {
	refusals := map[string]*Error{
		"error":      sampleError(),
		"error-task": {Code: CodeAlreadyTerminal, Sentence: "it has ended", Status: StatusPending, Task: barePendingTask()},
		"error-bare": Refuse(CodeTaskNotFound, "no task has this id"),
	}
	for name, refusal := range refusals {
		data := AppendError(nil, refusal)
		checkGolden(t, "body/"+name, data)
		got, err := ParseError(data)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, name, got, refusal)
	}
}

func TestQueueFiguresKeepTheirBytesAndComeBack(t *testing.T) {
	data := []byte(`{"queues":[`)
	for i, figures := range sampleQueues() {
		if i > 0 {
			data = append(data, ',')
		}
		data = AppendQueueFigures(data, &figures)
	}
	data = append(data, "]}"...)
	checkGolden(t, "body/queues", data)
	got, err := ParseQueueList(data)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "queues", got, sampleQueues())
}

func TestSessionFiguresComeBack(t *testing.T) {
	want := []SessionFigures{{
		ID: SessionID{0: 1, 15: 2}, WorkerID: "ada", Subject: "bob", Commands: []string{"a", "b"}, Window: 8, Held: 3,
		State: SessionGrace, ConnectedAtMs: 1_767_225_600_001, LastSeenAtMs: 1_767_225_600_002,
	}, {ID: SessionID{15: 3}, State: SessionLive, ConnectedAtMs: 1, LastSeenAtMs: 1}}
	data := AppendSessionFigures([]byte(`{"sessions":[`), &want[0])
	data = append(AppendSessionFigures(append(data, ','), &want[1]), `],"cursor":"next"}`...)
	got, cursor, err := ParseSessionList(data)
	if err != nil || cursor != "next" {
		t.Fatalf("cursor %q, error %v", cursor, err)
	}
	checkSame(t, "sessions", got, want)
	for _, body := range []string{``, `{}`, `{"sessions":1}`, `{"sessions":[1]}`, `{"sessions":[{"sessionId":"x","state":"live"}]}`,
		`{"sessions":[],"cursor":1}`, `{"sessions":[{"state":"live","commands":[1]}]}`} {
		if list, _, err := ParseSessionList([]byte(body)); err == nil {
			t.Errorf("%s was read as %+v", body, list)
		}
	}
}

func TestEnqueueRequestsKeepTheirBytesAndComeBack(t *testing.T) {
	full := sampleEnqueue()
	bare := EnqueueRequest{Command: "a", Payload: []byte("null")}
	for name, request := range map[string]*EnqueueRequest{"enqueue": &full, "enqueue-bare": &bare} {
		data := AppendEnqueueRequest(nil, request)
		checkGolden(t, "body/"+name, data)
		got, err := ParseEnqueueRequest(data)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, name, got, request)
	}
	unset := EnqueueRequest{Command: "a", Payload: []byte("null")}
	if got := string(AppendEnqueueRequest(nil, &unset)); got != `{"command":"a","payload":null}` {
		t.Errorf("a request without MaxAttempts is %s", got)
	}
}

func TestEncodersOnlyGrowTheirBuffer(t *testing.T) {
	dst := make([]byte, 0, 64<<10)
	task, record, refusal, enqueue := sampleTask(), sampleRecord(), sampleError(), sampleEnqueue()
	queue := sampleQueues()[0]
	check := func(name string, appendIt func(dst []byte) []byte) {
		if allocs := testing.AllocsPerRun(20, func() { dst = appendIt(dst[:0]) }); allocs != 0 {
			t.Errorf("%s allocates %v times", name, allocs)
		}
	}
	for name, frame := range sampleServerFrames() {
		check("server "+name, func(dst []byte) []byte { return AppendServerFrame(dst, frame) })
	}
	for name, frame := range sampleClientFrames() {
		check("client "+name, func(dst []byte) []byte { return AppendClientFrame(dst, frame) })
	}
	for name, frame := range sampleWatchFrames() {
		check("watch "+name, func(dst []byte) []byte { return AppendWatchFrame(dst, frame) })
	}
	check("task", func(dst []byte) []byte { return AppendTask(dst, task, PayloadAsString) })
	check("record", func(dst []byte) []byte { return AppendResultRecord(dst, record) })
	check("error", func(dst []byte) []byte { return AppendError(dst, refusal) })
	check("queue", func(dst []byte) []byte { return AppendQueueFigures(dst, &queue) })
	check("enqueue", func(dst []byte) []byte { return AppendEnqueueRequest(dst, &enqueue) })
}

// TestEveryTaskFitsEverySession: the largest task that can be granted, with
// every text as long as it may be and made of what needs the longest escape,
// must fit the smallest message size that a client may ask for. A granted
// task carries no history.
func TestEveryTaskFitsEverySession(t *testing.T) {
	worst := func(n int) string { return string(make([]byte, n)) }
	task := sampleTask()
	task.Payload = bytes.Repeat([]byte("1"), MaxPayloadBytes)
	task.Command = worst(MaxCommandBytes)
	task.WorkerID = worst(MaxWorkerIDBytes)
	task.Error = worst(MaxErrorBytes)
	task.TenantID = worst(MaxTenantBytes)
	task.TraceParent = "cc" + goodTrace[2:] + "-" + strings.Repeat(`"`, MaxTraceBytes-len(goodTrace)-1)
	task.TraceState = "a=" + strings.Repeat(`"`, MaxTraceBytes-len("a="))
	task.Progress = &TaskProgress{ProgressRequest: ProgressRequest{100, true, worst(MaxNoteBytes), []byte(strings.Repeat("1", MaxProgressBytes))}, AtMs: sampleTimeMs, Delivery: 1 << 31}
	for i := range MaxLabels {
		task.Labels += Labels(strconv.Itoa(i) + "=" + strings.Repeat(`"`, MaxLabelBytes-1) + labelSign)
	}
	task.Webhook = ""
	task.History = nil
	task.Priority, task.Attempts, task.MaxAttempts, task.Deliveries = MaxPriority, 1<<31, MaxAttemptsLimit, 1<<62
	frame := &TaskFrame{Seq: 1 << 62, Token: sampleToken(1), LeaseForMs: 1 << 62, LeaseUntilMs: 1, Task: task}
	size := len(AppendServerFrame([]byte("["), frame)) + len("]")
	if size > MinMaxMessageBytes {
		t.Errorf("the largest task makes a message of %d bytes, a client may ask for %d at most", size, MinMaxMessageBytes)
	}
}

// TestGoldenFilesAreAllUsed keeps files of kinds that are gone from staying.
// It stands last so that -rewrite has made the others before.
func TestGoldenFilesAreAllUsed(t *testing.T) {
	known := map[string]bool{}
	for name := range sampleClientFrames() {
		known["client/"+name] = true
	}
	for name := range sampleServerFrames() {
		known["server/"+name] = true
	}
	for name := range sampleWatchRequests() {
		known["watch/client-"+name] = true
	}
	for name := range sampleWatchFrames() {
		known["watch/server-"+name] = true
	}
	for _, name := range []string{
		"task", "task-bare", "result-record", "result-record-bare", "error", "error-bare", "error-task", "queues", "enqueue", "enqueue-bare",
		"batch", "session", "session-bare", "claimed",
	} {
		known["body/"+name] = true
	}
	files, err := filepath.Glob("testdata/[a-eg-z]*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.ToSlash(file[len("testdata/") : len(file)-len(".json")])
		if !known[name] {
			t.Errorf("%s belongs to no sample", file)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s has no golden file; run go test ./wire -rewrite", name)
	}
}
