package wire

import (
	"strings"
	"testing"
)

func checkFault(t *testing.T, input string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s:\n got %v\nwant %s", brief(input), err, want)
	}
}

func TestAnswersOfANewerServerAreRead(t *testing.T) {
	id := sampleID(1).String()
	frames, err := ParseServerMessage([]byte(
		`[{"type":"shiny","ref":{}},{"type":"ok","ref":1,"later":[1]},{"type":"draining","reason":null,"graceSeconds":3}]`))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "frames", frames, []ServerFrame{&OK{Ref: ref(1)}, &Draining{GraceSeconds: 3}})

	frames, err = ParseServerMessage([]byte(` {"type":"ok"} `))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "a frame without brackets", frames, []ServerFrame{&OK{}})

	task, err := ParseTask([]byte(`{"id":"` + id + `","status":"FROZEN","mood":3,"leaseUntil":null,"history":null}`))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "task", task, &Task{ID: sampleID(1), Status: "FROZEN"})

	refusal, err := ParseError([]byte(`{"error":"e","code":"from_later","retryable":true,"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "refusal", refusal, &Error{Code: "from_later", Sentence: "e"})
}

func TestAConflictNamesTheFirstTask(t *testing.T) {
	conflict := &Error{Code: CodeIdempotencyConflict, Sentence: "s", TaskID: sampleID(3)}
	frames, err := ParseServerMessage(AppendServerFrame(nil, &ErrorFrame{Ref: ref(1), Err: conflict}))
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "conflict", frames, []ServerFrame{&ErrorFrame{Ref: ref(1), TaskID: sampleID(3), Err: conflict}})
}

func TestServerMessageFaults(t *testing.T) {
	id, token := sampleID(1).String(), sampleToken(1).String()
	task := `{"type":"task","seq":1,"leaseMs":1,"leaseToken":"` + token + `","task":`
	cases := map[string]string{
		``:                             "read server message: byte 0: a frame should begin here",
		`[1]`:                          "read server message: byte 1: a frame should begin here",
		`[{}]`:                         "read server message: type is required: a string",
		`[{"type":"ok"}]]`:             "read server message: byte 15: more text after the value",
		`[{"type":"ok"},`:              "read server message: byte 15: a frame should begin here",
		`[{"type":"ok"`:                "read server message: byte 13: a comma or a closing bracket should be here",
		"[{\"type\":\"\xff\"}]":        "read server message: byte 10: not UTF-8",
		`[{"type":"ok","ref":1.5}]`:    "read server message: ref must be an integer of 64 bits, got 1.5",
		`[{"type":"ok","replayed":1}]`: "read server message: replayed must be true or false, got 1",
		`[{"type":"ok","lost":[1]}]`:   "read server message: lost[0] must be an object, got 1",
		`[{"type":"ok","lost":[{"taskId":"x"}]}]`:                      "read server message: lost[0].taskId names no task",
		`[{"type":"ok","leaseUntil":"soon"}]`:                          "read server message: leaseUntil must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`[{"type":"error","error":"e"}]`:                               "read server message: code is required: a string",
		`[{"type":"error","code":"internal"}]`:                         "read server message: error is required: a string",
		`[{"type":"revoked","taskId":"` + id + `"}]`:                   "read server message: leaseToken is required: a string",
		`[{"type":"welcome"}]`:                                         "read server message: sessionId is required: a string",
		`[{"type":"welcome","sessionId":"x"}]`:                         "read server message: sessionId names no session",
		`[{"type":"welcome","sessionId":"` + id + `","features":[1]}]`: "read server message: features must be a list of strings",
		`[{"type":"task","leaseToken":"` + token + `"}]`:               "read server message: seq is required: an integer of at least 0",
		`[` + task + `null}]`:                                          "read server message: task is required: an object",
		`[` + task + `[]}]`:                                            "read server message: task is required: an object",
		`[` + task + `{}}]`:                                            "read server message: task has a fault: id is required: a string",
		`[` + task + `{"id":"` + id + `","priority":"x"}}]`:            "read server message: task has a fault: priority must be an integer of 64 bits, got a string",
	}
	for message, want := range cases {
		frames, err := ParseServerMessage([]byte(message))
		checkFault(t, message, err, want)
		if frames != nil {
			t.Errorf("%s has a fault and frames", message)
		}
	}
}

func TestBodyFaultsOfAnswers(t *testing.T) {
	id := sampleID(1).String()
	tasks := map[string]string{
		``:                                  "read task: task must be one JSON object, got nothing",
		`[]`:                                "read task: task must be one JSON object, got a list",
		`{`:                                 "read task: task must be one JSON object: byte 1: a member name in double quotes should begin here",
		`{}`:                                "read task: id is required: a string",
		`{"id":"` + id + `","payload":{}}`:  "read task: payload must be a string, got an object",
		`{"id":"` + id + `","payload":"{"}`: "read task: payload must hold JSON: not JSON: byte 1: a member name in double quotes should begin here",
		`{"id":"` + id + `","history":[{"delivery":"x"}]}`: "read task: history[0].delivery must be an integer of 64 bits, got a string",
		`{"id":"` + id + `","createdAt":7}`:                "read task: createdAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
	}
	for body, want := range tasks {
		_, err := ParseTask([]byte(body))
		checkFault(t, body, err, want)
	}
	records := map[string]string{
		`1`:                       "read result record: record must be one JSON object, got 1",
		`{"status":"FAILED"}`:     "read result record: taskId is required: a string",
		`{"taskId":"` + id + `"}`: "read result record: status is required: a string",
		`{"taskId":"` + id + `","status":"FAILED","artifacts":[{"url":1}]}`: "read result record: artifacts[0].url must be a string, got 1",
	}
	for body, want := range records {
		_, err := ParseResultRecord([]byte(body))
		checkFault(t, body, err, want)
	}
	refusals := map[string]string{
		`<html>`:                  "read refusal: refusal must be one JSON object: byte 0: a JSON value should begin here",
		`{"error":"e"}`:           "read refusal: code is required: a string",
		`{"error":{},"code":"c"}`: "read refusal: error must be a string, got an object",
		`{"code":"internal"}`:     "read refusal: error is required: a string",
	}
	for body, want := range refusals {
		_, err := ParseError([]byte(body))
		checkFault(t, body, err, want)
	}
	for _, body := range []string{
		`[]`, `{}`, `{"queues":null}`, `{"queues":[null]}`, `{"queues":[{}]}`, `{"queues":[{"command":"a","paused":"no"}]}`,
		`{"queues":[{"command":"a","ready":1.5}]}`, `{"queues":[{"command":"a","oldestReadyAt":7}]}`, `{"queues":[{"command":"a"}]}]`,
	} {
		if list, err := ParseQueueList([]byte(body)); err == nil || !strings.HasPrefix(err.Error(), "read queue list: ") {
			t.Errorf("%s was read as %+v (%v)", body, list, err)
		}
	}
	for _, body := range []string{`{}`, `{"tasks":[null]}`, `{"tasks":[{}]}`, `{"tasks":[{"id":"` + id + `","payload":{}}]}`} {
		if tasks, _, err := ParseTaskPage([]byte(body)); err == nil || tasks != nil {
			t.Errorf("%s was read as %+v (%v)", body, tasks, err)
		}
	}
	for _, body := range []string{`{}`, `{"sessions":[null]}`, `{"sessions":[{"state":"live"}]}`, `{"sessions":[{"sessionId":"x","state":"live"}]}`} {
		if list, _, err := ParseSessionList([]byte(body)); err == nil || list != nil {
			t.Errorf("%s was read as %+v (%v)", body, list, err)
		}
	}
	for _, body := range []string{`{}`, `{"reasons":[null]}`, `{"reasons":[{"newestTaskId":"x"}]}`} {
		if all, err := ParseDeadReasons([]byte(body)); err == nil || all != nil {
			t.Errorf("%s was read as %+v (%v)", body, all, err)
		}
	}
	if list, err := ParseQueueList([]byte(`{"queues":[]}`)); err != nil || len(list) != 0 {
		t.Errorf("an empty list is %v (%v)", list, err)
	}
}

// TestEveryPayloadThatIsAcceptedReachesAWorker: the nesting that a request may
// have stands deeper in the message that carries it on.
func TestEveryPayloadThatIsAcceptedReachesAWorker(t *testing.T) {
	for _, payload := range []string{nested(MaxNesting), strings.Repeat(`{"a":`, MaxNesting) + "1" + strings.Repeat(`}`, MaxNesting)} {
		task := barePendingTask()
		task.Payload = []byte(payload)
		frame := &TaskFrame{Seq: 1, Token: sampleToken(1), LeaseForMs: 1, Task: task}
		frames, err := ParseServerMessage(append(AppendServerFrame([]byte("["), frame), ']'))
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, "frame", frames, []ServerFrame{frame})
		got, err := ParseTask(AppendTask(nil, task, PayloadAsString))
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, "task", got, task)
	}
}

func TestPageOfTasksComesBackAsItWent(t *testing.T) {
	first, second := sampleTask(), sampleTask()
	second.Payload, second.Error = []byte(`[1,"\u00e9"]`), "x"
	body := AppendTask([]byte(`{"tasks":[`), first, PayloadAsString)
	body = AppendTask(append(body, ','), second, PayloadAsString)
	tasks, cursor, err := ParseTaskPage(append(body, `],"cursor":"c","later":1}`...))
	if err != nil || cursor != "c" || len(tasks) != 2 {
		t.Fatalf("%v, cursor %q, %d tasks", err, cursor, len(tasks))
	}
	for i, want := range []*Task{first, second} {
		if got := AppendTask(nil, tasks[i], PayloadAsString); string(got) != string(AppendTask(nil, want, PayloadAsString)) {
			t.Errorf("task %d is %s", i, got)
		}
	}
}
