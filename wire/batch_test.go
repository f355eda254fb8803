package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func sampleBatch() []EnqueueRequest {
	return []EnqueueRequest{
		sampleEnqueue(),
		{Command: "a", Payload: []byte("null")},
		{Command: "b", Payload: []byte(`{ "a": [1.0 , 2e400] }`), MaxAttempts: 1, DelaySeconds: 9},
	}
}

func TestBatchesKeepTheirBytesAndComeBack(t *testing.T) {
	data := AppendBatchRequest(nil, sampleBatch())
	checkGolden(t, "body/batch", data)
	items, refusal := ParseBatchRequest(data)
	if refusal != nil {
		t.Fatal(refusal)
	}
	var got []EnqueueRequest
	for i, item := range items {
		if item.Err != nil {
			t.Fatalf("item %d: %v", i, item.Err)
		}
		if text := AppendEnqueueRequest(nil, &item.Request); item.Bytes != len(text) {
			t.Errorf("item %d has %d bytes, want %d", i, item.Bytes, len(text))
		}
		got = append(got, item.Request)
	}
	checkSame(t, "batch", got, sampleBatch())
}

func TestSessionFiguresKeepTheirBytes(t *testing.T) {
	full := AppendSessionFigures(nil, &SessionFigures{
		ID: SessionID(sampleID(7)), WorkerID: awkward, Subject: "bob", Commands: []string{"a", "b:c"}, Window: 8, Held: 3,
		State: SessionDraining, ConnectedAtMs: sampleTimeMs, LastSeenAtMs: sampleTimeMs + sampleHour,
	})
	checkGolden(t, "body/session", full)
	bare := AppendSessionFigures(nil, &SessionFigures{
		ID: SessionID(sampleID(8)), Subject: AnonymousSubject, State: SessionLive,
		ConnectedAtMs: sampleTimeMs, LastSeenAtMs: sampleTimeMs,
	})
	checkGolden(t, "body/session-bare", bare)
}

func TestClaimedTasksKeepTheirBytes(t *testing.T) {
	data := AppendClaimed(nil, sampleTask(), sampleToken(5))
	checkGolden(t, "body/claimed", data)
	task, token, err := ParseClaimed(data)
	if err != nil || token != sampleToken(5) {
		t.Fatalf("token %v, %v", token, err)
	}
	checkSame(t, "claimed", task, sampleTask())
	if _, _, err := ParseClaimed(AppendTask(nil, sampleTask(), PayloadAsString)); err == nil {
		t.Error("a task without a token was taken for a claimed one")
	}
}

// batchOf is the body of a batch around the texts of its elements.
func batchOf(elements ...string) string { return `{"tasks":[` + strings.Join(elements, ",") + `]}` }

// elementsOf is n times the shortest good element.
func elementsOf(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = `{"command":"a","payload":1}`
	}
	return list
}

func TestBatchRefusals(t *testing.T) {
	deep := nested(MaxNesting + 1)
	cases := map[string]string{
		`{}`:                                 "invalid_argument: tasks is required: a list of 1 to 1000 tasks",
		`{"task":[{}]}`:                      "unknown_member: task is not known; did you mean tasks?",
		`{"tasks":[1],"other":1,"more":2}`:   "unknown_member: other is not known; known here: tasks",
		`{"tasks":null}`:                     "invalid_argument: tasks is required: a list of 1 to 1000 tasks",
		`{"tasks":{}}`:                       "invalid_argument: tasks must be a list, got an object",
		`{"tasks":"a"}`:                      "invalid_argument: tasks must be a list, got a string",
		`{"tasks":[]}`:                       "invalid_argument: tasks must have 1 to 1000 elements, got 0",
		`{"tasks":[ ] }`:                     "invalid_argument: tasks must have 1 to 1000 elements, got 0",
		batchOf(elementsOf(1001)...):         "invalid_argument: tasks must have 1 to 1000 elements, got 1001",
		`{"tasks":[1],"tasks":[]}`:           "invalid_body: tasks must not appear twice",
		`{"tasks":null,"tasks":[1]}`:         "invalid_body: tasks must not appear twice",
		`{"tasks":[1],"t\u0061sks":null}`:    "invalid_body: tasks must not appear twice",
		`{"tasks":[1],"other":` + deep + `}`: "invalid_body: a member must not nest deeper than 64 levels",
		`{"tasks":[1,]}`:                     "invalid_body: body must be one JSON object: byte 12: a JSON value should begin here",
		`{"tasks":[{"command":"a",}]}`:       "invalid_body: body must be one JSON object: byte 25: a member name in double quotes should begin here",
		`{"tasks":[{}}`:                      "invalid_body: body must be one JSON object: byte 12: a comma or a closing bracket should be here",
		`{"tasks" [1]}`:                      "invalid_body: body must be one JSON object: byte 9: a colon should follow the member name",
		"{\"tasks\":[{\"x\":\"\xff\"}]}":     "invalid_body: body must be one JSON object: byte 16: not UTF-8",
	}
	for body, want := range cases {
		items, err := ParseBatchRequest([]byte(body))
		checkRefusal(t, body, err, want)
		if items != nil {
			t.Errorf("%s: refused, with %d items", brief(body), len(items))
		}
	}
	for body, want := range bodyFaults {
		_, err := ParseBatchRequest([]byte(body))
		checkRefusal(t, body, err, want)
	}
	_, err := ParseBatchRequest(nil)
	checkRefusal(t, "", err, "invalid_body: body must be one JSON object, got nothing")
}

