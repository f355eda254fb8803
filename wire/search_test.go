package wire

import (
	"strings"
	"testing"
)

const sampleSearch = `{"id":"019b7700-8a4b-7000-8000-00000000000f","label":["run=1","customer=acme"],"command":"billing.*","state":"dlq",` +
	`"error~":"timeout","payload~":"\"x\"","worker":"w1","olderThan":"1h","attempts>":3}`

func TestSearchSelectsTasksByAllItsFields(t *testing.T) {
	const nowMs = sampleTimeMs + 2*sampleHour
	s, refusal := ParseTaskSearch([]byte(sampleSearch), nowMs)
	if refusal != nil {
		t.Fatal(refusal)
	}
	id, _ := ParseTaskID("019b7700-8a4b-7000-8000-00000000000f")
	base := Task{
		ID: id, Command: "billing.pdf", Location: LocationDead, Labels: "customer=acme\nregion=eu\nrun=1", Error: "read timeout",
		Payload: []byte(`{"a":"x"}`), WorkerID: "w1", Attempts: 3, CreatedAtMs: sampleTimeMs,
	}
	if !s.Match(&base) {
		t.Fatalf("%+v does not match %+v", s, base)
	}
	for name, change := range map[string]func(t *Task){
		"another id": func(t *Task) { t.ID = sampleID(1) }, "another command": func(t *Task) { t.Command = "billings" },
		"another state": func(t *Task) { t.Location = LocationNone }, "another label": func(t *Task) { t.Labels = "customer=acme\nrun=12" },
		"another error": func(t *Task) { t.Error = "time out" }, "another payload": func(t *Task) { t.Payload = []byte(`{"a":"y"}`) },
		"another worker": func(t *Task) { t.WorkerID = "w" }, "younger": func(t *Task) { t.CreatedAtMs = nowMs - sampleHour + 1 },
		"fewer attempts": func(t *Task) { t.Attempts = 2 },
	} {
		other := base
		if change(&other); s.Match(&other) {
			t.Errorf("a task with %s matches", name)
		}
	}
	justOld := base
	if justOld.CreatedAtMs = nowMs - sampleHour; !s.Match(&justOld) {
		t.Error("a task that was created exactly so long ago is not found")
	}
	last := base
	last.WorkerID, last.History = "", []HistoryLine{{WorkerID: "w0"}, {WorkerID: "w1"}}
	if !s.Match(&last) {
		t.Error("the worker that had the task last is not found")
	}
	if all, refusal := ParseTaskSearch([]byte(`{}`), nowMs); refusal != nil || !all.Match(&base) || *all != (TaskSearch{}) || all.AsksPrivate() {
		t.Errorf("a search without fields is %+v, %v", all, refusal)
	}
	if s.ID, s.ErrorPart = (TaskID{}), ""; !s.AsksPrivate() {
		t.Error("a payload is not private")
	}
}

func TestWrongSearchesAreRefusedWithWhatIsRight(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"x"}`:                "id names no task",
		`{"label":["a"]}`:           "label must be a name and a value like customer=acme, got a",
		`{"label":"a=b"}`:           "label must be a list, got a string",
		`{"command":"a/b"}`:         "command may hold only letters",
		`{"command":".*"}`:          "command must have 1 to 200 bytes",
		`{"state":"dead"}`:          "state must be one of ready, delayed, inProgress, dlq, done",
		`{"error~":""}`:             "error~ must not be empty",
		`{"olderThan":"yesterday"}`: "olderThan must be a time like 30s",
		`{"attempts>":"3"}`:         "attempts> must be an integer from 0",
		`{"error":"x"}`:             "error is not known; did you mean error~?",
	} {
		if _, refusal := ParseTaskSearch([]byte(body), 0); refusal == nil || !strings.HasPrefix(refusal.Sentence, want) {
			t.Errorf("%s: %v, want %q", body, refusal, want)
		}
	}
}

func FuzzParseTaskSearch(f *testing.F) {
	addBodyFaults(f)
	addAll(f, sampleSearch, `{"label":[]}`, `{"command":"a.*"}`)
	task := sampleTask()
	f.Fuzz(func(t *testing.T, body []byte) {
		s, refusal := ParseTaskSearch(body, sampleTimeMs)
		if (s == nil) == (refusal == nil) {
			t.Fatalf("%s is %+v, %v", body, s, refusal)
		}
		if s != nil && s.Match(task) && s.State != "" && s.State != StateInProgress {
			t.Errorf("%s selects a task in progress", body)
		}
	})
}