func TestEachElementOfABatchStandsAlone(t *testing.T) {
	good := `{"command":"a","payload":` + nested(MaxNesting) + `}`
	cases := []struct{ element, want string }{
		{good, ""},
		{`7`, "invalid_body: tasks[1] must be an object, got 7"},
		{nested(recursionLimit), "invalid_body: tasks[2] must be an object, got a list"},
		{`null`, "invalid_body: tasks[3] must be an object, got null"},
		{`{"command":"a"}`, "invalid_body: tasks[4].payload is required: any JSON value, null too"},
		{`{"payload":1}`, "invalid_command: tasks[5].command is required: a string"},
		{`{"command":"a/b","payload":1}`, "invalid_command: tasks[6].command may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none"},
		{`{"command":"a","payload":1,"payload":1}`, "invalid_body: tasks[7].payload must not appear twice"},
		{`{"command":"a","payload":` + nested(MaxNesting+1) + `}`, "invalid_body: payload must not nest deeper than 64 levels"},
		{`{"command":"a","payload":` + jsonText(MaxPayloadBytes) + `}`, "too_large: tasks[9].payload must be at most 1048576 bytes, got 1048578"},
		{`{"command":"a","payload":1,"priority":10}`, "invalid_priority: tasks[10].priority must be an integer from 0 to 9, got 10"},
		{`{"command":"a","payload":1,"webhook":"x"}`, "invalid_webhook: tasks[11].webhook must be an http or https URL with a host, such as https://example.com/done"},
		{`{"command":"a","payload":1,"idempotencyKey":""}`, "invalid_argument: tasks[12].idempotencyKey must not be empty"},
		{`{"command":"a","payload":1,"delaySeconds":1,"runAt":"2026-01-01T00:00:00Z"}`, "invalid_time: tasks[13].runAt and delaySeconds must not be given together"},
		{good, ""},
	}
	var elements []string
	for _, c := range cases {
		elements = append(elements, c.element)
	}
	items, err := ParseBatchRequest([]byte(" { \"tasks\" : [ " + strings.Join(elements, " ,\n") + " ] } "))
	if err != nil || len(items) != len(cases) {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, c := range cases {
		item := &items[i]
		if item.Bytes != len(c.element) {
			t.Errorf("element %d has %d bytes, want %d", i, item.Bytes, len(c.element))
		}
		if c.want != "" {
			checkRefusal(t, c.element, item.Err, c.want)
			continue
		}
		if item.Err != nil || string(item.Request.Payload) != nested(MaxNesting) {
			t.Errorf("element %d: %+v", i, item)
		}
	}
}

func TestBatchTakesAsManyAsItSays(t *testing.T) {
	items, err := ParseBatchRequest([]byte(batchOf(elementsOf(MaxBatchTasks)...)))
	if err != nil || len(items) != MaxBatchTasks || items[MaxBatchTasks-1].Err != nil {
		t.Fatalf("%d items, %v", len(items), err)
	}
}

// FuzzParseBatchRequest compares each element with what it gives alone.
func FuzzParseBatchRequest(f *testing.F) {
	addBodyFaults(f)
	f.Add(AppendBatchRequest(nil, sampleBatch()))
	addAll(f, batchOf(`1`, `{}`, `{"command":"a","payload":{},"priority":-1}`, ` {"p\u0061yload":1,"command":"\u0061"} `),
		`{"tasks":null}`, `{"tasks":[],"tasks":1}`, `{"t\u0061sks":[[]]}`, `{"tasks":{"a":[1]}}`, `{"tasks":[`+nested(MaxNesting+1)+`]}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		items, refusal := ParseBatchRequest(body)
		checkEither(t, items != nil, refusal)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if refusal != nil {
			return
		}
		var standard map[string]json.RawMessage
		var elements []json.RawMessage
		if err := json.Unmarshal(body, &standard); err != nil {
			t.Fatalf("read what is not JSON: %v", err)
		}
		if err := json.Unmarshal(standard["tasks"], &elements); err != nil || len(elements) != len(items) {
			t.Fatalf("%d items, encoding/json finds %d (%v)", len(items), len(elements), err)
		}
		for i := range items {
			alone, refusal := ParseEnqueueRequest(elements[i])
			if (refusal == nil) != (items[i].Err == nil) || refusal != nil && refusal.Code != items[i].Err.Code {
				t.Fatalf("%s: %v in a batch, %v alone", elements[i], items[i].Err, refusal)
			}
			if refusal == nil && !reflect.DeepEqual(*alone, items[i].Request) || items[i].Bytes != len(elements[i]) {
				t.Fatalf("%s: %+v in a batch, %+v alone", elements[i], items[i], alone)
			}
		}
	})
}

func BenchmarkParseBatchRequest(b *testing.B) {
	element := string(benchBody(300))
	list := make([]string, MaxBatchTasks)
	for i := range list {
		list[i] = element
	}
	body := []byte(batchOf(list...))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBatchRequest(body); err != nil {
			b.Fatal(err)
		}
	}
}
